// SPDX-License-Identifier: BSD-2-Clause
/*
 * The requester: reads the send ring in order and makes packets of it.
 *
 * For each request it first notes a struct send_op with the PSNs that the request takes, so that
 * the answer, which on loopback arrives before wire_xmit returns, finds it.  It goes back
 * (go-back-N) when the completer asks for it: the WQEs of unretired requests are still in the ring,
 * and the requester decodes them again.
 *
 * The requester runs with qp->sq held.
 */
#include "adapter/transport/requester.h"

#include "adapter/bypass/bypass.h"
#include "adapter/ethernet/raw.h"
#include "adapter/local/local.h"
#include "adapter/qp/flow.h"
#include "adapter/qp/path.h"
#include "adapter/qp/qp.h"
#include "adapter/qp/qp_explain.h"
#include "adapter/qp/send_cqe.h"
#include "adapter/qp/send_wqe.h"
#include "adapter/signed/transfer.h"
#include "adapter/transport/ack_timer.h"
#include "adapter/transport/completer.h"
#include "adapter/transport/dc.h"
#include "adapter/transport/icm_writer.h"
#include "adapter/transport/read_offer.h"
#include "adapter/transport/explain.h"
#include "adapter/transport/responder.h"
#include "base/clock.h"
#include "base/fence.h"
#include "base/hazard.h"
#include "base/trace.h"
#include "prm/vendor_err.h"
#include "wire/fault.h"

#include <string.h>

/* ---- where a datagram goes, and whether it waits for room there ---- */

/* After this many datagrams in a row to one process, the QP counts as sending to it alone. */
#define DATAGRAMS_AROUND 256u

/* Takes a datagram's address from its request. */
static inline void datagram_address(const struct qp *qp, const struct send_wqe *w,
				    struct path *path, struct pkt *pkt)
{
	uint32_t qkey = (uint32_t)(be64_get(w->av.dc_key_or_qkey) >> 32);

	path_from_av(qp->adapter, &w->av, path);
	path->pkey = qp->pkey;
	path->mtu = (uint8_t)ib_mtu_for((uint32_t)w->len);
	pkt->path = path;
	pkt->dqpn = be32_get(w->av.dqp_dct) & IB_QPN_MASK;
	/* A Q_Key with its top bit set stands for the QP's own (IBTA 10.2.5). */
	pkt->qkey = qkey & 0x80000000u ? qp->attr.qkey : qkey;
}

/*
 * True if the QP sends to several processes.  Then no datagram waits for room at one of them,
 * because that would delay the others; a sole receiver may take its time.
 */
static inline bool datagrams_go_around(struct requester *req, uint32_t dqpn)
{
	uint32_t chunk = dqpn >> REGISTRY_CHUNK_SHIFT;

	if (unlikely(chunk != req->last_chunk)) {
		if (req->last_chunk)
			req->around = DATAGRAMS_AROUND;
		req->last_chunk = chunk;
	} else if (unlikely(req->around)) {
		req->around--;
	}
	return req->around;
}

/* ---- queue pairs in error: all that a program posts is flushed ---- */

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

		trace(wqe, taken, qp->qpn, op.block, wqe_opcode_name(op.opcode), w.len);
		if (!qp->create.silent)
			send_cqe_flush(qp, &op);
		else
			trace(wqe, done, qp->qpn, op.block, cqe_syndrome_name(CQE_SYN_WR_FLUSH));
		qp->req.next_block += w.nblocks;
	}
	look_again(qp, head != atomic_load(&qp->comp.head) || block != qp->req.next_block, all);
}

/* Flushes both queues of a QP in error, or comes back for that when peers have left its memory.
 * The caller holds the baton. */
static void requester_flush(struct qp *qp)
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

static_assert(IB_MAX_MSG_BYTES / 256 < PSN_WINDOW, "a message has its PSNs at the smallest MTU");

