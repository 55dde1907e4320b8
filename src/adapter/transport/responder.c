// SPDX-License-Identifier: BSD-2-Clause
/*
 * The responder: takes request packets and executes them, with checks in the order of the IB
 * specification (volume 1, 9.7.4 for RC, 9.8.2 for UC and UD).  Each state below is one check or
 * one step and names the next one.  Errors are states too, so each kind of refusal happens at one
 * spot.
 *
 * It runs with resp.lock held (resp_lock).
 */
#include "adapter/transport/responder.h"

#include "adapter/bypass/bypass.h"
#include "adapter/core/violation.h"
#include "adapter/memory/mkey.h"
#include "adapter/qp/qp_state.h"
#include "adapter/signed/transfer.h"
#include "adapter/transport/completer.h"
#include "adapter/transport/path_migration.h"
#include "adapter/transport/responder_state.h"
#include "base/hazard.h"
#include "base/trace.h"
#include "prm/ib.h"
#include "usermem/usermem.h"
#include "wire/counter_shard.h"
#include "wire/fault.h"
#include "wire/payload.h"

/* ---- answers of the responder: acknowledgements and refusals ---- */

void resp_answer_init(const struct qp *qp, struct pkt *out, uint8_t op, uint32_t psn)
{
	*out = (struct pkt){
		.opcode = (uint8_t)(qp->bth | op),
		.pkey = qp->pkey,
		.sqpn = qp->qpn,
		.dqpn = qp->attr.dest_qpn,
		.psn = psn,
		.migreq_clear = !qp_is_migrated(qp),
		.npkts = 1,
		.msn = qp->resp.msn,
		.aeth = AETH_ACK | AETH_NO_CREDIT,
		.path = &qp->path,
	};
}

static bool resp_send_ack(struct qp *qp, uint8_t syndrome, uint32_t psn)
{
	struct pkt out;

	resp_answer_init(qp, &out, BTH_ACK, psn);
	out.aeth = syndrome;
	return wire_xmit(qp->adapter->wire, &out) != WIRE_BUSY;
}

/*
 * Sends an answer, or owes it if the wire is busy or the queue pair is about to migrate; a newer one
 * replaces it because it says more.
 * An answer must not overtake a read answer that still waits: the requester would take the read
 * answer for lost.
 */
void resp_acknowledge(struct qp *qp, uint8_t syndrome, uint32_t psn)
{
	struct responder *r = &qp->resp;
	bool behind_read = unlikely(r->rd_answered != r->rd_count) && resp_receives(qp);

	r->ack_owed = behind_read || migration_is_due(qp) || !resp_send_ack(qp, syndrome, psn);
	if (r->ack_owed) {
		r->ack_syndrome = syndrome;
		r->ack_psn = psn;
		qp_kick_later(qp);
	}
}

void responder_acknowledge_first(struct qp *qp)
{
	struct responder *r = &qp->resp;

	if (!resp_try_lock(qp))
		return;
	if (r->ack_owed && r->rd_answered == r->rd_count)
		resp_acknowledge(qp, r->ack_syndrome, r->ack_psn);
	resp_unlock(qp);
}

void resp_owe(struct qp *qp, uint32_t psn)
{
	struct responder *r = &qp->resp;
	bool owed = r->ack_owed;

	atomic_store_explicit(&r->ack_owed, true, memory_order_relaxed);
	r->ack_syndrome = AETH_ACK | AETH_NO_CREDIT;
	r->ack_psn = psn;
	/* If an answer was owed already, somebody is noted to send it, and finds under the lock
	 * which one it is. */
	if (!owed)
		qp_kick(qp);
}

/*
 * Gives the positive answer to a packet that asks for one.
 *
 * A positive answer to a packet of a batch waits for the batch's end, and then acknowledges the
 * whole batch (IBTA 9.7.5.1.2, acknowledge coalescing).  If the message completed a receive, the
 * answer may wait a little longer: the program now has work to do, and its next poll or post sends
 * it.
 */
