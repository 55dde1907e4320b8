// SPDX-License-Identifier: BSD-2-Clause
/*
 * When a request of a send queue completes, by the completion mode of its control segment: in error,
 * in the queue's first error, always, or always with an event that nobody asked for.  Queue pairs
 * and raw packet queues alike.
 *
 * Flex IO statements: 141
 */
#include <string.h>

#include "adapter_device.h"
#include "check.h"
#include "keyed_pair.h"

#define ERROR_ONLY  0u
#define FIRST_ERROR WQE_CTRL_CE_FIRST_ERROR
#define ALWAYS	    WQE_CTRL_CE_ALWAYS
#define EVENT	    WQE_CTRL_CE_EVENT
#define FRAME	    64u
#define ETHERNET    1u

/* A request without a packet, or one that the device does not have. */
static void put_plain(struct device_qp *q, uint8_t opcode, uint8_t ce)
{
	struct device_wqe w;

	device_wqe_begin(q, &w, opcode, ce, 0);
	device_wqe_put(&w);
}

#define NO_OPCODE 0x3fu

/* How many completions there are, all of which say this. */
static unsigned completions(struct device_qp *q, uint8_t opcode, uint8_t syndrome)
{
	const struct cqe64 *c;
	unsigned n = 0;

	for (; (c = device_cq_poll(&q->cq)); n++) {
		CHECK(c->op_own >> 4 == opcode);
		CHECK(opcode != CQE_OP_REQ_ERR ||
		      ((const struct cqe64_err *)c)->syndrome == syndrome);
	}
	return n;
}

static void arm(struct device_cq *cq, uint32_t sn)
{
	cq->dbrec[DBREC_CQ_ARM] = be32_of((sn & 3) << 28 | (cq->ci & 0xffffff));
	cq_doorbell(cq->cq);
}

/* ---- events ---- */

/* The four modes, on a queue that nobody has armed. */
static void expect_events(struct device_qp *q, void (*put)(struct device_qp *q, uint8_t ce))
{
	static const uint8_t modes[] = {ERROR_ONLY, FIRST_ERROR, ALWAYS, EVENT, EVENT, ALWAYS};
	int events = q->cq.events;

	for (unsigned i = 0; i < array_size(modes); i++) {
		put(q, modes[i]);
		device_ring(q);
		events += modes[i] == EVENT;
		CHECK(q->cq.events == events);
		CHECK(completions(q, CQE_OP_REQ, 0) == !!(modes[i] & ALWAYS));
	}
	/* Several with one bell: each gives its own. */
	for (unsigned i = 0; i < 3; i++)
		put(q, EVENT);
	put(q, ALWAYS);
	device_ring(q);
	CHECK(q->cq.events == events + 3);
	CHECK(completions(q, CQE_OP_REQ, 0) == 4);
}

static void put_nop(struct device_qp *q, uint8_t ce)
{
	put_plain(q, WQE_OP_NOP, ce);
}

static struct keyed_pair pair;

static void put_write_of(struct device_qp *q, uint8_t ce, uint32_t bytes)
{
	struct device_wqe w;

	device_wqe_begin(q, &w, WQE_OP_RDMA_WRITE, ce, 0);
	device_wqe_raddr(&w, (uintptr_t)pair.dst, pair.rkey);
	device_wqe_data(&w, pair.src, bytes, pair.lkey);
	device_wqe_put(&w);
}

/* Those that the bypass executes: one of a burst, and one alone, which has several packets. */
static void put_write(struct device_qp *q, uint8_t ce)
{
	put_write_of(q, ce, 8);
}

static void put_long_write(struct device_qp *q, uint8_t ce)
{
	put_write_of(q, ce, 5000);
}

/* One of which a packet goes. */
static void put_send(struct device_qp *q, uint8_t ce)
{
	struct device_wqe w;

	device_recv(&pair.b, pair.dst, 64, pair.rkey);
	device_wqe_begin(q, &w, WQE_OP_SEND, ce, 0);
	device_wqe_data(&w, pair.src, 8, pair.lkey);
	device_wqe_put(&w);
}

static void test_events(void)
{
	keyed_pair_up(&pair);
	expect_events(&pair.a, put_nop);
	expect_events(&pair.a, put_write);
	expect_events(&pair.a, put_long_write);
	expect_events(&pair.a, put_send);
	CHECK(!pair.b.cq.events);
	keyed_pair_down(&pair);
}