/* A long message in packets of the path MTU asks for an answer each time after this many bytes. */
#define ANSWER_EVERY (1u << 20)

/* Outcome of one step. */
enum step {
	STEP_NEXT, /* this request is sent: go on with the next */
	STEP_DONE, /* the request is sent but never became outstanding: go on, too */
	STEP_WAIT, /* an event must happen first; the code that causes it kicks us */
	STEP_IDLE, /* the ring is empty */
	STEP_FAIL, /* the ring is unusable */
};

static void wait_for(struct qp *qp, enum qp_wait what)
{
	atomic_fetch_or(&qp->waiting, what);
}

static bool must_fence(uint8_t fm_ce_se)
{
	uint8_t mode = fm_ce_se & WQE_CTRL_FENCE_MASK;

	return mode >= WQE_CTRL_FENCE_STRONG;
}

/* Notes the wait under the completer's lock, which guards the PSNs.  False: there are enough. */
static bool wait_for_psns(struct qp *qp, uint32_t npkts)
{
	bool wait;

	spin_lock(&qp->comp.lock);
	wait = !psns_left(qp, npkts);
	if (wait)
		wait_for(qp, QP_WAIT_PSNS);
	spin_unlock(&qp->comp.lock);
	return wait;
}

static bool window_is_full(const struct qp *qp, uint32_t psn)
{
	return psn_diff(psn, atomic_load(&qp->comp.acked_psn)) >=
	       atomic_load_explicit(&qp->comp.window, memory_order_relaxed);
}

/* As wait_for_psns, for a connection to a peer outside of the fabric. */
static bool wait_for_window(struct qp *qp, uint32_t psn)
{
	bool wait;

	if (!window_is_full(qp, psn))
		return false;
	spin_lock(&qp->comp.lock);
	wait = window_is_full(qp, psn);
	if (wait)
		wait_for(qp, QP_WAIT_PSNS);
	spin_unlock(&qp->comp.lock);
	return wait;
}

static bool has_been_answered(const struct qp *qp)
{
	return atomic_load_explicit(&qp->comp.acked_psn, memory_order_relaxed) !=
	       (qp->attr.sq_psn & IB_PSN_MASK);
}

static bool is_outstanding(const struct qp *qp)
{
	return atomic_load_explicit(&qp->comp.head, memory_order_relaxed) != qp->req.cur;
}

/*
 * A responder in RTR wants the first request in a packet (resp_is_established), and those behind it follow it into
 * packets.  A queue that never drains, as ib_write_bw's, would never come to the bypass.  So when the peer has
 * answered, the queue drains once.  As wait_for_psns.
 */
static bool wait_to_drain(struct qp *qp)
{
	bool wait;

	if (!has_been_answered(qp))
		return false;
	if (!is_outstanding(qp)) {
		qp->req.drained = true;
		return false;
	}
	spin_lock(&qp->comp.lock);
	wait = is_outstanding(qp);
	if (wait)
		wait_for(qp, QP_WAIT_PSNS);
	spin_unlock(&qp->comp.lock);
	return wait;
}

/*
 * True if the request may start.  It notes the condition before it tests it again, so a completer
 * that makes it true after the first test sees the note.
 */
static bool may_start(struct qp *qp, const struct send_wqe *w, uint32_t npkts)
{
	const struct wqe_props *p = wqe_props(w->opcode);
	uint32_t depth = qp->attr.max_rd_atomic ? qp->attr.max_rd_atomic : 1;
	bool fence = must_fence(w->fm_ce_se), out;

	if (!qp_is_reliable(qp))
		return true;
	out = wire_leads_out(qp->adapter->wire, &qp->path);
	if (fence && atomic_load(&qp->comp.rd_outstanding)) {
		wait_for(qp, QP_WAIT_FENCE);
		if (atomic_load(&qp->comp.rd_outstanding))
			return false;
	}
	if ((p->read || p->atomic) && atomic_load(&qp->comp.rd_outstanding) >= depth) {
		wait_for(qp, QP_WAIT_RD_DEPTH);
		if (atomic_load(&qp->comp.rd_outstanding) >= depth)
			return false;
	}
	if (unlikely(out) && wait_for_window(qp, qp->req.psn))
		return false;
	if (unlikely(!qp->req.drained) && qp->req.direct && !qp->dci && !out &&
	    (p->write || p->read || p->atomic) && wait_to_drain(qp))
		return false;
	return likely(psns_left(qp, npkts)) || !wait_for_psns(qp, npkts);
}