static void resp_acknowledge_message(struct qp *qp, const struct pkt *pkt)
{
	struct responder *r = &qp->resp;
	uint32_t psn = psn_add(r->epsn, IB_PSN_MASK);

	if (!pkt->batched) {
		resp_acknowledge(qp, AETH_ACK | AETH_NO_CREDIT, psn);
		return;
	}
	if (!pkt_props(pkt)->last || (pkt_props(pkt)->write && !pkt_props(pkt)->imm))
		atomic_store_explicit(&qp->adapter->prompt, true, memory_order_relaxed);
	resp_owe(qp, psn);
}

/* Refuses a packet. */
static void resp_nak(struct qp *qp, enum aeth_nak code, uint32_t psn)
{
	trace(nak, sent, qp->qpn, qp->attr.dest_qpn, aeth_nak_name(code), psn);
	resp_acknowledge(qp, (uint8_t)(AETH_NAK | code), psn);
}

/*
 * Checks what a request may do: the right of the operation on the queue pair, the range and right
 * of the key, and the length of the message.
 */

/* The right that a request needs, both on the QP and on the key. */
static uint32_t resp_right(const struct bth_props *p)
{
	if (p->write)
		return IB_ACCESS_REMOTE_WRITE;
	if (p->read)
		return IB_ACCESS_REMOTE_READ;
	return p->atomic ? IB_ACCESS_REMOTE_ATOMIC : 0;
}

bool resp_granted(struct qp *qp, enum mkey_verdict v, uint32_t right, uint32_t rkey, uint64_t va,
		  uint64_t len)
{
	if (likely(v == MKEY_OK))
		return true;
	trace(access, remote, qp->qpn, rkey, va, len, ib_access_name(right), mkey_verdict_name(v));
	if (explaining())
		mkey_explain(qp->adapter,
			     &(struct mkey_refusal){qp_remote_use(qp, rkey, qp->resp.pdn, right),
						    va, len, v});
	return false;
}

bool resp_may_access(struct qp *qp, uint32_t right, const struct pkt *pkt)
{
	enum mkey_verdict v =
		remote_check(qp, qp->resp.pdn, right, pkt->rkey, pkt->va, pkt->dma_len);

	return resp_granted(qp, v, right, pkt->rkey, pkt->va, pkt->dma_len);
}

/* Refuses an operation that the QP does not allow at all as an invalid request. */
static enum resp_state resp_check_right(struct qp *qp, const struct pkt *pkt)
{
	uint32_t right = resp_right(pkt_props(pkt));

	if (likely(!right || qp->attr.access & right))
		return RESP_CHECK_RANGE;
	trace(access, remote, qp->qpn, pkt->rkey, pkt->va, pkt->dma_len, ib_access_name(right),
	      "QP_FORBIDS");
	if (explaining())
		resp_explain_right(qp, right);
	return RESP_ERR_INVALID;
}

/*
 * Reads and atomics are checked when they are accepted.  The execution itself checks the range of
 * each packet of a write, so what comes in front of the first that lies outside is in place, as on
 * cards.  A message of no bytes needs no key (IBTA 9.7.4.1.4).
 */
static enum resp_state resp_check_range(const struct pkt *pkt)
{
	const struct bth_props *p = pkt_props(pkt);

	if (p->read)
		return RESP_READ;
	if (p->atomic)
		return RESP_ATOMIC;
	return RESP_CHECK_LENGTH;
}

/* The packets of a write must together carry exactly as many bytes as the write says. */
static enum resp_state resp_check_length(const struct qp *qp, const struct pkt *pkt)
{
	const struct bth_props *p = pkt_props(pkt);
	const struct responder *r = &qp->resp;
	uint64_t total = p->first ? pkt->dma_len : r->write_len;
	uint64_t off = p->first ? 0 : r->off;

	if (p->write &&
	    (pkt->payload_len > total - off || (p->last && off + pkt->payload_len != total)))
		return RESP_ERR_INVALID;
	if ((p->send && p->first) || (p->write && p->imm))
		return RESP_TAKE_RECV;
	return RESP_BEGIN;
}

