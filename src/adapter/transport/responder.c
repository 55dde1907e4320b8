// SPDX-License-Identifier: BSD-2-Clause
/*
 * The responder: takes request packets and performs them, in the order of checks of the IB
 * specification (volume 1, 9.7.4 for RC, 9.8.2 for UC and UD).  Each state below is one check or
 * one act and names the next; errors are states too, so each kind of refusal happens at one spot.
 *
 * Runs with qp->resp.lock held.
 */
#include "adapter/transport/responder.h"

#include "adapter/signed/transfer.h"
#include "adapter/transport/completer.h"
#include "adapter/qp/qp_state.h"
#include "base/rcu.h"
#include "base/trace.h"
#include "wire/counter_shard.h"
#include "usermem/usermem.h"

enum resp_state {
	RESP_CHECK_PSN,
	RESP_CHECK_SEQUENCE,
	RESP_CHECK_ACCESS,
	RESP_TAKE_RECV,
	RESP_EXECUTE,
	RESP_READ,
	RESP_ATOMIC,
	RESP_COMPLETE,
	RESP_ACKNOWLEDGE,
	RESP_DUPLICATE,
	/* refusals */
	RESP_ERR_PSN,		/* out of sequence: NAK once, drop */
	RESP_ERR_RNR,		/* no receive posted */
	RESP_ERR_INVALID,	/* malformed, or an operation that is not allowed here */
	RESP_ERR_RD_DEPTH,	/* more reads than max_dest_rd_atomic */
	RESP_ERR_REMOTE_ACCESS, /* key, range or right */
	RESP_ERR_LENGTH,	/* longer than the receive: our consumer's error */
	RESP_ERR_LOCAL_PROT,	/* our consumer's receive list is bad */
	RESP_ERR_SENDER,	/* the sender's payload has gone: its error, not ours */
	RESP_ERR_RING,		/* our consumer's receive queue is unreadable */
	RESP_ERR_INVALIDATE,	/* the key to be invalidated is none that may be */
	RESP_DONE,
};

static const char *const resp_state_name[] = {
	[RESP_CHECK_PSN] = "check-PSN",
	[RESP_CHECK_SEQUENCE] = "check-sequence",
	[RESP_CHECK_ACCESS] = "check-access",
	[RESP_TAKE_RECV] = "take-receive",
	[RESP_EXECUTE] = "execute",
	[RESP_READ] = "read",
	[RESP_ATOMIC] = "atomic",
	[RESP_COMPLETE] = "complete",
	[RESP_ACKNOWLEDGE] = "acknowledge",
	[RESP_DUPLICATE] = "duplicate",
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

/* ---- answers ---- */

static void answer_init(const struct qp *qp, struct pkt *out, uint8_t op, uint32_t psn)
{
	*out = (struct pkt){
		.opcode = (uint8_t)(qp->bth | op),
		.pkey = qp->pkey,
		.sqpn = qp->qpn,
		.dqpn = qp->attr.dest_qpn,
		.psn = psn,
		.npkts = 1,
		.msn = qp->resp.shared->msn,
		.aeth = AETH_ACK | AETH_NO_CREDIT,
		.path = &qp->path,
	};
}

static bool send_ack(struct qp *qp, uint8_t syndrome, uint32_t psn)
{
	struct pkt out;

	answer_init(qp, &out, BTH_ACK, psn);
	out.aeth = syndrome;
	return wire_xmit(qp->adapter->wire, &out) != WIRE_BUSY;
}

static bool receives(const struct qp *qp);

/*
 * An answer that the wire cannot take now is owed; a newer one replaces it, for it says more.  It
 * must not overtake the answer of a read that still waits: the requester would take that for lost.
 */
static void acknowledge(struct qp *qp, uint8_t syndrome, uint32_t psn)
{
	struct responder *r = &qp->resp;
	bool behind_read = unlikely(r->rd_answered != r->rd_count) && receives(qp);

	r->ack_owed = behind_read || !send_ack(qp, syndrome, psn);
	if (r->ack_owed) {
		r->ack_syndrome = syndrome;
		r->ack_psn = psn;
		qp_kick_later(qp);
	}
}

/*
 * A positive answer to a packet of a batch waits for the batch's end, and then speaks for all of
 * them (IBTA 9.7.5.1.2, acknowledge coalescing).  If the message completed a receive it may wait a
 * little longer: the program has something to do now, and its next poll or post sends the answer.
 */
static void acknowledge_message(struct qp *qp, const struct pkt *pkt)
{
	struct responder *r = &qp->resp;
	uint32_t psn = psn_add(r->shared->epsn, IB_PSN_MASK);

	if (!pkt->batched) {
		acknowledge(qp, AETH_ACK | AETH_NO_CREDIT, psn);
		return;
	}
	r->ack_owed = true;
	r->ack_syndrome = AETH_ACK | AETH_NO_CREDIT;
	r->ack_psn = psn;
	if (!pkt_props(pkt)->last || (pkt_props(pkt)->write && !pkt_props(pkt)->imm))
		atomic_store_explicit(&qp->adapter->prompt, true, memory_order_relaxed);
	qp_kick(qp);
}

/* ---- shared receive queues of XRC ---- */

/* The queue and the protection domain that an XRC request is for; no queue if its name is wrong. */
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
		xrc_enter(qp, r->srqn);
		if (qp->bth != BTH_XRC || r->srq)
			recv_push_error(qp, r->recv.index, CQE_SYN_WR_FLUSH);
		xrc_leave(qp);
	}
	r->have_recv = false;
	r->in_message = false;
	if (qp->create.srq)
		return;
	while (recv_ring_take(&qp->rq, &wqe) == RECV_OK)
		recv_push_error(qp, wqe.index, CQE_SYN_WR_FLUSH);
}