static uint32_t packets_of(const struct qp *qp, const struct send_wqe *w)
{
	const struct wqe_props *p = wqe_props(w->opcode);

	if (p->local)
		return 0;
	if (p->atomic || !w->len)
		return 1;
	return div_round_up(w->len, qp->mtu);
}

/* Notes the request as outstanding. */
static void send_op_append(struct qp *qp, const struct send_wqe *w, uint32_t npkts)
{
	const struct wqe_props *p = wqe_props(w->opcode);
	/* a malformed request takes no PSN and is never sent */
	bool answered = (p->read || p->atomic) && npkts;

	qp_send_op(qp, qp->req.cur)->executed = qp->req.executed;
	qp->req.executed = false;
	if (answered)
		atomic_fetch_add(&qp->comp.rd_outstanding, 1);
	requester_append(qp, w->opcode, w->nblocks, qp_ce(qp, w->fm_ce_se), answered, npkts,
			 (uint32_t)w->len);
}

/* The request failed on this side.  It completes in its turn, and nothing after it starts. */
static enum step fail_request(struct qp *qp, uint8_t syndrome)
{
	qp->req.stopped = !qp->dci || !dci_request_failed(qp);
	completer_done(qp, qp->req.cur, syndrome);
	return STEP_NEXT;
}

/* 0: the usual value of the syndrome. */
static uint8_t vendor_err_of_verdict(enum mkey_verdict v)
{
	switch (v) {
	case MKEY_NO_KEY:
		return VENDOR_ERR_NO_KEY;
	case MKEY_OUT_OF_RANGE:
		return VENDOR_ERR_RANGE;
	case MKEY_NO_RIGHT: /* asked for where an answer goes */
		return VENDOR_ERR_NO_ANSWER_PLACE;
	default:
		return 0;
	}
}

/* A key refuses the memory of the request. */
static enum step refuse_memory(struct qp *qp, const struct send_wqe *w, enum mkey_verdict v)
{
	qp_send_op(qp, qp->req.cur)->vendor_err = vendor_err_of_verdict(v);
	trace(access, local, qp->qpn, wqe_opcode_name(w->opcode),
	      qp_send_op(qp, qp->req.cur)->block, w->len, mkey_verdict_name(v));
	return fail_request(qp, CQE_SYN_LOCAL_PROT);
}

static enum step requester_transmit(struct qp *qp, const struct pkt *pkt)
{
	bool observed = bypass_observed(qp);
	enum wire_verdict v;

	if (observed && !flow_admit(qp, pkt))
		return STEP_WAIT;
	v = wire_xmit(qp->adapter->wire, pkt);
	/* If the request is reliable, the answer says this instead. */
	if (unlikely(pkt->payload_gone && *pkt->payload_gone))
		v = WIRE_FAULT;
	switch (v) {
	case WIRE_BUSY:
		qp_kick_later(qp);
		return STEP_WAIT;
	case WIRE_FAULT:
		/* somebody has unmapped the registered memory */
		trace(access, local, qp->qpn, bth_op_name(pkt->opcode),
		      qp_send_op(qp, qp->req.cur)->block, pkt->payload_len,
		      mkey_verdict_name(MKEY_GONE));
		fail_request(qp, CQE_SYN_LOCAL_PROT);
		return STEP_WAIT;
	case WIRE_LOST: /* as on a real wire: the sender does not know */
		if (explaining())
			explain_lost(qp, qp_send_op(qp, qp->req.cur), pkt);
		break;
	case WIRE_SENT:
		break;
	}
	if (unlikely(observed) && flow_row(qp))
		flow_sent(qp, pkt);
	return STEP_NEXT;
}