static const char *const resp_state_name[] = {
	[RESP_CHECK_PSN] = "check-PSN",
	[RESP_CHECK_SEQUENCE] = "check-sequence",
	[RESP_CHECK_RIGHT] = "check-right",
	[RESP_CHECK_RANGE] = "check-range",
	[RESP_CHECK_LENGTH] = "check-length",
	[RESP_TAKE_RECV] = "take-receive",
	[RESP_BEGIN] = "begin",
	[RESP_EXECUTE] = "execute",
	[RESP_READ] = "read",
	[RESP_ATOMIC] = "atomic",
	[RESP_COMPLETE] = "complete",
	[RESP_ACKNOWLEDGE] = "acknowledge",
	[RESP_DUPLICATE] = "duplicate",
	[RESP_WITHDRAWN] = "withdrawn-by-sender",
	[RESP_UNREADABLE] = "payload-unreadable",
	[RESP_ERR_PSN] = "PSN-sequence-error",
	[RESP_ERR_RNR] = "receiver-not-ready",
	[RESP_ERR_INVALID] = "invalid-request",
	[RESP_ERR_RD_DEPTH] = "too-many-reads",
	[RESP_ERR_REMOTE_ACCESS] = "remote-access-error",
	[RESP_ERR_LENGTH] = "receive-too-short",
	[RESP_ERR_LOCAL_PROT] = "receive-list-protection-error",
	[RESP_ERR_SENDER] = "sender-payload-gone",
	[RESP_ERR_RING] = "receive-queue-unreadable",
	[RESP_ERR_INVALIDATE] = "invalidation-refused",
	[RESP_DONE] = "done",
};

/* ---- shared receive queues of XRC ---- */

/* Selects the queue and the protection domain of an XRC request; selects no queue if its number is
 * wrong. */
static void xrc_enter(struct qp *qp, uint32_t srqn)
{
	struct responder *r = &qp->resp;

	if (likely(qp->bth != BTH_XRC))
		return;
	r->srq = srq_find_xrc(qp->adapter, srqn, qp->create.xrcdn);
	r->pdn = r->srq ? srq_pdn(r->srq) : 0;
}

static void xrc_leave(struct qp *qp)
{
	if (unlikely(qp->bth == BTH_XRC))
		qp->resp.srq = NULL;
}

void responder_flush(struct qp *qp)
{
	struct responder *r = &qp->resp;
	struct recv_wqe wqe;

	if (r->have_recv) {
		xrc_enter(qp, r->recv_srqn);
		if (qp->bth != BTH_XRC || r->srq)
			recv_push_error(qp, r->recv.index, CQE_SYN_WR_FLUSH);
		xrc_leave(qp);
	}
	r->have_recv = false;
	r->in_message = false;
	if (qp->create.srq)
		return;
	/* Takes all posted receives, also those not enabled; a reset ends that. */
	qp->rq.enabled = NULL;
	while (recv_ring_take(&qp->rq, &wqe) == RECV_OK)
		recv_push_error(qp, wqe.index, CQE_SYN_WR_FLUSH);
}

/* ---- the states ---- */

static enum resp_state resp_check_psn(struct qp *qp, const struct pkt *pkt)
{
	int32_t diff = psn_diff(pkt->psn, qp->resp.epsn);

	if (unlikely(qp->resp.refusal) && diff >= 0) {
		resp_trace_drop(qp, pkt, resp_state_name[qp->resp.refusal]);
		return RESP_DONE;
	}
	if (!diff) {
		qp->resp.nak_sent = false;
		return RESP_CHECK_SEQUENCE;
	}
	if (qp_is_reliable(qp))
		return diff < 0 ? RESP_DUPLICATE : RESP_ERR_PSN;
	/* UC: a gap ends the message in progress, and a new one may begin at any number (IBTA
	 * 9.8.2.2.1).  The next message that needs a receive uses the one of this message. */
	qp->resp.in_message = false;
	if (!pkt_props(pkt)->first) {
		resp_trace_drop(qp, pkt, "gap-in-message");
		if (explaining())
			resp_explain_drop(qp, pkt, "packets of its message before it were lost");
		return RESP_DONE;
	}
	qp->resp.epsn = pkt->psn;
	return RESP_CHECK_SEQUENCE;
}

/* The first packet that comes in order while the QP is in RTR establishes the communication, and the
 * program hears of it (IBTA 11.6.3.2).  DC has no such event. */
