// SPDX-License-Identifier: BSD-2-Clause
/*
 * What completes when a send queue is in error, as ConnectX-6 was measured to do it: the cause, one
 * flush for each later request, and nothing from the value of the doorbell record on.
 */
#include "adapter/qp/qp.h"
#include "base/clock.h"
#include "keyed_pair.h"
#include "prm/vendor_err.h"

#define PLENTY_NS 10000000000u

static struct keyed_pair pair;

static const struct cqe64_err *next_error(struct device_qp *q)
{
	const struct cqe64_err *c = (const void *)device_cq_poll(&q->cq);

	CHECK(!c || c->op_own >> 4 == CQE_OP_REQ_ERR);
	return c;
}

static void expect_error(uint8_t syndrome, uint8_t vendor_err, uint16_t block)
{
	const struct cqe64_err *c = next_error(&pair.a);

	CHECK(c && c->syndrome == syndrome && c->vendor_err_synd == vendor_err);
	CHECK(be16_get(c->wqe_counter) == block);
}

static void expect_flushes(uint16_t from, uint16_t to)
{
	for (uint16_t block = from; block != to; block++)
		expect_error(CQE_SYN_WR_FLUSH, 0xf9, block);
	CHECK(!next_error(&pair.a));
}

static void put_request(uint8_t opcode, uint8_t ce, uint32_t rkey, uint32_t lkey, uint32_t bytes)
{
	struct device_wqe w;

	device_wqe_begin(&pair.a, &w, opcode, ce, 0);
	if (opcode != WQE_OP_SEND)
		device_wqe_raddr(&w, (uintptr_t)pair.dst, rkey);
	device_wqe_data(&w, pair.src, bytes, lkey);
	device_wqe_put(&w);
}

static void progress(void)
{
	uint64_t never = UINT64_MAX;

	(void)adapter_progress(pair.device.adapter[0], &never);
}

static void modify(enum ib_qp_state state)
{
	const struct qp_attr attr = {.state = state};

	CHECK(!qp_modify(pair.a.qp, &attr, IB_QP_STATE));
}

/* Sends that the receiver has no receive for, which wait for it. */
static void put_waiting(unsigned n)
{
	while (n--)
		put_request(WQE_OP_SEND, n % 2 ? SIGNALED : 0, 0, pair.lkey, 8);
	device_ring(&pair.a);
	CHECK(!next_error(&pair.a));
}

static void store_record(uint16_t to)
{
	pair.a.dbrec[DBREC_SEND] = be32_of(to);
}

/* What comes within a time that is enough for all. */
static void await(uint16_t from, uint16_t to)
{
	uint64_t end = clock_ns() + PLENTY_NS;

	for (uint16_t block = from; block != to;) {
		const struct cqe64_err *c = next_error(&pair.a);

		CHECK(clock_ns() < end);
		if (c)
			CHECK(c->syndrome == CQE_SYN_WR_FLUSH &&
			      be16_get(c->wqe_counter) == block++);
		else
			progress();
	}
	CHECK(!next_error(&pair.a));
}

/* ---- causes ---- */

static void test_causes(void)
{
	static const struct {
		uint8_t opcode, syndrome, vendor_err;
		bool bad_lkey, bad_rkey;
		uint32_t bytes;
	} rows[] = {
		{WQE_OP_RDMA_WRITE, CQE_SYN_LOCAL_PROT, 0x52, true, false, 8},
		{WQE_OP_RDMA_WRITE, CQE_SYN_LOCAL_PROT, 0x53, false, false, KEYED_PAIR_BYTES + 8},
		{WQE_OP_RDMA_WRITE, CQE_SYN_REM_ACCESS, 0x88, false, true, 8},
		{WQE_OP_RDMA_READ, CQE_SYN_REM_ACCESS, 0x88, false, true, 8},
	};

	for (unsigned i = 0; i < array_size(rows); i++) {
		keyed_pair_up(&pair);
		put_request(rows[i].opcode, 0, pair.rkey ^ rows[i].bad_rkey,
			    rows[i].bad_lkey ? 0xfffffe00u : pair.lkey, rows[i].bytes);
		put_request(WQE_OP_RDMA_WRITE, 0, pair.rkey, pair.lkey, 8);
		put_request(WQE_OP_RDMA_WRITE, SIGNALED, pair.rkey, pair.lkey, 8);
		device_ring(&pair.a);
		expect_error(rows[i].syndrome, rows[i].vendor_err, 0);
		expect_flushes(1, 3);
		keyed_pair_down(&pair);
	}
}