/* An armed queue gets one event for the completion, and what was armed is over, as after each. */
static void test_armed(void)
{
	struct device_cq *cq = &pair.a.cq;
	int events;

	keyed_pair_up(&pair);
	events = cq->events;
	arm(cq, 0);
	put_nop(&pair.a, EVENT);
	device_ring(&pair.a);
	CHECK(cq->events == events + 1);
	put_nop(&pair.a, ALWAYS);
	device_ring(&pair.a);
	CHECK(cq->events == events + 1);
	CHECK(completions(&pair.a, CQE_OP_REQ, 0) == 2);
	/* The program that has read the event arms for the next. */
	arm(cq, 1);
	put_nop(&pair.a, ALWAYS);
	device_ring(&pair.a);
	CHECK(cq->events == events + 2);
	/* A queue whose events wait for company gives this one at once. */
	cq_moderate(cq->cq, 10, 0);
	put_nop(&pair.a, EVENT);
	device_ring(&pair.a);
	CHECK(cq->events == events + 3);
	keyed_pair_down(&pair);
}

/* ---- errors ---- */

static void put_many(struct device_qp *q, unsigned n, uint8_t ce)
{
	while (n--)
		put_nop(q, ce);
}

/* The first request fails, and those behind it are flushed. */
static void expect_errors(struct device_qp *q, uint8_t failed, uint8_t ce, unsigned flushed)
{
	const struct cqe64_err *c;

	put_plain(q, NO_OPCODE, failed);
	put_many(q, 4, ce);
	device_ring(q);
	c = (const void *)device_cq_poll(&q->cq);
	CHECK(c && c->op_own >> 4 == CQE_OP_REQ_ERR && c->syndrome == CQE_SYN_LOCAL_QP_OP);
	CHECK(completions(q, CQE_OP_REQ_ERR, CQE_SYN_WR_FLUSH) == flushed);
	/* Later ones are like those that were there. */
	put_many(q, 2, ce);
	device_ring(q);
	CHECK(completions(q, CQE_OP_REQ_ERR, CQE_SYN_WR_FLUSH) == flushed / 2);
}

static void test_errors(void)
{
	static const struct {
		uint8_t failed, ce;
		unsigned flushed;
	} rows[] = {
		{ERROR_ONLY, ERROR_ONLY, 4}, {FIRST_ERROR, FIRST_ERROR, 0},
		{ALWAYS, FIRST_ERROR, 0},    {FIRST_ERROR, ERROR_ONLY, 4},
		{FIRST_ERROR, ALWAYS, 4},    {FIRST_ERROR, EVENT, 4},
	};

	for (unsigned i = 0; i < array_size(rows); i++) {
		keyed_pair_up(&pair);
		expect_errors(&pair.a, rows[i].failed, rows[i].ce, rows[i].flushed);
		CHECK(pair.a.cq.events == (rows[i].ce == EVENT ? 6 : 0));
		keyed_pair_down(&pair);
	}
}

/* A queue that is put into the error state has no request that failed: the first flushed one says
 * so, again after each reset. */
static void test_flushed(void)
{
	struct qp_attr attr = {.port_num = 1};

	keyed_pair_up(&pair);
	for (unsigned round = 0; round < 2; round++) {
		attr.state = IB_QPS_INIT;
		if (round)
			CHECK(!qp_modify(pair.a.qp, &attr,
					 IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
						 IB_QP_ACCESS_FLAGS));
		attr.state = IB_QPS_ERR;
		CHECK(!qp_modify(pair.a.qp, &attr, IB_QP_STATE));
		put_many(&pair.a, 5, FIRST_ERROR);
		device_ring(&pair.a);
		CHECK(completions(&pair.a, CQE_OP_REQ_ERR, CQE_SYN_WR_FLUSH) == 1);
		put_many(&pair.a, 1, ALWAYS);
		device_ring(&pair.a);
		CHECK(completions(&pair.a, CQE_OP_REQ_ERR, CQE_SYN_WR_FLUSH) == 1);
		attr.state = IB_QPS_RESET;
		CHECK(!qp_modify(pair.a.qp, &attr, IB_QP_STATE));
		pair.a.sq_pi = 0;
		pair.a.dbrec[DBREC_SEND] = be32_of(0);
	}
	keyed_pair_down(&pair);
}

/* ---- queues that go on after an error ---- */

/* Requests behind an error of an unreliable queue are flushed until the program lets it go on; then
 * an error is the first one again. */