/* ---- the states ---- */

static inline void trace_drop(const struct qp *qp, const struct pkt *pkt, const char *why)
{
	trace(packet, dropped, qp->qpn, bth_op_name(pkt->opcode), pkt->psn, pkt->sqpn, why);
}

static enum resp_state check_psn(struct qp *qp, const struct pkt *pkt)
{
	int32_t diff = psn_diff(pkt->psn, qp->resp.shared->epsn);

	if (!diff) {
		qp->resp.nak_sent = false;
		return RESP_CHECK_SEQUENCE;
	}
	if (qp_is_reliable(qp))
		return diff < 0 ? RESP_DUPLICATE : RESP_ERR_PSN;
	/* UC: a gap ends the message in progress; a new one may begin at any number
	 * (IBTA 9.8.2.2.1).  The next message that needs a receive has this one's. */
	qp->resp.in_message = false;
	if (!pkt_props(pkt)->first) {
		trace_drop(qp, pkt, "gap-in-message");
		return RESP_DONE;
	}
	qp->resp.shared->epsn = pkt->psn;
	return RESP_CHECK_SEQUENCE;
}

static enum resp_state check_sequence(struct qp *qp, const struct pkt *pkt)
{
	const struct bth_props *p = pkt_props(pkt);
	struct responder *r = &qp->resp;
	bool invalid = false;

	/* UC: so does the beginning of another message */
	if (unlikely(r->in_message && p->first && !qp_is_reliable(qp)))
		r->in_message = false;
	if (p->read || p->atomic)
		invalid = r->in_message || !qp_is_reliable(qp);
	else if (p->first)
		invalid = r->in_message;
	else
		invalid = !r->in_message || r->in_write != p->write;
	/* every packet but the last is full */
	if ((p->send || p->write) && !p->last && (!pkt->payload_len || pkt->payload_len % qp->mtu))
		invalid = true;
	/* the queue named must be one of the target's domain, the same for all of a message */
	if (unlikely(qp->bth == BTH_XRC)) {
		invalid |= !r->srq || (!p->first && pkt->srqn != r->srqn);
		if (!invalid)
			r->srqn = pkt->srqn;
	}
	if (!invalid)
		return RESP_CHECK_ACCESS;
	if (qp_is_reliable(qp))
		return RESP_ERR_INVALID;
	r->in_message = false;
	trace_drop(qp, pkt, "not-in-sequence");
	return RESP_DONE;
}

