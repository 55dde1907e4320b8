// SPDX-License-Identifier: BSD-2-Clause
/*
 * Receiver not ready: the requester waits, goes back and sends the message again, also when another
 * thread has it run at the very moment when the wait ends.  What it sends then is a whole message,
 * never the rest, of no bytes, of one that was sent to its end.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "adapter/core/device.h"
#include "adapter/qp/qp.h"
#include "adapter_device.h"
#include "check.h"

#define MTU	 1024u
#define BYTES	 8192u
#define SIGNALED WQE_CTRL_CE_ALWAYS
#define MESSAGES 1000u
#define FOREVER	 7u
/* 4.3 s: what is asked of here is not the retry of lost packets. */
#define TIMEOUT 20u

struct rnr_case {
	struct test_device device;
	struct device_qp a, b;
	uint8_t src[BYTES], dst[BYTES];
	struct mkey *ma, *mb;
	uint32_t lkey, rkey;
	_Atomic(bool) over;
};

static void wait_forever(struct device_qp *q)
{
	const struct qp_attr sqd = {.state = IB_QPS_SQD}, rts = {.state = IB_QPS_RTS};
	const struct qp_attr retry = {
		.state = IB_QPS_SQD, .rnr_retry = FOREVER, .timeout = TIMEOUT, .retry_cnt = 7};

	CHECK(!qp_modify(q->qp, &sqd, IB_QP_STATE));
	CHECK(!qp_modify(q->qp, &retry,
			 IB_QP_STATE | IB_QP_RNR_RETRY | IB_QP_TIMEOUT | IB_QP_RETRY_CNT));
	CHECK(!qp_modify(q->qp, &rts, IB_QP_STATE));
}

static void rnr_case_up(struct rnr_case *t)
{
	memset(t, 0, sizeof(*t));
	device_up(&t->device);
	device_qp_up(&t->device, 0, &t->a, IB_QPT_RC);
	device_qp_up(&t->device, 0, &t->b, IB_QPT_RC);
	device_connect(&t->device, 0, &t->a, &t->b);
	wait_forever(&t->a);
	for (unsigned i = 0; i < BYTES; i++)
		t->src[i] = (uint8_t)(i * 11 + 1);
	t->lkey = device_mr(&t->device, 0, t->a.pdn, t->src, BYTES, DEVICE_ALL_ACCESS, &t->ma);
	t->rkey = device_mr(&t->device, 0, t->b.pdn, t->dst, BYTES, DEVICE_ALL_ACCESS, &t->mb);
}

static void rnr_case_down(struct rnr_case *t)
{
	device_qp_down(&t->a);
	device_qp_down(&t->b);
	mkey_destroy(t->device.adapter[0], t->ma);
	mkey_destroy(t->device.adapter[0], t->mb);
	device_down(&t->device);
}

static void post_request(struct rnr_case *t, uint8_t opcode, uint32_t bytes)
{
	struct device_wqe w;

	device_wqe_begin(&t->a, &w, opcode, SIGNALED, 0);
	if (opcode == WQE_OP_RDMA_WRITE || opcode == WQE_OP_RDMA_WRITE_IMM)
		device_wqe_raddr(&w, (uintptr_t)t->dst, t->rkey);
	if (bytes)
		device_wqe_data(&w, t->src, bytes, t->lkey);
	device_wqe_end(&w);
}

static const struct cqe64 *await_completion(struct rnr_case *t, struct device_cq *cq)
{
	const struct cqe64 *c;

	while (!(c = device_cq_poll(cq))) {
		uint64_t deadline = UINT64_MAX;

		adapter_progress(t->device.adapter[0], &deadline);
		sched_yield();
	}
	return c;
}

static void expect_sent(struct rnr_case *t)
{
	CHECK(await_completion(t, &t->a.cq)->op_own >> 4 == CQE_OP_REQ);
}

static void expect_received(struct rnr_case *t, uint8_t opcode, uint32_t bytes)
{
	const struct cqe64 *c = await_completion(t, &t->b.cq);
	bool send = opcode == WQE_OP_SEND;

	CHECK(c->op_own >> 4 == (send ? CQE_OP_RESP_SEND : CQE_OP_RESP_WRITE_IMM));
	CHECK(be32_get(c->byte_cnt) == bytes && !memcmp(t->dst, t->src, bytes));
}

/*
 * The wait is over and the requester not yet told where to go on: a moment that another thread must
 * not see, and if it does, nothing but what lies behind the message that was refused may leave,
 * which the responder drops.
 */
static void test_end_of_wait(uint8_t opcode, uint32_t bytes, bool more)
{
	static struct rnr_case t;

	rnr_case_up(&t);
	post_request(&t, opcode, bytes);
	CHECK(atomic_load(&t.a.qp->waiting) & QP_WAIT_RNR);
	if (more)
		post_request(&t, WQE_OP_RDMA_WRITE, 64);
	device_recv(&t.b, t.dst, BYTES, t.rkey);
	atomic_fetch_and(&t.a.qp->waiting, ~(unsigned)QP_WAIT_RNR);
	device_ring(&t.a);
	CHECK(qp_state(t.a.qp) == IB_QPS_RTS && qp_state(t.b.qp) == IB_QPS_RTS);
	/* the wait goes on until the timer ends it */
	atomic_fetch_or(&t.a.qp->waiting, QP_WAIT_RNR);
	expect_received(&t, opcode, bytes);
	expect_sent(&t);
	if (more)
		expect_sent(&t);
	CHECK(!device_cq_poll(&t.a.cq) && !device_cq_poll(&t.b.cq));
	rnr_case_down(&t);
}

/* The timers, as the engine has them run. */
static void *run_timers(void *arg)
{
	struct rnr_case *t = arg;

	while (!atomic_load(&t->over)) {
		uint64_t deadline = UINT64_MAX;

		adapter_progress(t->device.adapter[0], &deadline);
	}
	return NULL;
}

/* Doorbells at any time, of which some meet the end of a wait. */
static void test_doorbells(uint8_t opcode, uint32_t bytes)
{
	static struct rnr_case t;
	pthread_t thread;

	rnr_case_up(&t);
	CHECK(!pthread_create(&thread, NULL, run_timers, &t));
	for (uint32_t i = 0; i < MESSAGES; i++) {
		const struct cqe64 *c;

		post_request(&t, opcode, bytes);
		for (uint32_t n = 0; n < 50; n++)
			device_ring(&t.a);
		device_recv(&t.b, t.dst, BYTES, t.rkey);
		while (!(c = device_cq_poll(&t.a.cq)))
			device_ring(&t.a);
		CHECK(c->op_own >> 4 == CQE_OP_REQ);
		c = device_cq_poll(&t.b.cq);
		CHECK(c && be32_get(c->byte_cnt) == bytes);
	}
	atomic_store(&t.over, true);
	CHECK(!pthread_join(thread, NULL));
	rnr_case_down(&t);
}

int main(void)
{
	static const uint32_t bytes[] = {0, 1, 64, MTU - 1, MTU, MTU + 1, 5000};

	alarm(120); /* nothing may hang */
	for (size_t i = 0; i < array_size(bytes); i++) {
		for (unsigned more = 0; more < 2; more++) {
			test_end_of_wait(WQE_OP_SEND, bytes[i], more);
			test_end_of_wait(WQE_OP_RDMA_WRITE_IMM, bytes[i], more);
		}
	}
	test_doorbells(WQE_OP_SEND, 64);
	test_doorbells(WQE_OP_RDMA_WRITE_IMM, 64);
	return 0;
}
