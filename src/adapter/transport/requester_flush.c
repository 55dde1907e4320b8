// SPDX-License-Identifier: BSD-2-Clause
/* Completes everything that a program posts on a queue pair in error with a flush error. */
#include "adapter/bypass/bypass.h"
#include "adapter/transport/requester.h"

#include "adapter/qp/send_cqe.h"
#include "adapter/qp/send_wqe.h"
#include "adapter/transport/completer.h"
#include "adapter/transport/responder.h"
#include "base/clock.h"
#include "base/fence.h"

/*
 * The time between two looks at the doorbell record of a queue in error: it begins with the first and
 * doubles up to the second.  A card completes within 14 to 73 us what stands before a record that was
 * raised.
 */
#define LOOK_FIRST_NS 16000u
#define LOOK_LAST_NS  250000000u

/*
 * Nobody tells of a store into memory, so the device looks again.  If no request is known that stands
 * behind the record, it gives up after the last look: an idle queue in error costs nothing, and a
 * program that posts rings a doorbell.  No WAIT needs the timer any more.
 */
static void look_again(struct qp *qp, bool progress, bool all)
{
	uint32_t producer;

	if (qp->create.region || qp_state(qp) != IB_QPS_ERR ||
	    !usermem_fetch_be32(qp->producer, &producer))
		return;
	if (progress)
		qp->wait.pause_ns = 0;
	else if (all && qp->wait.pause_ns >= LOOK_LAST_NS)
		return;
	qp->wait.pause_ns = min_u64(qp->wait.pause_ns * 2, LOOK_LAST_NS);
	if (qp->wait.pause_ns < LOOK_FIRST_NS)
		qp->wait.pause_ns = LOOK_FIRST_NS;
	timer_arm(&qp->adapter->timers, &qp->wait.timer, clock_ns() + qp->wait.pause_ns);
}

/* Flushes everything on the send ring of a QP in error, up to the index in memory. */
static void requester_flush_ring(struct qp *qp)
{
	uint32_t head = atomic_load(&qp->comp.head), block = qp->req.next_block;
	bool all = completer_flush(qp);
	struct send_wqe w;

	if (all)
		qp->req.cur = atomic_load_explicit(&qp->req.tail, memory_order_relaxed);
	while (all && send_wqe_fetch(qp, qp->req.next_block, &w) == FETCH_OK) {
		struct send_op op = {.block = (uint16_t)qp->req.next_block,
				     .opcode = w.opcode,
				     .ce = qp_ce(qp, w.fm_ce_se)};

		if (!qp->create.silent)
			send_cqe_flush(qp, &op);
		qp->req.next_block += w.nblocks;
	}
	look_again(qp, head != atomic_load(&qp->comp.head) || block != qp->req.next_block, all);
}

void requester_flush(struct qp *qp)
{
	/* The thread that made the QP fail may not have done this yet. */
	if (atomic_exchange(&qp->resp.revoked, false)) {
		resp_revoke(qp);
		bypass_revoke_ask(qp);
	}
	if ((qp->create.sq_blocks && !completer_give_up(qp)) || !bypass_revoke_over(qp)) {
		qp_kick_later(qp);
		return;
	}
	if (qp->create.sq_blocks) {
		/* A completion in error says that nothing reaches the queue pair's memory any more.
		 * Threads of this process that are at it have the lock; none comes that sees the
		 * state. */
		resp_lock(qp);
		resp_unlock(qp);
		requester_flush_ring(qp);
	}
	/* Orders the store of the state before the read of the doorbell record; partner:
	 * qp_recv_posted. */
	if (qp->create.rq_wqes)
		fence_heavy();
	resp_lock(qp);
	/* The peer of a DC target may have opened a new connection meanwhile. */
	if (qp_state(qp) == IB_QPS_ERR)
		responder_flush(qp);
	resp_unlock(qp);
	/* The program may take the queue pair apart when it has the event and what the CQ holds. */
	if (atomic_exchange(&qp->last_wqe_due, false))
		qp_async(qp, IB_EVENT_QP_LAST_WQE_REACHED);
}