/* The payload of a packet: where it lies, or what makes it. */
struct payload {
	struct runs runs;
	struct transfer_source made;
	bool gone; /* a receiver in this process could not read it, see struct pkt */
};

/* Makes the payload while the wire copies it, so no receiver reads this memory later. */
static enum mkey_verdict make_payload(struct qp *qp, const struct send_wqe *w,
				      const struct send_op *op, uint64_t off,
				      struct transfer_source *made, struct pkt *pkt)
{
	made->t = transfer_sent(qp, w, op->block);
	transfer_source_begin(made, off);
	pkt->source = &made->source;
	pkt->nruns = 0;
	return transfer_check(&made->t, off, pkt->payload_len);
}

static enum step send_datagram(struct qp *qp, struct send_op *op, const struct send_wqe *w,
			       struct pkt *pkt, struct path *path, struct payload *payload)
{
	struct runs *runs = &payload->runs;
	enum mkey_verdict v;
	enum step s;

	if (w->len > wire_datagram_max(qp->adapter->wire))
		return fail_request(qp, CQE_SYN_LOCAL_LENGTH);
	datagram_address(qp, w, path, pkt);
	pkt->no_wait = datagrams_go_around(&qp->req, pkt->dqpn);
	runs_begin(runs);
	v = send_wqe_runs(qp->adapter, w, qp->create.pdn, 0, 0, w->len, runs);
	pkt->payload_len = (uint32_t)w->len;
	pkt->nruns = runs->n;
	pkt->runs = runs->run;
	if (unlikely(mkey_staged(v)))
		v = make_payload(qp, w, op, 0, &payload->made, pkt);
	if (v != MKEY_OK)
		return refuse_memory(qp, w, v);
	pkt->opcode = BTH_UD | (wqe_props(w->opcode)->imm ? BTH_SEND_ONLY_IMM : BTH_SEND_ONLY);
	pkt->solicited = w->fm_ce_se & WQE_CTRL_SOLICITED;
	pkt->psn = op->first_psn;
	pkt->npkts = 1;
	s = requester_transmit(qp, pkt);
	if (s != STEP_NEXT)
		return s;
	if (unlikely(pkt->source))
		transfer_source_end(&payload->made, pkt->payload_len);
	completer_done(qp, qp->req.cur, 0);
	return STEP_NEXT;
}

static enum step send_frames(struct qp *qp, const struct send_wqe *w)
{
	static const uint8_t syndrome[] = {
		[RAW_BAD_LENGTH] = CQE_SYN_LOCAL_LENGTH,
		[RAW_BAD_KEY] = CQE_SYN_LOCAL_PROT,
		[RAW_BAD_WQE] = CQE_SYN_LOCAL_QP_OP,
	};
	enum raw_verdict v;

	icm_writers_run_before(qp);
	v = raw_send(qp, w, &qp->req.cur_off);

	if (v == RAW_BUSY) {
		qp_kick_later(qp);
		return STEP_WAIT;
	}
	if (v != RAW_SENT)
		return fail_request(qp, syndrome[v]);
	sent_frames_add(qp);
	return STEP_NEXT;
}

/* True if an answer has arrived that makes further packets useless. */
static bool requester_interrupted(struct qp *qp)
{
	return atomic_load(&qp->waiting) & QP_WAIT_RNR || atomic_load(&qp->comp.resend) ||
	       qp_state(qp) == IB_QPS_ERR;
}