static void test_sqe(void)
{
	static struct test_device device;
	static struct device_qp q;
	struct qp_attr attr;

	device_up(&device);
	device_qp_up(&device, 0, &q, IB_QPT_UC);
	device_connect(&device, 0, &q, &q);
	for (unsigned round = 0; round < 3; round++) {
		const struct cqe64_err *c;

		put_plain(&q, NO_OPCODE, FIRST_ERROR);
		put_many(&q, 3, FIRST_ERROR);
		device_ring(&q);
		c = (const void *)device_cq_poll(&q.cq);
		CHECK(c && c->syndrome == CQE_SYN_LOCAL_QP_OP && !device_cq_poll(&q.cq));
		attr = (struct qp_attr){.state = IB_QPS_RTS, .cur_state = IB_QPS_SQE};
		CHECK(!qp_modify(q.qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE));
		put_nop(&q, ALWAYS);
		device_ring(&q);
		CHECK(completions(&q, CQE_OP_REQ, 0) == 1);
	}
	/* In error without one that failed, the first flushed one says so. */
	attr.state = IB_QPS_ERR;
	CHECK(!qp_modify(q.qp, &attr, IB_QP_STATE));
	put_many(&q, 3, FIRST_ERROR);
	device_ring(&q);
	CHECK(completions(&q, CQE_OP_REQ_ERR, CQE_SYN_WR_FLUSH) == 1);
	device_qp_down(&q);
	device_down(&device);
}

/* ---- frames ---- */

static uint8_t frame[FRAME];

static void put_frame(struct device_qp *q, uint8_t ce)
{
	struct wqe_eth e = {.inline_hdr_sz = be16_of(0)};
	struct device_wqe w;

	device_wqe_begin(q, &w, WQE_OP_SEND, ce, 0);
	memcpy(w.bytes + w.at, &e, sizeof(e));
	w.at += (uint32_t)align_up(sizeof(e), 16);
	device_wqe_inline(&w, frame, FRAME);
	device_wqe_put(&w);
}

static void test_frames(void)
{
	static const enum ib_qp_state states[] = {IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS};
	static struct test_device device;
	static struct device_qp q;

	device_up(&device);
	device_qp_up(&device, ETHERNET, &q, IB_QPT_RAW_PACKET);
	for (unsigned i = 0; i < array_size(states); i++) {
		struct qp_attr attr = {.state = states[i], .port_num = 1};

		CHECK(!qp_modify(q.qp, &attr, IB_QP_STATE | (i ? 0 : IB_QP_PORT)));
	}
	expect_events(&q, put_frame);
	expect_errors(&q, FIRST_ERROR, FIRST_ERROR, 0);
	device_qp_down(&q);
	device_qp_up(&device, ETHERNET, &q, IB_QPT_RAW_PACKET);
	for (unsigned i = 0; i < array_size(states); i++) {
		struct qp_attr attr = {.state = states[i], .port_num = 1};

		CHECK(!qp_modify(q.qp, &attr, IB_QP_STATE | (i ? 0 : IB_QP_PORT)));
	}
	expect_errors(&q, ERROR_ONLY, ERROR_ONLY, 4);
	device_qp_down(&q);
	device_down(&device);
}

/* ---- completions that wait for company ---- */

static int compressed_events;

static void compressed_event(void *user)
{
	(void)user;
	compressed_events++;
}

/* One that gives an event waits no less than others; the event comes with it. */
static void test_compressed(uint8_t compression)
{
	static struct test_device device;
	static struct device_qp q;
	static struct cqe64 ring[DEVICE_CQES];
	be32 dbrec[2] = {0};
	struct cq_attr attr = {
		.buf = ring,
		.entries = DEVICE_CQES,
		.cqe_bytes = CQE_BYTES,
		.dbrec = dbrec,
		.compression = compression,
		.event = compressed_event,
	};
	struct cq *cq;

	memset(&q, 0, sizeof(q));
	device_up(&device);
	compressed_events = 0;
	CHECK(!cq_create(device.adapter[0], &attr, &cq));
	device_sender_up(&device, &q, cq);
	put_many(&q, 5, ALWAYS);
	device_ring(&q);
	CHECK(!compressed_events);
	put_many(&q, 2, ALWAYS);
	put_nop(&q, EVENT);
	put_many(&q, 2, ALWAYS);
	device_ring(&q);
	CHECK(compressed_events == 1);
	put_many(&q, 5, ALWAYS);
	device_ring(&q);
	CHECK(compressed_events == 1);
	qp_destroy(q.qp);
	CHECK(!cq_destroy(cq));
	device_down(&device);
}

int main(void)
{
	test_events();
	test_compressed(CQ_COMPRESSED_BASIC);
	test_compressed(CQ_COMPRESSED_ENHANCED);
	test_armed();
	test_errors();
	test_flushed();
	test_sqe();
	test_frames();
	return 0;
}
