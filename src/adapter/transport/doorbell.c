// SPDX-License-Identifier: BSD-2-Clause
/* Executes a send doorbell: first the bursts of plain requests, then the requester for the rest. */
#include "adapter/bypass/bypass.h"
#include "adapter/qp/qp.h"
#include "adapter/qp/send_cqe.h"
#include "adapter/qp/send_wqe.h"
#include "adapter/transport/ack_timer.h"
#include "adapter/transport/completer.h"
#include "adapter/transport/requester.h"
#include "adapter/transport/responder.h"
#include "adapter/transport/responder_state.h"
#include "base/hazard.h"
#include "base/trace.h"
#include "wire/short_send.h"

/*
 * Bursts of the plainest SENDs: each is one packet with one piece of data, in one block of the
 * ring, on a connection to another process.  All SENDs that a doorbell tells of go together from
 * the ring into the channel, as short SENDs (wire/short_send.h).  This code runs ahead of the
 * requester and leaves the same state as the requester would.  It leaves to the requester what is
 * unusual: requests of other kinds, fences, retransmissions, full channels, keys that refuse.
 *
 * An acknowledgement that the responder owes to the peer goes with the first request.  If there is
 * no request, it goes by itself as always (responder.c): the queue pair stays listed for that.
 */

/* The most requests that are sent while the channel is held. */
#define TURN 32u

/* The segments at the start of such a request. */
struct segments {
	struct wqe_ctrl ctrl;
	struct wqe_data data;
};

#define UNITS (sizeof(struct segments) / WQE_UNIT)

struct request {
	struct segments seg; /* a copy */
	uint8_t opcode;
	struct send_piece piece;
};

/* Reads the request at block; false: it is of another kind. */
static bool send_burst_fetch(const struct qp *qp, uint32_t block, struct request *w)
{
	const uint8_t *at = send_ring_at(qp, block);

	if (unlikely(!usermem_fetch(&w->seg, at, sizeof(w->seg))))
		return false;
	w->opcode = wqe_opcode(&w->seg.ctrl);
	return (w->opcode == WQE_OP_SEND || w->opcode == WQE_OP_SEND_IMM) &&
	       wqe_qpn(&w->seg.ctrl) == qp->qpn && !(w->seg.ctrl.fm_ce_se & WQE_CTRL_FENCE_MASK) &&
	       send_piece_read(qp, &w->seg.ctrl, &w->seg.data, at + offsetof(struct segments, data),
			       UNITS, &w->piece);
}

/* ---- the acknowledgement ---- */

/* Takes the acknowledgement that the responder owes, so that it goes in the record of the burst's
 * first SEND.  It does not wait for the
 * responder's lock, because its holder may be about to send the acknowledgement. */
static void lend_ack(struct qp *qp, struct short_send *b)
{
	struct responder *r = &qp->resp;

	if (qp->bth != BTH_RC || !atomic_load_explicit(&r->ack_owed, memory_order_relaxed) ||
	    !resp_try_lock(qp))
		return;
	if (r->ack_owed && r->ack_syndrome == (AETH_ACK | AETH_NO_CREDIT) &&
	    r->rd_answered == r->rd_count) {
		r->ack_owed = false;
		b->has_ack = true;
		b->ack_psn = r->ack_psn;
		b->ack_msn = r->msn;
	}
	resp_unlock(qp);
}

/* The acknowledgement did not go: owes it again, unless a newer one is owed by now. */
static void take_ack_back(struct qp *qp, const struct short_send *b)
{
	resp_lock(qp);
	if (!qp->resp.ack_owed && resp_receives(qp))
		resp_owe(qp, b->ack_psn);
	resp_unlock(qp);
}

/* ---- the burst ---- */

static uint8_t send_burst_op(const struct qp *qp, const struct request *w)
{
	return (uint8_t)(qp->bth |
			 (w->opcode == WQE_OP_SEND_IMM ? BTH_SEND_ONLY_IMM : BTH_SEND_ONLY));
}

static bool send_burst_solicited(const struct request *w)
{
	return w->seg.ctrl.fm_ce_se & WQE_CTRL_SOLICITED;
}

/* Describes the first request of a record, which is still empty. */
static void send_burst_say(const struct qp *qp, const struct request *w, struct short_send *b)
{
	b->opcode = send_burst_op(qp, w);
	b->solicited = send_burst_solicited(w);
	b->psn = qp->req.psn;
	b->imm = be32_get(w->seg.ctrl.imm);
	b->payload_len = w->piece.bytes;
	b->n = 0;
}