/* The right that a request needs on the QP and on the key. */
static uint32_t right_of(const struct bth_props *p)
{
	if (p->write)
		return IB_ACCESS_REMOTE_WRITE;
	if (p->read)
		return IB_ACCESS_REMOTE_READ;
	return p->atomic ? IB_ACCESS_REMOTE_ATOMIC : 0;
}

static bool granted(const struct qp *qp, enum mkey_verdict v, uint32_t right, uint32_t rkey,
		    uint64_t va, uint64_t len)
{
	if (likely(v == MKEY_OK))
		return true;
	trace(access, remote, qp->qpn, rkey, va, len, ib_access_name(right), mkey_verdict_name(v));
	return false;
}

static bool may_access(struct qp *qp, uint32_t right, const struct pkt *pkt)
{
	enum mkey_verdict v =
		remote_check(qp, qp->resp.pdn, right, pkt->rkey, pkt->va, pkt->dma_len);

	return granted(qp, v, right, pkt->rkey, pkt->va, pkt->dma_len);
}

static enum resp_state check_access(struct qp *qp, const struct pkt *pkt)
{
	const struct bth_props *p = pkt_props(pkt);
	struct responder *r = &qp->resp;
	uint32_t right = right_of(p);

	/* an operation that the QP does not allow at all: its class is "invalid request" */
	if (right && !(qp->attr.access & right)) {
		trace(access, remote, qp->qpn, pkt->rkey, pkt->va, pkt->dma_len,
		      ib_access_name(right), "QP_FORBIDS");
		return RESP_ERR_INVALID;
	}
	if (p->write && p->first) {
		/*
		 * The whole range before the first byte; of a single packet, execute checks it.  A
		 * message of no bytes asks no key (IBTA 9.7.4.1.4).
		 */
		if (!p->last && pkt->dma_len && !may_access(qp, right, pkt))
			return RESP_ERR_REMOTE_ACCESS;
		r->write_va = pkt->va;
		r->write_rkey = pkt->rkey;
		r->write_len = pkt->dma_len;
	}
	if (p->first && (p->send || p->write)) {
		r->in_message = true;
		r->in_write = p->write;
		r->off = 0;
	}
	if (p->write && (pkt->payload_len > r->write_len - r->off ||
			 (p->last && r->off + pkt->payload_len != r->write_len)))
		return RESP_ERR_INVALID;
	if (p->read)
		return RESP_READ;
	if (p->atomic)
		return RESP_ATOMIC;
	if ((p->send && p->first) || (p->write && p->imm))
		return RESP_TAKE_RECV;
	return RESP_EXECUTE;
}

static enum resp_state take_recv(struct qp *qp)
{
	switch (recv_take(qp)) {
	case RECV_OK:
		return RESP_EXECUTE;
	case RECV_EMPTY:
		return RESP_ERR_RNR;
	default:
		return RESP_ERR_RING;
	}
}

static enum resp_state execute(struct qp *qp, const struct pkt *pkt)
{
	bool write = pkt_props(pkt)->write;
	struct responder *r = &qp->resp;
	enum mkey_verdict v;

	if (write) {
		v = write_place(qp, r->off, pkt);
		granted(qp, v, IB_ACCESS_REMOTE_WRITE, r->write_rkey, r->write_va + r->off,
			pkt->payload_len);
	} else {
		if (!r->have_recv)
			return RESP_ERR_INVALID;
		if (r->off + pkt->payload_len > recv_capacity(&r->recv))
			return RESP_ERR_LENGTH;
		v = recv_place(qp, r->off, pkt);
	}
	if (unlikely(v == MKEY_GONE && usermem_payload_gone(pkt)))
		return RESP_ERR_SENDER;
	if (unlikely(v != MKEY_OK) && !write)
		trace(access, local, qp->qpn, "receive", r->recv.index, pkt->payload_len,
		      mkey_verdict_name(v));
	if (unlikely(v != MKEY_OK))
		return write ? RESP_ERR_REMOTE_ACCESS : RESP_ERR_LOCAL_PROT;
	r->off += pkt->payload_len;
	return RESP_COMPLETE;
}

