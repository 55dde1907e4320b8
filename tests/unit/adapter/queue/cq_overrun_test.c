// SPDX-License-Identifier: BSD-2-Clause
/*
 * More completions than a CQ holds: one event, and nothing is overwritten.  A queue pair that cannot complete
 * fails, with an event of its own; its peer, whose CQ is another, does not.
 */
#include <unistd.h>

#include "adapter/qp/qp.h"
#include "adapter/queue/cq.h"
#include "keyed_pair.h"

#define RUN  16u
#define TURN (1u << 24)

static void push_run(struct device_cq *cq, struct cqe64 *like, const uint16_t *index)
{
	uint32_t appended;

	CHECK(cq_push_like(cq->cq, like, index, RUN, false, &appended) && appended == RUN);
}

static void failed_alone(const struct device_qp *failed, const struct device_qp *other)
{
	CHECK(failed->cq.async == 1 && failed->async[IB_EVENT_QP_FATAL] == 1);
	CHECK(qp_state(failed->qp) == IB_QPS_ERR);
	CHECK(!other->cq.async && !other->async[IB_EVENT_QP_FATAL]);
	CHECK(qp_state(other->qp) == IB_QPS_RTS);
}

static void by_requests(void)
{
	struct keyed_pair t;

	keyed_pair_up(&t);
	for (unsigned i = 0; i < DEVICE_CQES + 5; i++)
		keyed_pair_rdma(&t.a, WQE_OP_RDMA_WRITE, (uintptr_t)t.dst, t.rkey, (uintptr_t)t.src,
				t.lkey, 8);
	failed_alone(&t.a, &t.b);
	for (unsigned i = 0; i < DEVICE_CQES; i++)
		CHECK(!outcome(&t.a));
	CHECK(!device_cq_poll(&t.a.cq));
	keyed_pair_down(&t);
}

/* Its sender was told that the message has arrived, and goes on. */
static void by_receives(void)
{
	struct keyed_pair t;

	keyed_pair_up(&t);
	for (unsigned i = 0; i < DEVICE_CQES + 1; i++) {
		device_recv(&t.b, t.dst, 8, t.rkey);
		keyed_pair_send(&t.a, (uintptr_t)t.src, t.lkey, 8);
		CHECK(!outcome(&t.a));
	}
	failed_alone(&t.b, &t.a);
	keyed_pair_down(&t);
}

/* The program's record has 24 bits: what it said a turn ago is no room now. */
static void after_a_turn(void)
{
	static const uint16_t index[RUN];
	static struct test_device device;
	static struct device_cq cq;
	struct cqe64 like = {.op_own = CQE_OP_RESP_SEND << 4};
	uint32_t appended;

	device_up(&device);
	device_cq_up(&device, 0, &cq);
	for (uint32_t n = 0; n < TURN - DEVICE_CQES / 2; n += RUN) {
		push_run(&cq, &like, index);
		cq.ci += RUN;
		cq.dbrec[DBREC_CQ_CI] = be32_of(cq.ci & (TURN - 1));
	}
	for (unsigned n = 0; n < DEVICE_CQES; n += RUN)
		push_run(&cq, &like, index);
	CHECK(!cq.async);
	CHECK(!cq_push_like(cq.cq, &like, index, 1, false, &appended) && !appended);
	CHECK(cq.async == 1);
	CHECK(!cq_destroy(cq.cq));
	device_down(&device);
}

int main(void)
{
	alarm(120); /* nothing may hang */
	by_requests();
	by_receives();
	after_a_turn();
	return 0;
}