static void resp_establish(struct qp *qp)
{
	if (likely(qp->resp.established) || qp_state(qp) != IB_QPS_RTR)
		return;
	qp->resp.established = true;
	qp_async(qp, IB_EVENT_COMM_EST);
}

static enum resp_state resp_check_sequence(struct qp *qp, const struct pkt *pkt)
{
	const struct bth_props *p = pkt_props(pkt);
	struct responder *r = &qp->resp;
	bool invalid = false;

	/* UC: the beginning of another message also ends the one in progress. */
	if (unlikely(r->in_message && p->first && !qp_is_reliable(qp)))
		r->in_message = false;
	if (p->read || p->atomic)
		invalid = r->in_message || !qp_is_reliable(qp);
	else if (p->first)
		invalid = r->in_message;
	else
		invalid = !r->in_message || r->in_write != p->write;
	/* The message is longer than our port takes (IBTA 9.7.4.1.6). */
	if (p->write && p->first && unlikely(pkt->dma_len > IB_MAX_MSG_BYTES))
		invalid = true;
	/* No packet is longer than the path takes, and every one but the last is full. */
	if ((p->send || p->write) && unlikely(!pkt_fills(pkt, qp->mtu)))
		invalid = true;
	if ((p->send || p->write) && !p->last && (!pkt->payload_len || pkt->payload_len % qp->mtu))
		invalid = true;
	/* The queue must belong to the target's domain, and stay the same throughout a message. */
	if (unlikely(qp->bth == BTH_XRC)) {
		invalid |= !r->srq || (!p->first && pkt->srqn != r->srqn);
		if (!invalid)
			r->srqn = pkt->srqn;
	}
	if (!invalid) {
		resp_establish(qp);
		return RESP_CHECK_RIGHT;
	}
	if (qp_is_reliable(qp))
		return RESP_ERR_INVALID;
	r->in_message = false;
	resp_trace_drop(qp, pkt, "not-in-sequence");
	if (explaining())
		resp_explain_drop(qp, pkt, "it is not in the order of a message");
	return RESP_DONE;
}

/* XRC: completes a receive that an unfinished message has left in error, because another queue
 * cannot use it. */
static void resp_return_recv(struct qp *qp)
{
	struct responder *r = &qp->resp;

	if (likely(!r->have_recv || qp->bth != BTH_XRC || r->recv_srqn == r->srqn))
		return;
	xrc_enter(qp, r->recv_srqn);
	if (r->srq)
		recv_push_error(qp, r->recv.index, CQE_SYN_REM_ABORTED);
	xrc_enter(qp, r->srqn);
	r->have_recv = false;
}

/* How the receive that has been taken fails on demand; RESP_BEGIN: it does not. */
static __attribute__((cold, noinline)) enum resp_state resp_inject(struct qp *qp,
								   const struct pkt *pkt)
{
	uint8_t syndrome;

	if (!fault_receive_fails(qp->adapter->wire, pkt, &syndrome))
		return RESP_BEGIN;
	qp->resp.injected = true;
	trace(recv, injected, qp->qpn, qp->resp.recv.index, cqe_syndrome_name(syndrome));
	return syndrome == CQE_SYN_LOCAL_LENGTH ? RESP_ERR_LENGTH : RESP_ERR_LOCAL_PROT;
}

static enum resp_state resp_take_recv(struct qp *qp, const struct pkt *pkt)
{
	resp_return_recv(qp);
	switch (recv_take(qp)) {
	case RECV_OK:
		if (unlikely(bypass_observed(qp)) &&
		    fault_any(&qp->adapter->slots[qp->adapter->slot]))
			return resp_inject(qp, pkt);
		return RESP_BEGIN;
	case RECV_EMPTY:
		return RESP_ERR_RNR;
	default:
		return RESP_ERR_RING;
	}
}

/* Accepts the packet: what it notes of the message lasts until the message ends. */
static enum resp_state resp_begin(struct qp *qp, const struct pkt *pkt)
{
	const struct bth_props *p = pkt_props(pkt);
	struct responder *r = &qp->resp;

