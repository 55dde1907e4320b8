// SPDX-License-Identifier: BSD-2-Clause
/* What all parts of a queue pair need: its locks, the change to the error state, its queues. */
#include "adapter/qp/flow.h"
#include "adapter/qp/qp.h"
#include "adapter/qp/qp_state.h"
#include "base/hazard.h"
#include "base/trace.h"
#include "usermem/usermem.h"

#include <string.h>

/*
 * Signature pipelining (mlx5dv_qp_cancel_posted_send_wrs(3)): a send queue stops when one of its
 * transfers meets a signature error, so that the program can withdraw requests that depend on the
 * transfer, for example a response with good status.  The queue enters the SQD state of the IB
 * specification by itself: the SQ_DRAINED event tells the program, which resumes the queue with a
 * modification to RTS.
 */

void qp_set_drain_sigerr(struct qp *qp, bool drain)
{
	atomic_store(&qp->drain_sigerr, drain);
}

void qp_drain(struct qp *qp)
{
	uint32_t rts = IB_QPS_RTS;

	/* The queue enters SQD once, however many errors follow before it resumes. */
	if (!atomic_load(&qp->drain_sigerr) ||
	    !atomic_compare_exchange_strong(&qp->state, &rts, (uint32_t)IB_QPS_SQD))
		return;
	trace(qp, state, qp->qpn, qp_state_name(IB_QPS_RTS), qp_state_name(IB_QPS_SQD),
	      "signature-error");
	trace(sq, drain, qp->qpn, "signature-error");
	atomic_store(&qp->drain_notify, true);
	/* The last request may have ended between the two stores. */
	qp_kick(qp);
}

void qp_sq_counters(struct qp *qp, uint16_t *hw, uint16_t *sw)
{
	uint32_t producer;

	qp_lock(qp);
	*hw = (uint16_t)qp->req.next_block;
	*sw = *hw;
	if (qp->create.sq_blocks && usermem_load_be32(qp->producer, &producer))
		*sw = (uint16_t)producer;
	qp_unlock(qp);
}

/* The responder's side of the word that it shares with a peer in another process (qp_word.h). */

/* A thread that takes the state away revokes the word afterwards.  So either we see the state, or
 * our exchange fails. */
void resp_open(struct qp *qp)
{
	struct responder *r = &qp->resp;
	uint64_t word = qp_word_load(&r->shared->word);

	r->published = resp_bypass_ok(qp) && qp_word_open(&r->shared->word, word, r->epsn, r->msn);
}

void resp_revoke(struct qp *qp)
{
	/* If the initiator of a DC target's responder has ended, another responder may own the
	 * block by now; that one opens it again with the next packet. */
	struct qp_block *b = __atomic_load_n(&qp->resp.shared, __ATOMIC_RELAXED);

	if (b)
		qp_word_revoke(&b->word);
}

static bool view_same_peer(const struct qp_view *a, const struct qp_view *b)
{
	return a->transport == b->transport && a->dest_qpn == b->dest_qpn && a->port == b->port &&
	       a->dest_port == b->dest_port && a->pdn == b->pdn && a->pkey == b->pkey &&
	       a->xrcdn == b->xrcdn && a->connection == b->connection;
}

bool resp_set_view(struct qp *qp, const struct qp_view *view)
{
	struct responder *r = &qp->resp;
	bool same = view_same_peer(&r->view, view), less = r->view.access & ~view->access;
	bool remote = r->shared && (view->port != view->dest_port ||
				    !wire_owns(qp->adapter->wire, view->dest_qpn));

	r->view = *view;
	if (remote != r->remote) {
		resp_close(qp);
		r->bypass_ok = 0;
		r->remote = remote;
	}
	if (!r->shared)
		return false;
	/*
	 * What the peer has executed still counts, because packets would execute it again.  Peers
	 * look at the rights once more in the access, and the caller waits for those that have
	 * looked before.
	 */
	if (same) {
		__atomic_store_n(&r->shared->view.access, view->access, __ATOMIC_RELAXED);
		return less;
	}
	resp_close(qp);
	qp_word_revoke(&r->shared->word);
	/* A peer that sees one of the new values sees the new epoch too. */
	atomic_thread_fence(memory_order_release);
	r->shared->view = *view;
	return true;
}

/* ---- queue pairs as people see them (exposure/object.h) ---- */