static enum resp_state complete(struct qp *qp, const struct pkt *pkt)
{
	const struct bth_props *p = pkt_props(pkt);
	struct responder *r = &qp->resp;

	/* the message is here whole: only now its key becomes invalid (IBTA 9.4.1.1.3) */
	if (unlikely(p->ieth) && mkey_invalidate(qp->adapter, pkt->imm, r->pdn, qp->qpn) != MKEY_OK)
		return RESP_ERR_INVALIDATE;
	r->shared->epsn = psn_add(r->shared->epsn, pkt->npkts);
	if (p->write && p->first)
		shard_count(qp->adapter->counters, HW_RX_WRITE_REQUESTS, 1);
	if (p->last) {
		r->in_message = false;
		r->shared->msn = psn_add(r->shared->msn, 1);
		/* The receive that an aborted message left is none of a plain WRITE's business. */
		if (p->send || p->imm) {
			recv_push(qp, pkt, (uint32_t)r->off);
			r->have_recv = false;
		}
	}
	return qp_is_reliable(qp) ? RESP_ACKNOWLEDGE : RESP_DONE;
}

/* Notes a read or atomic, so that it can be answered again. */
static struct rd_resource *rd_accept(struct qp *qp, const struct pkt *pkt, uint32_t npkts)
{
	struct responder *r = &qp->resp;
	struct rd_resource *rd = &r->rd[r->rd_count++ % ADAPTER_MAX_RD_ATOMIC];

	*rd = (struct rd_resource){
		.atomic = pkt_props(pkt)->atomic,
		.first_psn = pkt->psn,
		.npkts = npkts,
		.va = pkt->va,
		.rkey = pkt->rkey,
		.pdn = r->pdn,
		.srqn = pkt->srqn,
		.len = pkt->dma_len,
	};
	return rd;
}

static uint8_t read_resp_op(bool first, bool last)
{
	static const uint8_t op[2][2] = {{BTH_READ_RESP_MIDDLE, BTH_READ_RESP_LAST},
					 {BTH_READ_RESP_FIRST, BTH_READ_RESP_ONLY}};

	return op[first][last];
}

/* The rest of the answer is made as it is copied. */
static void make_answer(struct qp *qp, const struct rd_resource *rd, struct send_seg *seg,
			struct transfer_source *made, struct pkt *out)
{
	const struct srq *srq =
		qp->bth == BTH_XRC ? srq_find_xrc(qp->adapter, rd->srqn, qp->create.xrcdn) : NULL;

	*seg = (struct send_seg){.lkey = rd->rkey, .len = rd->len, .addr = rd->va};
	made->t = transfer_remote(qp, srq, rd->pdn, IB_ACCESS_REMOTE_READ, seg);
	transfer_source_begin(made, qp->resp.rd_off);
	out->nruns = 0;
	out->source = &made->source;
}

/* Sends read data from rd_off on.  RESP_DONE also when the wire is busy: it is continued then. */
static enum resp_state answer_read(struct qp *qp, const struct rd_resource *rd)
{
	struct responder *r = &qp->resp;
	uint32_t most =
		wire_max_payload(qp->adapter->wire, &qp->path, qp->attr.dest_qpn, qp->mtu, false);