/* True if the request may go in the same record. */
static bool send_burst_joins(const struct qp *qp, const struct request *w,
			     const struct short_send *b)
{
	return w->piece.bytes == b->payload_len && send_burst_op(qp, w) == b->opcode &&
	       send_burst_solicited(w) == b->solicited &&
	       (w->opcode == WQE_OP_SEND || be32_get(w->seg.ctrl.imm) == b->imm);
}

/* Puts the request into the record, where its payload belongs. */
static bool send_one(struct qp *qp, const struct request *w, uint8_t *to)
{
	const uint8_t *from = send_piece_at(qp, &w->seg.data, &w->piece, 0);

	if (unlikely(!from || !usermem_copy(to, from, w->piece.bytes)))
		return false;
	/* Note the request first, so that the answer finds it. */
	requester_append(qp, w->opcode, 1, qp_ce(qp, w->seg.ctrl.fm_ce_se), false, 1,
			 w->piece.bytes);
	qp->req.cur++;
	return true;
}

/*
 * Sends the request and, in the same record, requests behind it that are like it, up to limit in
 * all.  Afterwards w is the request behind them, or *more is false: that one is of another kind, or
 * there is none.
 */
static uint32_t send_record(struct qp *qp, struct short_send_batch *batch, struct request *w,
			    struct short_send *b, uint32_t limit, bool *more)
{
	uint32_t room = w->piece.bytes > SHORT_SEND_SHARES ? 1 : min_u32(limit, SHORT_SEND_MAX);
	uint8_t *to = short_send_reserve(batch, w->piece.bytes, room, b->has_ack);

	*more = false;
	if (unlikely(!to))
		return 0;
	send_burst_say(qp, w, b);
	while (psns_left(qp, 1) && send_one(qp, w, to)) {
		to += short_send_stride(b);
		if (++b->n == limit)
			break;
		*more = send_burst_fetch(qp, qp->req.next_block, w);
		if (!*more || b->n == room || !send_burst_joins(qp, w, b))
			break;
		*more = false;
	}
	if (likely(b->n)) {
		short_send_put(batch, b);
		b->has_ack = false;
	}
	return b->n;
}

/* Sends the requests at the head of the ring, up to limit.  Returns how many it has sent. */
static uint32_t send_turn(struct qp *qp, uint32_t limit)
{
	uint32_t n = 0, first = qp->req.cur;
	bool more;
	struct short_send_batch batch;
	struct request w;
	struct short_send b = {
		.ack_req = qp_is_reliable(qp),
		.pkey = qp->pkey,
		.dqpn = qp->attr.dest_qpn,
		.sqpn = qp->qpn,
	};

	if (!send_burst_fetch(qp, qp->req.next_block, &w) ||
	    !short_send_begin(qp->adapter->wire, &qp->path, qp->attr.dest_qpn, &batch))
		return 0;
	lend_ack(qp, &b);
	do
		n += send_record(qp, &batch, &w, &b, limit - n, &more);
	while (more);
	short_send_end(&batch);
	if (unlikely(b.has_ack))
		take_ack_back(qp, &b);
	for (uint32_t i = 0; !qp_is_reliable(qp) && i < n; i++)
		completer_done(qp, first + i, 0);
	return n;
}

/* False if any condition fails: then there is something to do that only the requester knows. */
static inline bool may_run(const struct qp *qp)
{
	return (qp->bth == BTH_RC || qp->bth == BTH_UC) && qp_state(qp) == IB_QPS_RTS &&
	       !qp->req.stopped && !bypass_observed(qp) && qp_is_migrated(qp) &&
	       qp->req.cur == atomic_load_explicit(&qp->req.tail, memory_order_relaxed) &&
	       !atomic_load_explicit(&qp->waiting, memory_order_relaxed) &&
	       !atomic_load_explicit(&qp->comp.resend, memory_order_acquire) &&
	       !atomic_load_explicit(&qp->comp.withdrawn, memory_order_relaxed) &&
	       !atomic_load_explicit(&qp->drain_sigerr, memory_order_relaxed) &&
	       !trace_is_on(bypass, left);
}

/* Sends what it can from the head of the ring.  True: the requester has nothing left to do.  The
 * caller holds sq and is a reader. */
static must_check bool send_burst_run(struct qp *qp)
{
	int ready;

	if (!may_run(qp))
		return false;
	/* A thread that posts more makes us look again, see struct baton. */
	ready = send_ring_ready(qp, qp->req.next_block);
	while (ready > 0) {
		uint32_t n = send_turn(qp, min_u32((uint32_t)ready, TURN));

		ready -= (int)n;
		if (!n || !may_run(qp)) {
			ready = -1;
			break;
		}
	}
	if (qp_is_reliable(qp) && atomic_load(&qp->comp.head) !=
					  atomic_load_explicit(&qp->req.tail, memory_order_relaxed))
		ack_timer_arm(qp);
	return !ready;
}

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