	if (p->first) {
		r->in_message = true;
		r->in_write = p->write;
		r->off = 0;
	}
	if (p->first && p->write) {
		resp_count_write(qp);
		r->write_va = pkt->va;
		r->write_rkey = pkt->rkey;
		r->write_len = pkt->dma_len;
	}
	return RESP_EXECUTE;
}

static enum resp_state resp_execute(struct qp *qp, const struct pkt *pkt)
{
	bool write = pkt_props(pkt)->write;
	struct responder *r = &qp->resp;
	enum mkey_verdict v;

	if (write) {
		v = write_place(qp, r->off, pkt);
		resp_granted(qp, v, IB_ACCESS_REMOTE_WRITE, r->write_rkey, r->write_va + r->off,
			     pkt->payload_len);
	} else {
		if (!r->have_recv)
			return RESP_ERR_INVALID;
		if (r->off + pkt->payload_len > min_u64(recv_capacity(&r->recv), IB_MAX_MSG_BYTES))
			return RESP_ERR_LENGTH;
		v = recv_place(qp, r->off, pkt);
	}
	if (unlikely(v == MKEY_GONE && pkt_withdrawn(pkt)))
		return RESP_WITHDRAWN;
	if (unlikely(v == MKEY_GONE && payload_refused(pkt)))
		return RESP_UNREADABLE;
	if (unlikely(v == MKEY_GONE && payload_gone(pkt)))
		return RESP_ERR_SENDER;
	if (unlikely(v != MKEY_OK) && !write)
		trace(access, local, qp->qpn, "receive", r->recv.index, pkt->payload_len,
		      mkey_verdict_name(v));
	if (unlikely(v != MKEY_OK))
		return write ? RESP_ERR_REMOTE_ACCESS : RESP_ERR_LOCAL_PROT;
	r->off += pkt->payload_len;
	return RESP_COMPLETE;
}

static bool resp_invalidate(struct qp *qp, uint32_t key)
{
	const struct mkey_use u = qp_remote_use(qp, key, qp->resp.pdn, 0);

	return mkey_invalidate(qp->adapter, &u) == MKEY_OK;
}

static enum resp_state resp_complete(struct qp *qp, const struct pkt *pkt)
{
	const struct bth_props *p = pkt_props(pkt);
	struct responder *r = &qp->resp;

	/* The key becomes invalid only now that the message is complete (IBTA 9.4.1.1.3). */
	if (unlikely(p->ieth) && !resp_invalidate(qp, pkt->imm))
		return RESP_ERR_INVALIDATE;
	r->epsn = psn_add(r->epsn, pkt->npkts);
	if (p->last) {
		r->in_message = false;
		r->msn = psn_add(r->msn, 1);
		/* A plain WRITE does not complete the receive that an aborted message left. */
		if (r->have_recv && (p->send || p->imm)) {
			recv_push(qp, pkt, (uint32_t)r->off);
			r->have_recv = false;
		}
	}
	return qp_is_reliable(qp) ? RESP_ACKNOWLEDGE : RESP_DONE;
}

/* Says nothing to the peer about packets behind the expected one until that one comes. */
static void resp_fall_silent(struct responder *r)
{
	r->nak_sent = true;
	r->nak_psn = r->epsn;
}

/*
 * Drops a packet whose payload may be partly in place, but of which nobody has heard.  If the
 * message comes again, it begins or continues where it did; it keeps the receive that it has taken.
 */
static enum resp_state resp_forget(struct qp *qp, const struct pkt *pkt, enum resp_state why)
{
	resp_trace_drop(qp, pkt, resp_state_name[why]);
	if (pkt_props(pkt)->first)
		qp->resp.in_message = false;
	return RESP_DONE;
}

/* Asks the sender for the packet again, however often it comes: by now the sender knows that we
 * cannot read its memory. */
static enum resp_state resp_ask_again(struct qp *qp, const struct pkt *pkt)
{
	resp_nak(qp, NAK_PSN_SEQUENCE, pkt->psn);
	resp_fall_silent(&qp->resp);
	return resp_forget(qp, pkt, RESP_UNREADABLE);
}

/* ---- refusals ---- */