	do {
		uint32_t off = (uint32_t)r->rd_off;
		uint32_t n = min_u32(rd->len - off, most);
		enum mkey_verdict v = MKEY_OK;
		struct transfer_source made;
		struct send_seg seg;
		struct runs src;
		struct pkt out;
		bool gone = false;

		runs_begin(&src);
		if (n)
			v = mkey_append_remote_runs(qp->adapter, rd->rkey, rd->pdn, qp->qpn,
						    IB_ACCESS_REMOTE_READ, rd->va + off, n, &src);
		if (!mkey_staged(v) &&
		    !granted(qp, v, IB_ACCESS_REMOTE_READ, rd->rkey, rd->va + off, n))
			return RESP_ERR_REMOTE_ACCESS;
		answer_init(qp, &out, read_resp_op(!off, off + n == rd->len),
			    psn_add(rd->first_psn, off / qp->mtu));
		out.npkts = n ? div_round_up(n, qp->mtu) : 1;
		out.payload_len = n;
		out.nruns = src.n;
		out.runs = src.run;
		out.payload_gone = &gone;
		if (unlikely(mkey_staged(v)))
			make_answer(qp, rd, &seg, &made, &out);
		switch (wire_xmit(qp->adapter->wire, &out)) {
		case WIRE_BUSY:
			qp_kick_later(qp);
			return RESP_DONE;
		case WIRE_FAULT:
			return RESP_ERR_REMOTE_ACCESS;
		case WIRE_SENT:
		case WIRE_LOST:
			break;
		}
		if (gone)
			return RESP_ERR_REMOTE_ACCESS;
		r->rd_off += n;
	} while (r->rd_off < rd->len);
	r->rd_answered++;
	r->rd_off = 0;
	return RESP_DONE;
}

static bool answer_atomic(struct qp *qp, const struct rd_resource *rd)
{
	struct pkt out;

	answer_init(qp, &out, BTH_ATOMIC_ACK, rd->first_psn);
	out.atomic_orig = rd->orig;
	return wire_xmit(qp->adapter->wire, &out) != WIRE_BUSY;
}

/* Answers accepted reads and atomics, in order. */
static enum resp_state answer_pending(struct qp *qp)
{
	struct responder *r = &qp->resp;

	while (r->rd_answered != r->rd_count) {
		const struct rd_resource *rd = &r->rd[r->rd_answered % ADAPTER_MAX_RD_ATOMIC];
		uint32_t before = r->rd_answered;

		if (rd->atomic) {
			if (!answer_atomic(qp, rd)) {
				qp_kick_later(qp);
				return RESP_DONE;
			}
			r->rd_answered++;
		} else {
			enum resp_state s = answer_read(qp, rd);

			/* refused: what came after it is not answered any more */
			if (s != RESP_DONE)
				r->rd_answered = r->rd_count;
			if (s != RESP_DONE || r->rd_answered == before)
				return s;
		}
	}
	return RESP_DONE;
}

static bool rd_full(const struct qp *qp)
{
	uint32_t depth = min_u32(qp->attr.max_dest_rd_atomic, ADAPTER_MAX_RD_ATOMIC);

	return qp->resp.rd_count - qp->resp.rd_answered >= depth;
}

static enum resp_state read_request(struct qp *qp, const struct pkt *pkt)
{
	struct responder *r = &qp->resp;
	uint32_t npkts = pkt->dma_len ? div_round_up(pkt->dma_len, qp->mtu) : 1;

	if (rd_full(qp))
		return RESP_ERR_RD_DEPTH;
	if (pkt->dma_len > IB_MAX_MSG_BYTES)
		return RESP_ERR_INVALID;
	if (pkt->dma_len && !may_access(qp, IB_ACCESS_REMOTE_READ, pkt))
		return RESP_ERR_REMOTE_ACCESS;
	shard_count(qp->adapter->counters, HW_RX_READ_REQUESTS, 1);
	rd_accept(qp, pkt, npkts);
	r->shared->epsn = psn_add(r->shared->epsn, npkts);
	r->shared->msn = psn_add(r->shared->msn, 1);
	return answer_pending(qp);
}

static enum resp_state atomic_request(struct qp *qp, const struct pkt *pkt)
{
	struct responder *r = &qp->resp;
	enum mkey_verdict v;
	struct runs runs;
	struct rd_resource *rd;
	uint64_t orig;
	bool ok;

