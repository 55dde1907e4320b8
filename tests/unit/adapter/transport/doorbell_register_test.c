// SPDX-License-Identifier: BSD-2-Clause
/*
 * Doorbell registers: a queue executes what its register says, whether or not its doorbell record
 * says so, and in the error state completes only up to the record.
 */
#include "adapter/qp/qp.h"
#include "base/hazard.h"
#include "keyed_pair.h"

static struct keyed_pair pair;

static void put_write(void)
{
	struct device_wqe w;

	device_wqe_begin(&pair.a, &w, WQE_OP_RDMA_WRITE, SIGNALED, 0);
	device_wqe_raddr(&w, (uintptr_t)pair.dst, pair.rkey);
	device_wqe_data(&w, pair.src, 8, pair.lkey);
	device_wqe_put(&w);
}

static void store_record(uint16_t to)
{
	pair.a.dbrec[DBREC_SEND] = be32_of(to);
}

static void ring(uint16_t pi)
{
	adapter_doorbell(pair.device.adapter[0], qp_number(pair.a.qp), pi);
}

/* n completions, the first one of that block, and no more. */
static void expect_done(uint16_t block, unsigned n)
{
	const struct cqe64 *c;

	for (unsigned i = 0; i < n; i++) {
		c = device_cq_poll(&pair.a.cq);
		CHECK(c && c->op_own >> 4 == CQE_OP_REQ);
		CHECK(be16_get(c->wqe_counter) == (uint16_t)(block + i));
	}
	CHECK(!device_cq_poll(&pair.a.cq));
}

/* The record is never written; indices come round more than once. */
static void test_without_record(void)
{
	keyed_pair_up(&pair);
	for (uint32_t i = 0; i < 3 * 65536; i += 3) {
		for (unsigned n = 0; n < 3; n++)
			put_write();
		CHECK(!device_cq_poll(&pair.a.cq));
		ring((uint16_t)(i + 3));
		expect_done((uint16_t)i, 3);
		/* a hook that announces nothing new, and a value that was seen before */
		hazard_enter();
		qp_doorbell(pair.a.qp);
		hazard_leave();
		ring((uint16_t)(i + 2));
		expect_done(0, 0);
	}
	CHECK(!pair.a.async[IB_EVENT_QP_FATAL]);
	keyed_pair_down(&pair);
}

/* The index that is further ahead counts, and a record that goes on is believed again. */
static void test_record_and_register(void)
{
	keyed_pair_up(&pair);
	for (unsigned i = 0; i < 8; i++)
		put_write();
	store_record(2);
	ring(1); /* another store has overwritten that of the second request */
	expect_done(0, 2);
	ring(3);
	expect_done(2, 1);
	ring(2);
	expect_done(0, 0);
	store_record(5);
	hazard_enter();
	qp_doorbell(pair.a.qp);
	hazard_leave();
	expect_done(3, 2);
	store_record(6);
	ring(8);
	expect_done(5, 3);
	CHECK(!pair.a.async[IB_EVENT_QP_FATAL]);
	keyed_pair_down(&pair);
}

/* An index that no request of the ring can have. */
static void test_any_index(void)
{
	keyed_pair_up(&pair);
	put_write();
	for (uint32_t pi = 2 + DEVICE_BLOCKS; pi < 65536 + 1; pi += 61) {
		ring((uint16_t)pi);
		expect_done(0, 0);
	}
	ring(1);
	expect_done(0, 1);
	keyed_pair_down(&pair);
}

/* In the error state the register says nothing. */
static void test_error(void)
{
	const struct qp_attr attr = {.state = IB_QPS_ERR};

	keyed_pair_up(&pair);
	for (unsigned i = 0; i < 4; i++)
		put_write();
	ring(1);
	expect_done(0, 1);
	store_record(3);
	CHECK(!qp_modify(pair.a.qp, &attr, IB_QP_STATE));
	ring(4);
	for (unsigned i = 1; i < 3; i++) {
		const struct cqe64_err *c = (const void *)device_cq_poll(&pair.a.cq);

		CHECK(c && c->syndrome == CQE_SYN_WR_FLUSH && be16_get(c->wqe_counter) == i);
	}
	CHECK(!device_cq_poll(&pair.a.cq));
	keyed_pair_down(&pair);
}

/* What was stored before a reset says nothing of the requests that come after it. */
static void test_reset(void)
{
	struct qp_attr attr = {.state = IB_QPS_RESET};

	keyed_pair_up(&pair);
	for (unsigned i = 0; i < 4; i++)
		put_write();
	attr.state = IB_QPS_SQD;
	CHECK(!qp_modify(pair.a.qp, &attr, IB_QP_STATE));
	ring(4);
	attr.state = IB_QPS_RESET;
	CHECK(!qp_modify(pair.a.qp, &attr, IB_QP_STATE));
	ring(4);
	CHECK(!atomic_load(&pair.a.qp->rung));
	expect_done(0, 0);
	keyed_pair_down(&pair);
}

static void connect_again(void)
{
	const struct qp_attr attr = {.state = IB_QPS_RESET};

	CHECK(!qp_modify(pair.a.qp, &attr, IB_QP_STATE));
	CHECK(!qp_modify(pair.b.qp, &attr, IB_QP_STATE));
	pair.a.sq_pi = 0;
	device_connect(&pair.device, 0, &pair.a, &pair.b);
}

/* A record from before a reset counts when it changes, or when the register names the queue. */
static void test_record_of_before(void)
{
	keyed_pair_up(&pair);
	for (unsigned i = 0; i < 3; i++)
		put_write();
	store_record(3);
	ring(3);
	expect_done(0, 3);
	connect_again();
	CHECK(be32_get(pair.a.dbrec[DBREC_SEND]) == 3);
	expect_done(0, 0);
	put_write();
	store_record(1);
	ring(1);
	expect_done(0, 1);
	store_record(3);
	put_write();
	put_write();
	ring(3);
	expect_done(1, 2);
	connect_again();
	for (unsigned i = 0; i < 3; i++)
		put_write();
	hazard_enter();
	qp_doorbell(pair.a.qp); /* of another queue pair */
	hazard_leave();
	expect_done(0, 0);
	ring(3);
	expect_done(0, 3);
	keyed_pair_down(&pair);
}

int main(void)
{
	test_without_record();
	test_record_and_register();
	test_any_index();
	test_error();
	test_reset();
	test_record_of_before();
	return 0;
}