static const struct object_form qp_form = {{
	[FIGURE_NUMBER] = OBJECT_PLACE(struct qp, qpn),
	[FIGURE_STATE] = OBJECT_PLACE(struct qp, state),
	[FIGURE_PEER] = OBJECT_PLACE(struct qp, attr.dest_qpn),
	[FIGURE_PSN_NEXT] = OBJECT_PLACE(struct qp, req.psn),
	[FIGURE_PSN_ACKED] = OBJECT_PLACE(struct qp, comp.acked_psn),
	[FIGURE_PSN_EXPECTED] = OBJECT_PLACE(struct qp, resp.epsn),
	[FIGURE_SENT] = OBJECT_PLACE(struct qp, req.tail),
	[FIGURE_RETIRED] = OBJECT_PLACE(struct qp, comp.head),
	[FIGURE_SEND_ENTRIES] = OBJECT_PLACE(struct qp, create.sq_blocks),
	[FIGURE_FETCHED] = OBJECT_PLACE(struct qp, req.next_block),
	[FIGURE_TAKEN] = OBJECT_PLACE(struct qp, rq.head),
	[FIGURE_ENTRIES] = OBJECT_PLACE(struct qp, create.rq_wqes),
	[FIGURE_MIGRATION] = OBJECT_PLACE(struct qp, migration),
	[FIGURE_RECORD] = OBJECT_PLACE(struct qp, create.dbrec),
}};

void qp_form_expose(struct wire *wire)
{
	expose_object_form(wire_expose(wire), OBJECT_QP, &qp_form);
}

void qp_list(struct qp *qp)
{
	const struct qp_create_attr *c = &qp->create;

	qp->row = expose_object(
		wire_expose(qp->adapter->wire),
		&(struct object_about){
			.at = (uintptr_t)qp,
			.kind = OBJECT_QP,
			.number = qp->qpn,
			.type = c->type,
			.port = wire_port_row(qp->adapter->wire),
			.pdn = c->pdn,
			.send_cqn = c->send_cq ? cq_number(c->send_cq) : OBJECT_NO_NUMBER,
			.recv_cqn = c->recv_cq ? cq_number(c->recv_cq) : OBJECT_NO_NUMBER,
			.srqn = c->srq ? srq_number(c->srq) : OBJECT_NO_NUMBER,
		});
}

void qp_window_shrink(struct qp *qp)
{
	int32_t half = atomic_load_explicit(&qp->comp.window, memory_order_relaxed) / 2;

	qp->comp.window_calm = half > WINDOW_LEAST ? half : WINDOW_LEAST;
	atomic_store_explicit(&qp->comp.window, qp->comp.window_calm, memory_order_relaxed);
}

void qp_async(struct qp *qp, enum ib_event event)
{
	trace(qp, event, qp->qpn, ib_event_name(event));
	if (qp->create.async)
		qp->create.async(qp->create.user, event);
}

/* False: the QP had failed before. */
static bool qp_fail_once(struct qp *qp, const char *why)
{
	uint32_t old;

	atomic_store(&qp->resp.revoked, true);
	old = atomic_exchange(&qp->state, (uint32_t)IB_QPS_ERR);
	if (old == IB_QPS_ERR)
		return false;
	atomic_store(&qp->last_wqe_due, qp->create.srq != NULL);
	atomic_store_explicit(&qp->failed_by, why, memory_order_relaxed);
	trace(qp, state, qp->qpn, qp_state_name((enum ib_qp_state)old), qp_state_name(IB_QPS_ERR),
	      why);
	expose_object_failed(qp->row, why);
	/* Only resp_unlock sets it again, after a look at the state. */
	qp->resp.bypass_ok = 0;
	resp_revoke(qp);
	qp_kick(qp);
	return true;
}

void qp_fail(struct qp *qp, const char *why)
{
	(void)qp_fail_once(qp, why);
}

void qp_cannot_complete(struct qp *qp)
{
	/* A QP that is being destroyed is in RESET, and has to stay there. */
	if (qp_state(qp) != IB_QPS_RESET && qp_fail_once(qp, "completion-queue-overrun"))
		qp_async(qp, IB_EVENT_QP_FATAL);
}

void qp_lock(struct qp *qp)
{
	baton_take(&qp->sq);
	resp_lock(qp);
	spin_lock(&qp->comp.lock);
}

/*
 * Threads that came for the requester meanwhile have left, because the holder of the baton looks
 * for their work before it leaves.  This holder cannot tell what is new, so it runs the requester.
 */
void qp_unlock(struct qp *qp)
{
	bool rung = false;

	spin_unlock(&qp->comp.lock);
	resp_unlock(qp);
	while (!baton_leave(&qp->sq))
		rung = true;
	if (rung) {
		qp_kick(qp);
		adapter_run(qp->adapter);
	}
}