	runs_begin(&runs);
	if (rd_full(qp))
		return RESP_ERR_RD_DEPTH;
	if (pkt->va % sizeof(uint64_t))
		return RESP_ERR_INVALID;
	v = mkey_append_remote_runs(qp->adapter, pkt->rkey, r->pdn, qp->qpn,
				    IB_ACCESS_REMOTE_ATOMIC, pkt->va, sizeof(uint64_t), &runs);
	/* nor is there one on data that a signature covers */
	if (!granted(qp, v, IB_ACCESS_REMOTE_ATOMIC, pkt->rkey, pkt->va, sizeof(uint64_t)))
		return RESP_ERR_REMOTE_ACCESS;
	/* an iova and its memory may differ in alignment; CPU atomics need the memory's */
	if (runs.n != 1 || (uintptr_t)runs.run[0].addr % sizeof(uint64_t))
		return RESP_ERR_REMOTE_ACCESS;
	ok = pkt_op(pkt) == BTH_FETCH_ADD
		     ? usermem_fetch_add(runs.run[0].addr, pkt->swap_add, &orig)
		     : usermem_compare_swap(runs.run[0].addr, pkt->compare, pkt->swap_add, &orig);
	if (!ok)
		return RESP_ERR_REMOTE_ACCESS;
	shard_count(qp->adapter->counters, HW_RX_ATOMIC_REQUESTS, 1);
	rd = rd_accept(qp, pkt, 1);
	rd->orig = orig;
	r->shared->epsn = psn_add(r->shared->epsn, 1);
	r->shared->msn = psn_add(r->shared->msn, 1);
	return answer_pending(qp);
}

/* IBTA 9.7.4.1.2: sends and writes are acknowledged again, reads answered again, atomics from
 * memory. */
static enum resp_state duplicate(struct qp *qp, const struct pkt *pkt)
{
	const struct bth_props *p = pkt_props(pkt);
	struct responder *r = &qp->resp;

	trace(packet, duplicate, qp->qpn, bth_op_name(pkt->opcode), pkt->psn, r->shared->epsn);
	shard_count(qp->adapter->counters, HW_DUPLICATE_REQUEST, 1);
	if (!p->read && !p->atomic) {
		acknowledge(qp, AETH_ACK | AETH_NO_CREDIT, psn_add(r->shared->epsn, IB_PSN_MASK));
		return RESP_DONE;
	}
	for (uint32_t n = 1; n <= min_u32(r->rd_count, ADAPTER_MAX_RD_ATOMIC); n++) {
		struct rd_resource *rd = &r->rd[(r->rd_count - n) % ADAPTER_MAX_RD_ATOMIC];
		int32_t into = psn_diff(pkt->psn, rd->first_psn);

		if (into < 0 || into >= (int32_t)rd->npkts || rd->atomic != p->atomic)
			continue;
		/* the rest of what was asked before, or a part of it; never more */
		if (p->read && (pkt->rkey != rd->rkey || pkt->dma_len > rd->len ||
				pkt->va != rd->va + (uint64_t)into * qp->mtu))
			return RESP_DONE;
		r->rd_answered = r->rd_count - n;
		r->rd_off = (uint64_t)into * qp->mtu;
		return answer_pending(qp);
	}
	return RESP_DONE;
}

/* ---- refusals ---- */

static void refuse_packet(struct qp *qp, enum aeth_nak code, uint32_t psn)
{
	trace(nak, sent, qp->qpn, qp->attr.dest_qpn, aeth_nak_name(code), psn);
	acknowledge(qp, (uint8_t)(AETH_NAK | code), psn);
}

/* A refusal that ends the connection: tell the peer, tell our consumer, go to error. */
static enum resp_state refuse(struct qp *qp, const struct pkt *pkt, enum aeth_nak code,
			      enum ib_event event)
{
	struct responder *r = &qp->resp;