/* Ends the connection: tells the peer and our consumer, and puts the QP into the error state. */
static enum resp_state resp_refuse(struct qp *qp, const struct pkt *pkt, enum aeth_nak code,
				   enum ib_event event)
{
	struct responder *r = &qp->resp;

	if (qp_is_reliable(qp))
		resp_nak(qp, code, pkt->psn);
	r->in_message = false;
	if (qp_is_reliable(qp)) {
		/* Who hears of the event finds the queue pair in the state that it tells of. */
		qp_fail(qp, aeth_nak_name(code));
		qp_async(qp, event);
	}
	return RESP_DONE;
}

/* Completes our consumer's receive in error. */
static void resp_end_recv(struct qp *qp, uint8_t syndrome)
{
	struct responder *r = &qp->resp;

	/* XRC: the receive's queue may have been destroyed while earlier answers waited. */
	if (r->have_recv && (qp->bth != BTH_XRC || r->srq))
		recv_push_error(qp, r->recv.index, syndrome);
	r->have_recv = false;
	r->in_message = false;
}

/* The same; the peer hears of a remote error. */
static enum resp_state resp_fail_recv(struct qp *qp, const struct pkt *pkt, uint8_t syndrome,
				      enum aeth_nak code)
{
	resp_end_recv(qp, syndrome);
	if (qp_is_reliable(qp))
		resp_nak(qp, code, pkt->psn);
	qp_fail(qp, cqe_syndrome_name(syndrome));
	return RESP_DONE;
}

/*
 * The request may not invalidate the key.  The peer gets no NAK and runs out of retries (IBTA
 * 9.9.6.3, class J).
 */
static enum resp_state resp_not_invalidated(struct qp *qp)
{
	resp_end_recv(qp, CQE_SYN_MW_BIND);
	qp_fail(qp, cqe_syndrome_name(CQE_SYN_MW_BIND));
	return RESP_DONE;
}

/* We cannot read the payload: the packet has no effect here, and we tell its sender. */
static enum resp_state resp_sender_failed(struct qp *qp, const struct pkt *pkt)
{
	if (qp_is_reliable(qp)) {
		resp_nak(qp, NAK_SENDER_FAULT, pkt->psn);
		return RESP_DONE;
	}
	qp->resp.in_message = false;
	if (pkt->payload_gone)
		*pkt->payload_gone = true;
	return RESP_DONE;
}

static enum resp_state resp_not_ready(struct qp *qp, const struct pkt *pkt)
{
	shard_count(qp->adapter->counters, HW_OUT_OF_BUFFER, 1);
	/*
	 * Silently drops packets sent behind it until it comes again (IBTA 9.7.5.2.8): a sequence
	 * NAK for them would use up the sender's transport retries.
	 */
	resp_fall_silent(&qp->resp);
	if (qp_is_reliable(qp)) {
		uint8_t aeth = AETH_RNR_NAK | (qp->attr.min_rnr_timer & AETH_VALUE_MASK);

		trace(rnr, sent, qp->qpn, qp->attr.dest_qpn, pkt->psn, rnr_timer_us(aeth));
		resp_acknowledge(qp, aeth, pkt->psn);
	}
	return RESP_DONE;
}

static enum resp_state resp_out_of_sequence(struct qp *qp)
{
	shard_count(qp->adapter->counters, HW_OUT_OF_SEQUENCE, 1);
	/* A peer that executes by itself may have moved the number since the last NAK. */
	if (!qp->resp.nak_sent || qp->resp.nak_psn != qp->resp.epsn)
		resp_nak(qp, NAK_PSN_SEQUENCE, qp->resp.epsn);
	resp_fall_silent(&qp->resp);
	return RESP_DONE;
}