/* Sends a SEND or WRITE on a connected QP from cur_off on, in as few packets as the wire takes. */
static enum step send_message(struct qp *qp, struct send_op *op, const struct send_wqe *w,
			      struct pkt *pkt, struct payload *payload)
{
	const struct wqe_props *p = wqe_props(w->opcode);
	struct runs *runs = &payload->runs;
	/* data in the request goes from our copy, which lasts only until we return */
	uint32_t most = wire_max_payload(qp->adapter->wire, &qp->path, qp->attr.dest_qpn, qp->mtu,
					 qp_is_reliable(qp) && !w->has_inline);
	bool outside = qp_is_reliable(qp) && unlikely(wire_leads_out(qp->adapter->wire, &qp->path));
	uint32_t answer_every = outside ? WINDOW_ANSWER * qp->mtu : ANSWER_EVERY;

	/* More at once would pass the window. */
	if (outside)
		most = min_u32(most, answer_every);
	do {
		uint64_t off = qp->req.cur_off;
		uint32_t n = (uint32_t)min_u64(w->len - off, most);
		bool last = off + n == w->len;
		enum mkey_verdict v;
		enum step s;

		if (outside &&
		    wait_for_window(qp, psn_add(op->first_psn, (uint32_t)(off / qp->mtu))))
			return STEP_WAIT;
		runs_begin(runs);
		v = send_wqe_runs(qp->adapter, w, qp->create.pdn, 0, off, n, runs);
		/* Cards look at each packet by itself, and send those in front of the first whose
		 * memory is refused. */
		if (unlikely(v != MKEY_OK && !mkey_staged(v) && n > qp->mtu)) {
			most = div_round_up(n, qp->mtu) / 2 * qp->mtu;
			continue;
		}
		pkt->source = NULL;
		pkt->nruns = runs->n;
		pkt->runs = runs->run;
		pkt->run_keys = w->has_inline ? NULL : runs->key;
		if (unlikely(mkey_staged(v))) {
			n = min_u32(n, wire_max_payload(qp->adapter->wire, &qp->path,
							qp->attr.dest_qpn, qp->mtu, false));
			last = off + n == w->len;
			pkt->payload_len = n;
			v = make_payload(qp, w, op, off, &payload->made, pkt);
		}
		if (v != MKEY_OK)
			return refuse_memory(qp, w, v);
		pkt->opcode = (uint8_t)(qp->bth | send_wqe_bth_op(p, !off, last));
		pkt->solicited = last && w->fm_ce_se & WQE_CTRL_SOLICITED;
		/* Each large packet asks for an answer; otherwise a long message would get no
		 * answer until its end. */
		pkt->ack_req =
			qp_is_reliable(qp) && (last || n > qp->mtu || !((off + n) % answer_every));
		pkt->psn = psn_add(op->first_psn, (uint32_t)(off / qp->mtu));
		pkt->npkts = n ? div_round_up(n, qp->mtu) : 1;
		pkt->payload_len = n;
		s = requester_transmit(qp, pkt);
		if (s != STEP_NEXT)
			return s;
		if (unlikely(pkt->source))
			transfer_source_end(&payload->made, n);
		qp->req.cur_off = off + n;
	} while (qp->req.cur_off < w->len && !requester_interrupted(qp));

	/* The requester is done with a message that it has sent to the end, whatever has arrived
	 * meanwhile: the completer tells it where to go back to. */
	if (qp->req.cur_off < w->len)
		return STEP_WAIT;
	if (!qp_is_reliable(qp))
		completer_done(qp, qp->req.cur, 0);
	return STEP_NEXT;
}

static uint8_t atomic_bth_op(uint8_t opcode)
{
	switch (opcode) {
	case WQE_OP_ATOMIC_CS:
		return BTH_COMPARE_SWAP;
	case WQE_OP_ATOMIC_FA:
		return BTH_FETCH_ADD;
	case WQE_OP_ATOMIC_MASKED_CS:
		return BTH_MASKED_COMPARE_SWAP;
	default:
		return BTH_MASKED_FETCH_ADD;
	}
}