	if (qp_is_reliable(qp))
		refuse_packet(qp, code, pkt->psn);
	r->in_message = false;
	if (qp_is_reliable(qp)) {
		qp_async(qp, event);
		qp_fail(qp, aeth_nak_name(code));
	}
	return RESP_DONE;
}

/* Our consumer's receive failed: it gets the completion, the peer a remote error. */
static enum resp_state fail_recv(struct qp *qp, const struct pkt *pkt, uint8_t syndrome,
				 enum aeth_nak code)
{
	struct responder *r = &qp->resp;

	if (r->have_recv)
		recv_push_error(qp, r->recv.index, syndrome);
	r->have_recv = false;
	r->in_message = false;
	if (qp_is_reliable(qp))
		refuse_packet(qp, code, pkt->psn);
	qp_fail(qp, cqe_syndrome_name(syndrome));
	return RESP_DONE;
}

/* The payload cannot be read: nothing of the packet happens here, its sender is told. */
static enum resp_state sender_failed(struct qp *qp, const struct pkt *pkt)
{
	if (qp_is_reliable(qp)) {
		refuse_packet(qp, NAK_SENDER_FAULT, pkt->psn);
		return RESP_DONE;
	}
	qp->resp.in_message = false;
	if (pkt->payload_gone)
		*pkt->payload_gone = true;
	return RESP_DONE;
}

static enum resp_state not_ready(struct qp *qp, const struct pkt *pkt)
{
	shard_count(qp->adapter->counters, HW_OUT_OF_BUFFER, 1);
	/*
	 * What was sent behind it is dropped without a word until it comes again (IBTA 9.7.5.2.8):
	 * a sequence NAK for those would use up the sender's transport retries.
	 */
	qp->resp.nak_sent = true;
	/* the packet will come again whole: forget what was noted of it */
	if (pkt_props(pkt)->first)
		qp->resp.in_message = false;
	if (qp_is_reliable(qp)) {
		uint8_t aeth = AETH_RNR_NAK | (qp->attr.min_rnr_timer & AETH_VALUE_MASK);

		trace(rnr, sent, qp->qpn, qp->attr.dest_qpn, pkt->psn, rnr_timer_us(aeth));
		acknowledge(qp, aeth, pkt->psn);
	}
	return RESP_DONE;
}

static enum resp_state out_of_sequence(struct qp *qp)
{
	shard_count(qp->adapter->counters, HW_OUT_OF_SEQUENCE, 1);
	if (!qp->resp.nak_sent)
		refuse_packet(qp, NAK_PSN_SEQUENCE, qp->resp.shared->epsn);
	qp->resp.nak_sent = true;
	return RESP_DONE;
}

static enum resp_state next_state(struct qp *qp, const struct pkt *pkt, enum resp_state s)
{
	switch (s) {
	case RESP_CHECK_PSN:
		return check_psn(qp, pkt);
	case RESP_CHECK_SEQUENCE:
		return check_sequence(qp, pkt);
	case RESP_CHECK_ACCESS:
		return check_access(qp, pkt);
	case RESP_TAKE_RECV:
		return take_recv(qp);
	case RESP_EXECUTE:
		return execute(qp, pkt);
	case RESP_READ:
		return read_request(qp, pkt);
	case RESP_ATOMIC:
		return atomic_request(qp, pkt);
	case RESP_COMPLETE:
		return complete(qp, pkt);
	case RESP_ACKNOWLEDGE:
		if (pkt->ack_req)
			acknowledge_message(qp, pkt);
		return RESP_DONE;
	case RESP_DUPLICATE:
		return duplicate(qp, pkt);
	case RESP_ERR_PSN:
		return out_of_sequence(qp);
	case RESP_ERR_RNR:
		return not_ready(qp, pkt);
	case RESP_ERR_INVALID:
	case RESP_ERR_RD_DEPTH:
		return refuse(qp, pkt, NAK_INVALID_REQUEST, IB_EVENT_QP_REQ_ERR);
	case RESP_ERR_REMOTE_ACCESS:
		shard_count(qp->adapter->counters, HW_RESP_REMOTE_ACCESS_ERRORS, 1);
		return refuse(qp, pkt, NAK_REMOTE_ACCESS, IB_EVENT_QP_ACCESS_ERR);
	case RESP_ERR_LENGTH:
		shard_count(qp->adapter->counters, HW_RESP_LOCAL_LENGTH_ERROR, 1);
		return fail_recv(qp, pkt, CQE_SYN_LOCAL_LENGTH, NAK_INVALID_REQUEST);
	case RESP_ERR_LOCAL_PROT:
		return fail_recv(qp, pkt, CQE_SYN_LOCAL_PROT, NAK_REMOTE_OPERATIONAL);
	case RESP_ERR_SENDER:
		return sender_failed(qp, pkt);
	case RESP_ERR_RING:
		qp_async(qp, IB_EVENT_QP_FATAL);
		return fail_recv(qp, pkt, CQE_SYN_LOCAL_PROT, NAK_REMOTE_OPERATIONAL);
	case RESP_ERR_INVALIDATE:
		shard_count(qp->adapter->counters, HW_RESP_REMOTE_ACCESS_ERRORS, 1);
		return fail_recv(qp, pkt, CQE_SYN_MW_BIND, NAK_REMOTE_ACCESS);
	case RESP_DONE:
		break;
	}
	return RESP_DONE;
}