static enum resp_state resp_next_state(struct qp *qp, const struct pkt *pkt, enum resp_state s)
{
	switch (s) {
	case RESP_CHECK_PSN:
		return resp_check_psn(qp, pkt);
	case RESP_CHECK_SEQUENCE:
		return resp_check_sequence(qp, pkt);
	case RESP_CHECK_RIGHT:
		return resp_check_right(qp, pkt);
	case RESP_CHECK_RANGE:
		return resp_check_range(pkt);
	case RESP_CHECK_LENGTH:
		return resp_check_length(qp, pkt);
	case RESP_TAKE_RECV:
		return resp_take_recv(qp, pkt);
	case RESP_BEGIN:
		return resp_begin(qp, pkt);
	case RESP_EXECUTE:
		return resp_execute(qp, pkt);
	case RESP_READ:
		return resp_read(qp, pkt);
	case RESP_ATOMIC:
		return resp_atomic(qp, pkt);
	case RESP_COMPLETE:
		return resp_complete(qp, pkt);
	case RESP_ACKNOWLEDGE:
		if (pkt->ack_req)
			resp_acknowledge_message(qp, pkt);
		return RESP_DONE;
	case RESP_DUPLICATE:
		return resp_duplicate(qp, pkt);
	case RESP_WITHDRAWN:
		return resp_forget(qp, pkt, s);
	case RESP_UNREADABLE:
		return resp_ask_again(qp, pkt);
	case RESP_ERR_PSN:
		return resp_out_of_sequence(qp);
	case RESP_ERR_RNR:
		return resp_not_ready(qp, pkt);
	case RESP_ERR_INVALID:
	case RESP_ERR_RD_DEPTH:
		return resp_refuse(qp, pkt, NAK_INVALID_REQUEST, IB_EVENT_QP_REQ_ERR);
	case RESP_ERR_REMOTE_ACCESS:
		/* A packet whose immediate asks for a receive has taken one. */
		if (qp_is_reliable(qp) && pkt_props(pkt)->imm && pkt->npkts == 1)
			resp_end_recv(qp, CQE_SYN_LOCAL_ACCESS);
		return resp_refuse(qp, pkt, NAK_REMOTE_ACCESS, IB_EVENT_QP_ACCESS_ERR);
	case RESP_ERR_LENGTH:
		shard_count(qp->adapter->counters, HW_RESP_LOCAL_LENGTH_ERROR, 1);
		return resp_fail_recv(qp, pkt, CQE_SYN_LOCAL_LENGTH, NAK_INVALID_REQUEST);
	case RESP_ERR_LOCAL_PROT:
		return resp_fail_recv(qp, pkt, CQE_SYN_LOCAL_PROT, NAK_REMOTE_OPERATIONAL);
	case RESP_ERR_SENDER:
		return resp_sender_failed(qp, pkt);
	case RESP_ERR_RING:
		s = resp_fail_recv(qp, pkt, CQE_SYN_LOCAL_PROT, NAK_REMOTE_OPERATIONAL);
		qp_async(qp, IB_EVENT_QP_FATAL);
		return s;
	case RESP_ERR_INVALIDATE:
		return resp_not_invalidated(qp);
	case RESP_DONE:
		break;
	}
	return RESP_DONE;
}

/* True if the state ends the connection. */
static bool resp_is_fatal(enum resp_state s)
{
	return s >= RESP_ERR_INVALID && s != RESP_ERR_SENDER && s != RESP_DONE;
}

/*
 * Keeps a refusal for later, because a responder answers in order: reads and atomics whose answers
 * wait for the wire must end well before a later request ends the connection.
 */
static enum resp_state resp_refuse_later(struct qp *qp, const struct pkt *pkt, enum resp_state s)
{
	struct responder *r = &qp->resp;

	r->refusal = (uint8_t)s;
	r->refusal_psn = pkt->psn;
	r->refusal_srqn = pkt->srqn;
	/* Nothing else with its number counts either, as a packet or as a short SEND. */
	resp_fall_silent(r);
	return RESP_DONE;
}

/* Carries out a kept refusal if all answers have gone. */
static void resp_refuse_due(struct qp *qp)
{
	struct responder *r = &qp->resp;
	const struct pkt at = {
		.sqpn = qp->attr.dest_qpn,
		.psn = r->refusal_psn,
		.path = &qp->path,
	};
	enum resp_state s = (enum resp_state)r->refusal;

	if (likely(!s) || r->rd_answered != r->rd_count || !resp_receives(qp))
		return;
	r->refusal = 0;
	xrc_enter(qp, r->refusal_srqn);
	while (s != RESP_DONE)
		s = resp_next_state(qp, &at, s);
	xrc_leave(qp);
}