static enum step send_read_or_atomic(struct qp *qp, struct send_op *op, const struct send_wqe *w,
				     struct pkt *pkt)
{
	struct runs runs;
	uint64_t have = op->read_bytes;
	enum mkey_verdict v;
	enum step s;

	/* As on cards, a place that is refused shows when the answer is there (place_answer), so a
	 * refusal by the peer comes first, and an atomic has been executed. */
	runs_begin(&runs);
	v = send_wqe_runs(qp->adapter, w, qp->create.pdn, IB_ACCESS_LOCAL_WRITE, 0, w->len, &runs);
	read_note_places(qp, v == MKEY_OK ? &runs : NULL);
	if (v == MKEY_OK && w->opcode == WQE_OP_RDMA_READ)
		read_offer_places(qp, op, &runs, pkt);
	pkt->psn = psn_add(op->first_psn, (uint32_t)(have / qp->mtu));
	pkt->npkts = op->npkts - (uint32_t)(have / qp->mtu);
	pkt->ack_req = true;
	if (w->opcode == WQE_OP_RDMA_READ) {
		/* after a loss, ask only for the missing part */
		pkt->opcode = qp->bth | BTH_READ_REQUEST;
		pkt->va += have;
		pkt->dma_len -= (uint32_t)have;
	} else {
		pkt->opcode = (uint8_t)(qp->bth | atomic_bth_op(w->opcode));
		pkt->dma_len = w->atomic_bytes;
		pkt->swap_add = w->swap_add;
		pkt->compare = w->compare;
		pkt->swap_mask = w->swap_mask;
		pkt->compare_mask = w->compare_mask;
		pkt->executed = op->executed;
		pkt->atomic_orig = op->executed ? qp->req.executed_before : 0;
	}
	s = requester_transmit(qp, pkt);
	if (s == STEP_NEXT)
		op->asked = true;
	else if (pkt->nruns)
		op->offered = false; /* the packet with the offer has not left */
	return s;
}

/* Executes a request without a packet.  Requests behind it see its effect. */
static enum step execute_local(struct qp *qp, const struct send_wqe *w)
{
	bool waits = false;
	uint8_t syndrome = local_execute(qp, w, &waits);

	if (syndrome)
		return fail_request(qp, syndrome);
	if (waits)
		return STEP_WAIT;
	completer_done(qp, qp->req.cur, 0);
	return STEP_NEXT;
}

/* Sends the packets that are left of the current request. */
static enum step send_packets(struct qp *qp, struct send_op *op, const struct send_wqe *w)
{
	const struct wqe_props *p = wqe_props(w->opcode);
	/* the packet points to these, so they live as long as it does */
	struct payload payload;
	struct path path;
	struct pkt pkt = {
		.sqpn = qp->qpn,
		.dqpn = qp->attr.dest_qpn,
		.migreq_clear = !qp_is_migrated(qp),
		.pkey = qp->pkey,
		.path = &qp->path,
		.imm = w->imm,
		.va = w->raddr,
		.rkey = w->rkey,
		.dma_len = (uint32_t)w->len,
		.withdrawn = &qp->comp.withdrawn,
	};

	payload.gone = false;
	if (!qp_is_reliable(qp))
		pkt.payload_gone = &payload.gone;
	if (qp->bth == BTH_XRC)
		pkt.srqn = w->srqn;
	if (qp->bth == BTH_DC) {
		if (!dci_continue(qp))
			return fail_request(qp, CQE_SYN_WR_FLUSH);
		pkt.dc = &qp->dci->header;
	}
	if (qp->bth == BTH_UD)
		return send_datagram(qp, op, w, &pkt, &path, &payload);
	if (p->read || p->atomic)
		return send_read_or_atomic(qp, op, w, &pkt);
	return send_message(qp, op, w, &pkt, &payload);
}

