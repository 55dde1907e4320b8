// SPDX-License-Identifier: BSD-2-Clause
/*
 * More completions than a CQ holds: one event, and nothing is overwritten.  A queue pair that cannot complete
 * fails, with an event of its own; its peer, whose CQ is another, does not.
 */
#include <unistd.h>

#include "adapter/qp/qp.h"
#include "keyed_pair.h"

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

int main(void)
{
	alarm(120); /* nothing may hang */
	by_requests();
	by_receives();
	return 0;
}