static void test_read_only(void)
{
	struct mkey *mr;
	uint32_t lkey;

	keyed_pair_up(&pair);
	lkey = device_mr(&pair.device, 0, pair.a.pdn, pair.src, 64, 0, &mr);
	put_request(WQE_OP_RDMA_READ, SIGNALED, pair.rkey, lkey, 8);
	device_ring(&pair.a);
	expect_error(CQE_SYN_LOCAL_PROT, 0x33, 0);
	expect_flushes(1, 1);
	mkey_destroy(pair.device.adapter[0], mr);
	keyed_pair_down(&pair);
}

/* The program moves the queue: nothing completes if nothing is outstanding. */
static void test_moved(void)
{
	keyed_pair_up(&pair);
	modify(IB_QPS_ERR);
	progress();
	CHECK(!next_error(&pair.a));
	keyed_pair_down(&pair);

	keyed_pair_up(&pair);
	put_waiting(3);
	modify(IB_QPS_ERR);
	expect_error(CQE_SYN_WR_FLUSH, 0xf5, 0);
	expect_flushes(1, 3);
	keyed_pair_down(&pair);
}

/* ---- the doorbell record ---- */

/* Requests from 'first' on are unfinished; the record then says 'record'. */
static void test_record(uint16_t record)
{
	keyed_pair_up(&pair);
	device_recv(&pair.b, pair.dst, 64, pair.rkey);
	put_request(WQE_OP_SEND, 0, 0, pair.lkey, 8);
	put_waiting(5);
	store_record(record);
	modify(IB_QPS_ERR);
	if (record > 1) {
		expect_error(CQE_SYN_WR_FLUSH, 0xf5, 1);
		expect_flushes(2, record);
	}
	CHECK(!next_error(&pair.a));
	for (unsigned i = 0; i < 10; i++)
		progress();
	CHECK(!next_error(&pair.a));
	/* raised in two steps, without a bell */
	store_record(record > 3 ? record : 3);
	await(record > 1 ? record : 1, record > 3 ? record : 3);
	store_record(6);
	await(record > 3 ? record : 3, 6);
	keyed_pair_down(&pair);
}

/* Not even the cause is told, until the record stands behind it. */
static void test_cause_kept(void)
{
	const struct cqe64_err *c;
	uint64_t end = clock_ns() + PLENTY_NS;

	keyed_pair_up(&pair);
	put_waiting(3);
	store_record(0);
	/* the request is sent again, and no receive comes: what was fetched needs no record */
	while (qp_state(pair.a.qp) != IB_QPS_ERR) {
		CHECK(clock_ns() < end);
		progress();
	}
	for (unsigned i = 0; i < 10; i++)
		progress();
	CHECK(!device_cq_poll(&pair.a.cq) && !pair.a.async[IB_EVENT_QP_FATAL]);
	store_record(3);
	while (!(c = next_error(&pair.a))) {
		CHECK(clock_ns() < end);
		progress();
	}
	CHECK(c->syndrome == CQE_SYN_RNR_RETRY_EXC && c->vendor_err_synd == 0x87);
	await(1, 3);
	keyed_pair_down(&pair);
}

int main(void)
{
	test_causes();
	test_read_only();
	test_moved();
	for (uint16_t record = 0; record <= 6; record++)
		test_record(record);
	test_cause_kept();
	return 0;
}