void qp_reset_queues(struct qp *qp)
{
	/* What has no send queue may have no record either. */
	qp->producer = NULL;
	if (qp->create.region)
		qp->producer = (const void *)(uintptr_t)&qp->bell;
	else if (qp->create.dbrec)
		qp->producer = (const be32 *)qp->create.dbrec + DBREC_SEND;
	atomic_store(&qp->bell, 0);
	atomic_store(&qp->rung, 0);
	atomic_store(&qp->req.silent_plus_1, 0);
	atomic_store(&qp->enabled, 0);
	atomic_store(&qp->receives_enabled, 0);
	cq_wait_end(qp->adapter, &qp->wait.completions);
	timer_disarm(&qp->wait.timer);
	qp->wait.pause_ns = 0;
	qp->req.next_block = 0;
	qp->req.cur = 0;
	qp->req.cur_off = 0;
	qp->req.stopped = false;
	qp->req.marked = 0;
	qp->req.target = NULL;
	qp->req.steered_plus_1 = 0;
	qp->req.executed = false;
	memset(qp->req.places, 0, sizeof(qp->req.places));
	atomic_store(&qp->req.tail, 0);
	atomic_store(&qp->comp.head, 0);
	atomic_store(&qp->comp.completed, 0);
	atomic_store(&qp->comp.rd_outstanding, 0);
	atomic_store(&qp->comp.resend, false);
	atomic_store(&qp->comp.withdrawn, 0);
	qp->comp.late = (struct ack_lateness){0};
	qp->comp.asked = false;
	atomic_store(&qp->comp.window, WINDOW_FIRST);
	qp->comp.window_calm = WINDOW_MOST;
	atomic_store(&qp->comp.error_told, false);
	atomic_store(&qp->waiting, 0);
	timer_disarm(&qp->timer);
	flow_end(qp);
	atomic_store(&qp->migration, (uint32_t)IB_MIG_MIGRATED);
	atomic_store(&qp->drain_notify, false);
	atomic_store(&qp->last_wqe_due, false);
	resp_close(qp);
	qp->resp.nak_sent = false;
	qp->resp.in_message = false;
	qp->resp.have_recv = false;
	qp->resp.srq = qp->create.srq;
	qp->resp.pdn = qp->create.pdn;
	qp->resp.ack_owed = false;
	qp->resp.rd_count = 0;
	qp->resp.rd_answered = 0;
	qp->resp.rd_once = 0;
	qp->resp.rd_off = 0;
	qp->resp.refusal = 0;
	qp->resp.msn = 0;
	qp->rq = (struct recv_ring){
		.buf = qp->create.rq_buf,
		.wqes = qp->create.rq_wqes,
		.wqe_bytes = qp->create.rq_wqe_bytes,
		.dbrec = qp->create.dbrec ? (const be32 *)qp->create.dbrec + DBREC_RECV : NULL,
		.enabled = qp->create.slave_receive ? &qp->receives_enabled : NULL,
	};
}

uint16_t send_ring_rung(struct qp *qp, uint32_t block, uint32_t producer)
{
	uint32_t rung = atomic_load(&qp->rung), blocks = qp->create.sq_blocks;
	uint16_t posted = (uint16_t)(producer - block), ahead = (uint16_t)(rung - block);

	/* In the error state a device goes by the record alone. */
	if (qp_state(qp) == IB_QPS_ERR)
		return posted;
	if (atomic_load(&qp->req.silent_plus_1) == producer + UINT64_C(1))
		posted = 0;
	else
		atomic_store(&qp->req.silent_plus_1, 0);
	if (!rung)
		return posted;
	if (!ahead || ahead > blocks) {
		/* If it fails, the register has said more meanwhile, and who saw that runs the queue. */
		atomic_compare_exchange_strong(&qp->rung, &rung, 0);
		return posted;
	}
	if (posted >= ahead && posted <= blocks)
		return posted;
	atomic_store(&qp->req.silent_plus_1, producer + UINT64_C(1));
	return ahead;
}

void qp_forget(struct qp *qp)
{
	runq_remove(&qp->adapter->runq, &qp->run);
	timer_retire(&qp->adapter->timers, &qp->timer);
	cq_wait_end(qp->adapter, &qp->wait.completions);
	timer_retire(&qp->adapter->timers, &qp->wait.timer);
	flow_end(qp);
	timer_retire(&qp->adapter->timers, &qp->flow.timer);
}

/* Called under a lock of the wire.  The acknowledgement may still arrive, so the timer decides: it
 * makes the requester send again, which then finds that the key no longer exists.  Without a timer
 * the requester does that now. */
void qp_payload_lost(void *adapter, uint32_t qpn)
{
	struct adapter *a = adapter;
	struct qp *qp;

	hazard_enter();
	qp = number_find(&a->qps, qpn);
	if (qp && !qp->ack_timeout_ns) {
		atomic_store(&qp->comp.resend, true);
		qp_kick_later(qp);
	}
	hazard_leave();
}