static void resp_note_refusal(struct qp *qp, const struct pkt *pkt, enum resp_state s)
{
	trace(packet, refused, qp->qpn, bth_op_name(pkt->opcode), pkt->psn, pkt->sqpn,
	      resp_state_name[s]);
	if (explaining())
		resp_explain(qp, pkt, s);
	qp->resp.injected = false;
}

void responder_receive(struct qp *qp, const struct pkt *pkt)
{
	enum migration_verdict migration = MIGRATION_NO_MATTER;
	enum resp_state s = RESP_CHECK_PSN;

	resp_lock(qp);
	if (unlikely(!resp_receives(qp) || qp->create.type == IB_QPT_XRC_INI)) {
		resp_trace_drop(qp, pkt, qp_state_name(qp_state(qp)));
		if (explaining())
			resp_explain_state(qp, pkt);
		goto unlock;
	}
	if (unlikely(!qp_is_migrated(qp)))
		migration = migration_check(qp, pkt);
	if (unlikely(migration == MIGRATION_REFUSED))
		goto unlock;
	/* A packet of another partition is dropped silently (IBTA 9.6.1.1.1). */
	if (unlikely(!pkey_match(pkt->pkey, qp->pkey)) && migration != MIGRATION_FOLLOWED) {
		resp_trace_drop(qp, pkt, "pkey");
		if (explaining())
			resp_explain_pkey(qp, pkt);
		violation_count(qp->adapter, pkt, PORT_PKEY_VIOLATIONS);
		goto unlock;
	}
	if (qp->bth == BTH_UD) {
		datagram_receive(qp, pkt);
		goto unlock;
	}
	if (unlikely(!qp_is_peer(qp, pkt->path->src_port, pkt->sqpn))) {
		resp_trace_drop(qp, pkt, "not-from-peer");
		if (explaining())
			resp_explain_peer(qp, pkt);
		goto unlock;
	}
	if (unlikely(!qp_is_migrated(qp)))
		migration_heard(qp, pkt);
	/*
	 * Takes the word back (exposure/qp_word.h): what the peer has executed by itself comes before
	 * the packet, and it has nothing under way when it sends something new.  If this packet is
	 * not executed here, the word stays as it is: the packet may be a stray one, and then what
	 * the peer has under way counts.  UC executes a packet behind a gap, too.
	 */
	if (psn_diff(pkt->psn, qp->resp.epsn) == 0 || !qp_is_reliable(qp))
		resp_close(qp);
	xrc_enter(qp, pkt->srqn);
	while (s != RESP_DONE) {
		enum resp_state next = resp_next_state(qp, pkt, s);

		if (unlikely(next >= RESP_ERR_PSN && next != RESP_DONE))
			resp_note_refusal(qp, pkt, next);
		if (unlikely(resp_is_fatal(next) && qp->resp.rd_answered != qp->resp.rd_count))
			next = resp_refuse_later(qp, pkt, next);
		s = next;
	}
	xrc_leave(qp);
	resp_refuse_due(qp);
unlock:
	resp_unlock(qp);
}

bool responder_continue(struct qp *qp)
{
	struct responder *r = &qp->resp;
	bool busy;

	hazard_enter();
	resp_lock(qp);
	if (r->rd_answered != r->rd_count && resp_receives(qp)) {
		const struct pkt at = {
			.opcode = (uint8_t)(qp->bth | BTH_READ_REQUEST),
			.sqpn = qp->attr.dest_qpn,
			.psn = r->rd[r->rd_answered % ADAPTER_MAX_RD_ATOMIC].first_psn,
			.path = &qp->path,
		};
		enum resp_state s = resp_answer_pending(qp);

		if (s != RESP_DONE)
			resp_note_refusal(qp, &at, s);
		while (s != RESP_DONE)
			s = resp_next_state(qp, &at, s);
		resp_refuse_due(qp);
	}
	if (r->ack_owed)
		resp_acknowledge(qp, r->ack_syndrome, r->ack_psn);
	busy = r->ack_owed || r->rd_answered != r->rd_count;
	resp_unlock(qp);
	hazard_leave();
	return !busy;
}
