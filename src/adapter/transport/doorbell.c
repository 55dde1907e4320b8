// SPDX-License-Identifier: BSD-2-Clause
/* Executes a send doorbell: first the bursts of plain requests, then the requester for the rest. */
#include "adapter/bypass/bypass.h"
#include "adapter/transport/requester.h"
#include "adapter/transport/responder.h"
#include "adapter/transport/send_burst.h"
#include "base/hazard.h"

/*
 * Sends what we owe the peer in front of our requests, as hardware does: the peer's program then
 * hears that its message has come before it hears our program's answer to it.  Bursts of SENDs take
 * the acknowledgement along.
 */
static bool qp_run_owing(struct qp *qp)
{
	if (send_burst_run(qp))
		return true;
	if (send_ring_ready(qp, qp->req.next_block) > 0)
		responder_acknowledge_first(qp);
	return rdma_burst_run(qp);
}

static bool qp_run_bursts(struct qp *qp)
{
	if (unlikely(atomic_load_explicit(&qp->resp.ack_owed, memory_order_relaxed)))
		return qp_run_owing(qp);
	return rdma_burst_run(qp) || send_burst_run(qp);
}

void qp_run(struct qp *qp)
{
	if (!baton_enter(&qp->sq))
		return;
	do {
		if (!qp_run_bursts(qp))
			requester_run(qp);
	} while (!baton_leave(&qp->sq));
}

/* Sends what other queue pairs owe first, too, because a program may answer on another queue pair
 * than the one by which the question came. */
void qp_doorbell(struct qp *qp)
{
	if (unlikely(runq_ready(&qp->adapter->runq)) &&
	    !atomic_load_explicit(&qp->resp.ack_owed, memory_order_relaxed))
		adapter_run(qp->adapter);
	qp_run(qp);
	adapter_run(qp->adapter);
}

bool qp_bell(struct adapter *a, uint32_t region, uint32_t qpn, uint16_t pi)
{
	struct qp *qp;

	hazard_enter();
	qp = number_find(&a->qps, qpn);
	if (qp && (!qp->create.region || qp->create.region != region))
		qp = NULL;
	/* A queue that was reset begins with the first block, whatever its bell said before. */
	if (qp && qp_state(qp) != IB_QPS_RESET) {
		atomic_store_explicit(&qp->bell, htobe32(pi), memory_order_release);
		qp_doorbell(qp);
	}
	hazard_leave();
	return qp;
}