/* Sends what is left of the current request. */
static enum step send_current(struct qp *qp, const struct send_wqe *w)
{
	if (w->bad)
		return fail_request(qp, w->bad);
	if (wqe_props(w->opcode)->local)
		return execute_local(qp, w);
	if (qp->bth == BTH_RAW)
		return send_frames(qp, w);
	return send_packets(qp, qp_send_op(qp, qp->req.cur), w);
}

/* Goes back to the first PSN that is not acknowledged. */
static void requester_go_back(struct qp *qp)
{
	uint32_t head = atomic_load(&qp->comp.head);
	uint32_t tail = atomic_load_explicit(&qp->req.tail, memory_order_relaxed);
	uint32_t acked = atomic_load(&qp->comp.acked_psn);

	qp->req.cur = head;
	qp->req.cur_off = 0;
	for (; qp->req.cur != tail; qp->req.cur++) {
		const struct send_op *op = qp_send_op(qp, qp->req.cur);
		const struct wqe_props *p = wqe_props(op->opcode);
		int32_t into = psn_diff(acked, op->first_psn);

		/* the queue has not passed a WAIT that still waits */
		if (op->opcode == WQE_OP_WAIT && !op->done)
			return;
		if (op->done || p->local)
			continue;
		if (into < (int32_t)op->npkts) {
			if (into > 0 && !p->read && !p->atomic)
				qp->req.cur_off = (uint64_t)into * qp->mtu;
			return;
		}
		/* its PSNs are acknowledged but its answer is missing: ask again */
		if (p->read || p->atomic)
			return;
	}
}

static bool resend_asked(struct qp *qp)
{
	return unlikely(atomic_load_explicit(&qp->comp.resend, memory_order_acquire)) &&
	       atomic_exchange(&qp->comp.resend, false);
}

/* The port that a request goes to; SUBNET_NONE: nobody knows, or it is a frame. */
static uint32_t request_port(const struct qp *qp, const struct send_wqe *w)
{
	struct path path;

	if (qp->bth == BTH_RAW)
		return SUBNET_NONE;
	/* A DC initiator turns to another target only when the request is sent. */
	if (qp->bth != BTH_UD && qp->bth != BTH_DC)
		return qp->path.dst_port;
	path_from_av(qp->adapter, &w->av, &path);
	return path.dst_port;
}

static uint8_t request_bth_op(const struct wqe_props *p, const struct send_wqe *w)
{
	if (p->atomic)
		return atomic_bth_op(w->opcode);
	return p->read ? BTH_READ_REQUEST : send_wqe_bth_op(p, true, true);
}

/* True if the request is to fail on demand; then it is bad from now on. */
static __attribute__((cold, noinline)) bool request_fails(struct qp *qp, struct send_wqe *w,
							  uint8_t *vendor_err)
{
	const struct wqe_props *p = wqe_props(w->opcode);
	struct fault_request q = {
		.qpn = qp->qpn,
		.frame = qp->bth == BTH_RAW,
		.reliable = qp_is_reliable(qp),
	};

	if (w->bad || p->local)
		return false;
	q.dst_port = request_port(qp, w);
	if (!q.frame)
		q.op = request_bth_op(p, w);
	if (!fault_request_fails(qp->adapter->wire, &q, &w->bad, vendor_err))
		return false;
	trace(send, injected, qp->qpn, qp->attr.dest_qpn, wqe_opcode_name(w->opcode),
	      cqe_syndrome_name(w->bad));
	return true;
}

static enum step requester_step(struct qp *qp, struct send_wqe *w)
{
	uint8_t vendor_err = 0;
	bool injected = false;
	uint32_t tail = atomic_load_explicit(&qp->req.tail, memory_order_relaxed);
	uint32_t npkts;

