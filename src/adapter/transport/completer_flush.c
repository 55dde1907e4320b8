// SPDX-License-Identifier: BSD-2-Clause
/*
 * Requests that end in error.  Their completions give memory back to the program, so they wait until
 * peers have left it.
 */
#include "adapter/transport/completer.h"

#include "adapter/bypass/bypass.h"
#include "adapter/qp/qp_state.h"
#include "adapter/qp/send_cqe.h"
#include "adapter/transport/dci.h"
#include "base/trace.h"

/* An error in the send queue of a UC or UD QP stops only the send queue (IBTA 10.3.1). */
static void send_queue_failed(struct qp *qp, const char *why)
{
	uint32_t rts = IB_QPS_RTS;

	if (qp_is_reliable(qp) ||
	    !atomic_compare_exchange_strong(&qp->state, &rts, (uint32_t)IB_QPS_SQE)) {
		qp_fail(qp, why);
		return;
	}
	trace(qp, state, qp->qpn, qp_state_name(IB_QPS_RTS), qp_state_name(IB_QPS_SQE), why);
	expose_object_failed(qp->row, why);
	qp_kick(qp);
}

void completer_withdraw(struct qp *qp)
{
	if (!qp_is_reliable(qp) || atomic_load(&qp->comp.withdrawn))
		return;
	atomic_store(&qp->comp.withdrawn, 1);
	if (wire_withdraw(qp->adapter->wire, qp->attr.dest_qpn, qp->qpn))
		atomic_fetch_add(&qp->comp.given_up, 1);
}

/* True if a peer may be reading what was given up. */
static bool completer_awaits(struct qp *qp)
{
	return unlikely(atomic_load_explicit(&qp->comp.given_up, memory_order_relaxed) !=
			atomic_load_explicit(&qp->comp.waited_for, memory_order_relaxed));
}

/*
 * True if the request stands before the index in memory.  In the error state a device completes only
 * what does, whatever it has fetched and executed before: a program that has written a smaller value
 * by mistake sees no completion, not even that of the failed request.  An index that cannot be read
 * holds nothing back.
 */
static bool before_producer(const struct qp *qp, const struct send_op *op)
{
	uint32_t producer;
	uint16_t ahead;

	if (!usermem_fetch_be32(qp->producer, &producer))
		return true;
	ahead = (uint16_t)(producer - op->block);
	/* An index beyond the ring does not stand behind the request either. */
	return ahead && (ahead <= qp->create.sq_blocks || !(ahead & 0x8000));
}

/* Gives the first outstanding request its own error, if it has failed, and every other one a flush
 * error; all of them were given up before.  False: some are left, which 'up_to_producer' keeps. */
static bool flush_outstanding(struct qp *qp, bool up_to_producer)
{
	uint32_t first = atomic_load(&qp->comp.head);
	uint32_t tail = atomic_load(&qp->req.tail);
	uint32_t n;

	for (n = first; n != tail; n++) {
		struct send_op *op = qp_send_op(qp, n);

		if (up_to_producer && unlikely(!before_producer(qp, op)))
			break;
		if (op->awaits_answer)
			atomic_fetch_sub(&qp->comp.rd_outstanding, 1);
		atomic_store(&qp->comp.head, n + 1);
		/* A request that had ended behind the failed one is flushed like the others (IBTA
		 * 10.3.1). */
		if (n == first && op->done && op->syndrome)
			send_cqe_error(qp, op);
		else
			send_cqe_flush(qp, op);
		atomic_store(&qp->comp.completed, n + 1);
	}
	/* The cause has been told: what is left is flushed, even if it has failed by itself. */
	if (n != tail && n != first)
		qp_send_op(qp, n)->syndrome = 0;
	atomic_store(&qp->waiting, 0);
	timer_disarm(&qp->timer);
	return n == tail;
}

/* True if an error's completion has to wait, because it gives memory back that a peer may still
 * read.  We hold a lock, so the requester waits for the peer and then comes back here. */
static bool error_waits(struct qp *qp)
{
	completer_withdraw(qp);
	if (!completer_awaits(qp))
		return false;
	atomic_store(&qp->comp.resend, true);
	qp_kick(qp);
	return true;
}

/*
 * The completion of a failed request tells the program that the queue pair is in error, so it comes
 * when that is so and peers have left its memory: with the flush (requester_flush).  A DCI that
 * contains the error does not flush, so it waits for them here.
 */
void completer_failed(struct qp *qp, const struct send_op *op)
{
	enum ib_qp_state state = qp_state(qp);

	if (state == IB_QPS_ERR || state == IB_QPS_SQE || (qp->dci && error_waits(qp)))
		return;
	if (!qp->dci || !dci_contain(qp)) {
		send_queue_failed(qp, cqe_syndrome_name(op->syndrome));
		return;
	}
	(void)flush_outstanding(qp, false);
	/* the requester may be sending one of them just now */
	atomic_store(&qp->comp.resend, true);
	qp_kick(qp);
}

/* True if the first outstanding request has failed and the wait for peers kept it. */
static bool completer_kept(struct qp *qp)
{
	uint32_t head = atomic_load(&qp->comp.head);

	return unlikely(qp->dci) && head != atomic_load(&qp->req.tail) &&
	       qp_send_op(qp, head)->done;
}

enum completer_settled completer_settle(struct qp *qp)
{
	if (completer_awaits(qp)) {
		if (!qp->req.revocation)
			bypass_revoke_ask(qp);
		if (!bypass_revoke_over(qp) || completer_awaits(qp)) { /* more was given up since */
			qp_kick_later(qp);
			return COMPLETER_WAITS;
		}
	} else if (likely(!completer_kept(qp))) {
		/* A modification that ends the wait tells nobody. */
		return COMPLETER_NOTHING;
	}
	completer_retire_done(qp);
	return COMPLETER_SETTLED;
}

bool completer_give_up(struct qp *qp)
{
	spin_lock(&qp->comp.lock);
	if (atomic_load(&qp->comp.head) != atomic_load(&qp->req.tail))
		completer_withdraw(qp);
	spin_unlock(&qp->comp.lock);
	return completer_settle(qp) != COMPLETER_WAITS;
}

bool completer_flush(struct qp *qp)
{
	bool all;

	spin_lock(&qp->comp.lock);
	/* Queues that are rung by value have no record in memory. */
	all = flush_outstanding(qp, qp_state(qp) == IB_QPS_ERR && !qp->create.region);
	spin_unlock(&qp->comp.lock);
	return all;
}