static bool receives(const struct qp *qp)
{
	switch (qp_state(qp)) {
	case IB_QPS_RTR:
	case IB_QPS_RTS:
	case IB_QPS_SQD:
	case IB_QPS_SQE:
		return true;
	default:
		return false;
	}
}

void responder_receive(struct qp *qp, const struct pkt *pkt)
{
	enum resp_state s = RESP_CHECK_PSN;

	resp_lock(qp);
	if (unlikely(!receives(qp) || qp->create.type == IB_QPT_XRC_INI)) {
		trace_drop(qp, pkt, qp_state_name(qp_state(qp)));
		goto unlock;
	}
	/* IBTA 9.6.1.1.1: a packet of another partition is dropped without a word */
	if (unlikely(!pkey_match(pkt->pkey, qp->pkey))) {
		trace_drop(qp, pkt, "pkey");
		shard_count(qp->adapter->counters, PORT_RCV_ERRORS, 1);
		goto unlock;
	}
	if (qp->bth == BTH_UD) {
		datagram_receive(qp, pkt);
		goto unlock;
	}
	/* IBTA 9.6.1.1.3: a connected QP listens to its peer alone */
	if (unlikely(pkt->path->src_port != qp->path.dst_port || pkt->sqpn != qp->attr.dest_qpn)) {
		trace_drop(qp, pkt, "not-from-peer");
		goto unlock;
	}
	xrc_enter(qp, pkt->srqn);
	while (s != RESP_DONE) {
		enum resp_state next = next_state(qp, pkt, s);

		if (unlikely(next >= RESP_ERR_PSN && next != RESP_DONE))
			trace(packet, refused, qp->qpn, bth_op_name(pkt->opcode), pkt->psn,
			      pkt->sqpn, resp_state_name[next]);
		s = next;
	}
	xrc_leave(qp);
unlock:
	resp_unlock(qp);
}

bool responder_continue(struct qp *qp)
{
	struct responder *r = &qp->resp;
	bool busy;

	rcu_enter();
	resp_lock(qp);
	if (r->rd_answered != r->rd_count && receives(qp)) {
		const struct pkt at = {
			.psn = r->rd[r->rd_answered % ADAPTER_MAX_RD_ATOMIC].first_psn,
			.path = &qp->path,
		};
		enum resp_state s = answer_pending(qp);

		while (s != RESP_DONE)
			s = next_state(qp, &at, s);
	}
	if (r->ack_owed)
		acknowledge(qp, r->ack_syndrome, r->ack_psn);
	busy = r->ack_owed || r->rd_answered != r->rd_count;
	resp_unlock(qp);
	rcu_leave();
	return !busy;
}