	if (qp->req.cur == tail) {
		/* a new request */
		if (qp->req.stopped || qp_state(qp) != IB_QPS_RTS)
			return STEP_IDLE;
		switch (send_wqe_fetch(qp, qp->req.next_block, w)) {
		case FETCH_NONE:
			return STEP_IDLE;
		case FETCH_FAULT:
			return STEP_FAIL;
		case FETCH_OK:
			break;
		}
		if (unlikely(qp->dci)) {
			enum dci_verdict v = dci_admit(qp, w);

			if (v != DCI_GO)
				return v == DCI_SKIP ? STEP_DONE : STEP_WAIT;
		}
		/* A thread that posts more makes us look again, see struct baton. */
		if (bypass_take(qp, w))
			return w->newest ? STEP_IDLE : STEP_DONE;
		npkts = w->bad ? 0 : packets_of(qp, w);
		if (!may_start(qp, w, npkts))
			return STEP_WAIT;
		/* The fence may have waited for a read whose signature error stopped the queue. */
		if (unlikely(atomic_load(&qp->drain_sigerr)) && qp_state(qp) != IB_QPS_RTS)
			return STEP_IDLE;
		if (unlikely(bypass_observed(qp)) &&
		    fault_any(&qp->adapter->slots[qp->adapter->slot]))
			injected = request_fails(qp, w, &vendor_err);
		send_op_append(qp, w, injected ? 0 : npkts);
		if (unlikely(injected)) {
			qp_send_op(qp, qp->req.cur)->injected = true;
			qp_send_op(qp, qp->req.cur)->vendor_err = vendor_err;
		}
	} else {
		/* a retransmission, or the rest of a request that the wire could not take */
		const struct send_op *op = qp_send_op(qp, qp->req.cur);

		if (op->done)
			return STEP_NEXT;
		if (send_wqe_fetch_again(qp, op, w) != FETCH_OK)
			return STEP_FAIL;
	}
	return send_current(qp, w);
}

static void requester_drained(struct qp *qp)
{
	if (qp_state(qp) == IB_QPS_SQD && qp_all_completed(qp) &&
	    atomic_exchange(&qp->drain_notify, false)) {
		trace(sq, drained, qp->qpn);
		qp_async(qp, IB_EVENT_SQ_DRAINED);
	}
}

void requester_run(struct qp *qp)
{
	struct send_wqe w;
	enum step s = STEP_NEXT;

	hazard_enter();
	while (s <= STEP_DONE) {
		enum ib_qp_state state = qp_state(qp);

		if (state == IB_QPS_ERR || state == IB_QPS_SQE) {
			sent_frames_retire(qp);
			requester_flush(qp);
			break;
		}
		if (state != IB_QPS_RTS && state != IB_QPS_SQD) {
			if (explaining())
				explain_idle(qp);
			break;
		}
		/* Look at the wait first: the timer says where to go back to before it ends the
		 * wait. */
		if (atomic_load(&qp->waiting) & QP_WAIT_RNR)
			break;
		if (resend_asked(qp)) {
			enum completer_settled settled = completer_settle(qp);

			requester_go_back(qp);
			if (settled == COMPLETER_WAITS) {
				atomic_store(&qp->comp.resend, true);
				break;
			}
			if (settled == COMPLETER_SETTLED)
				continue;
		}
		s = requester_step(qp, &w);
		if (s == STEP_NEXT) {
			qp->req.cur++;
			qp->req.cur_off = 0;
		} else if (s == STEP_FAIL) {
			/* nobody can read the ring, so no completion can name the request */
			if (explaining())
				explain_ring(qp);
			qp_fail(qp, "send-queue-unreadable");
			qp_async(qp, IB_EVENT_QP_FATAL);
		}
		if (s > STEP_DONE && unlikely(atomic_load(&qp->comp.resend)))
			s = STEP_NEXT;
	}
	sent_frames_retire(qp);
	requester_drained(qp);
	if (bypass_observed(qp) && flow_row(qp) && s == STEP_IDLE)
		flow_paused(qp);
	hazard_leave();

	if (qp_is_reliable(qp) && atomic_load(&qp->comp.head) !=
					  atomic_load_explicit(&qp->req.tail, memory_order_relaxed))
		ack_timer_arm(qp);
}
