// SPDX-License-Identifier: BSD-2-Clause
/* Reads and atomics: the responder accepts them, keeps them for repetition, and answers in
 * order. */
#include "adapter/bypass/bypass.h"
#include "adapter/signed/transfer.h"
#include "adapter/transport/path_migration.h"
#include "adapter/transport/read_offer.h"
#include "adapter/transport/responder_state.h"
#include "base/run.h"
#include "usermem/usermem.h"
#include "wire/counter_shard.h"
#include "wire/payload.h"

#include <endian.h>

/*
 * Writes the answer to a READ to the places that the requester offers, instead of sending packets:
 * the mirror of what an initiator does with a WRITE (bypass/bypass.c).  It leaves what fails to
 * packets, which find the error.
 */

static struct transfer rd_transfer(struct qp *qp, const struct rd_resource *rd,
				   struct send_seg *seg)
{
	return transfer_read(qp, rd, rd_srq(qp, rd), seg);
}

struct placing {
	struct qp *qp;
	const struct rd_resource *rd;
	const struct pkt *request;
	uint64_t off; /* in the answer; all bytes before have gone */
};

/* Writes n bytes of the answer into one run; stage has room for them. */
static bool place_part(const struct placing *p, uint64_t off, uint64_t n, uint8_t *stage)
{
	const struct rd_resource *rd = p->rd;
	struct qp *qp = p->qp;
	const struct mkey_use u = qp_remote_use(qp, rd->rkey, rd->pdn, IB_ACCESS_REMOTE_READ);
	const struct run made = {stage, n};
	struct send_seg seg;
	enum mkey_verdict v;
	struct runs src;

	runs_begin(&src);
	v = mkey_resolve(qp->adapter, &u, rd->va + off, n, &src);
	if (mkey_staged(v)) {
		struct transfer t = rd_transfer(qp, rd, &seg);

		return transfer_move(&t, off, n, &made, 1) == MKEY_OK &&
		       payload_put(p->request, off, &made, 1);
	}
	if (v != MKEY_OK)
		return false;
	/* Take our own faults now, so that the peer never waits for them. */
	usermem_bring_in(src.run, src.n, false);
	return payload_put(p->request, off, src.run, src.n);
}

/* Writes part by part.  Parts meet at the boundaries of cache lines in the peer's memory, so no
 * word is torn. */
static bool place_parts(void *user, uint8_t *stage, uint64_t bytes)
{
	const struct placing *p = user;
	struct run_cursor at = run_cursor_start(p->request->runs, p->request->nruns);
	uint64_t off = p->off, n;

	run_cursor_advance(&at, off);
	for (; off < p->rd->len && at.left; off += n) {
		uint64_t lead = (uintptr_t)run_cursor_at(&at) % STAGE_ALIGN;

		n = min_u64(bytes - lead, run_cursor_left(&at));
		if (!place_part(p, off, n, stage + lead))
			return false;
		run_cursor_advance(&at, n);
	}
	return off == p->rd->len;
}

/* Puts the answer to a READ, from byte 'off' on, where the request wants it.  False: some of it is
 * missing there, and packets have to bring it. */
static must_check bool resp_place(struct qp *qp, const struct rd_resource *rd, uint64_t off,
				  const struct pkt *request)
{
	struct placing p = {qp, rd, request, off};

	return stage_work(&qp->adapter->stage, place_parts, &p);
}

/* How often we wait for a peer that takes something out of the channel each time. */
#define PLACE_WAITS 64u
/* A shorter answer costs the channel less than a call of the kernel. */
#define PLACE_AT_ONCE_BYTES (64u << 10)

/* Notes a read or atomic, so that it can be answered again. */
static struct rd_resource *rd_accept(struct qp *qp, const struct pkt *pkt, uint32_t npkts)
{
	struct responder *r = &qp->resp;
	uint32_t number = r->rd_count++;
	struct rd_resource *rd = &r->rd[number % ADAPTER_MAX_RD_ATOMIC];

	*rd = (struct rd_resource){
		.atomic = pkt_props(pkt)->atomic,
		.first_psn = pkt->psn,
		.npkts = npkts,
		.va = pkt->va,
		.rkey = pkt->rkey,
		.pdn = r->pdn,
		.srqn = pkt->srqn,
		.len = pkt->dma_len,
		.number = number,
	};
	return rd;
}

static uint8_t rd_response_op(bool first, bool last)
{
	static const uint8_t op[2][2] = {{BTH_READ_RESP_MIDDLE, BTH_READ_RESP_LAST},
					 {BTH_READ_RESP_FIRST, BTH_READ_RESP_ONLY}};

	return op[first][last];
}

/* Makes the rest of the answer while the wire copies it. */
static void rd_answer_source(struct qp *qp, const struct rd_resource *rd, struct send_seg *seg,
			     struct transfer_source *made, struct pkt *out)
{
	made->t = rd_transfer(qp, rd, seg);
	transfer_source_begin(made, qp->resp.rd_off);
	out->nruns = 0;
	out->source = &made->source;
}

/* Moves past an entry that we have answered, for the first time or again. */
static void rd_done(struct responder *r)
{
	if (r->rd_answered == r->rd_once)
		r->rd_once++;
	r->rd_answered++;
	r->rd_off = 0;
}

/* Gives up after a refused entry: the entries behind it get no answer either. */
static void rd_give_up(struct responder *r)
{
	r->rd_answered = r->rd_count;
	r->rd_once = r->rd_count;
}

/* Does the XRC queue still exist that the request named?  Its protection domain is what gives the right
 * to read, and an answer may go on, or again, long after the request was judged. */
static bool rd_queue_exists(const struct qp *qp, const struct rd_resource *rd)
{
	const struct srq *srq;

	if (likely(qp->bth != BTH_XRC))
		return true;
	srq = rd_srq(qp, rd);
	return srq && srq_pdn(srq) == rd->pdn;
}

/* Sends read data from rd_off on.  Returns RESP_DONE also when the wire is busy; then it continues
 * later. */
static enum resp_state rd_answer_read(struct qp *qp, const struct rd_resource *rd)
{
	struct responder *r = &qp->resp;
	const struct mkey_use u = qp_remote_use(qp, rd->rkey, rd->pdn, IB_ACCESS_REMOTE_READ);
	uint32_t most =
		wire_max_payload(qp->adapter->wire, &qp->path, qp->attr.dest_qpn, qp->mtu, false);

	if (!rd_queue_exists(qp, rd))
		return RESP_ERR_INVALID;
	do {
		uint32_t off = (uint32_t)r->rd_off;
		uint32_t n = rd->placed ? rd->len - off : min_u32(rd->len - off, most);
		enum mkey_verdict v = MKEY_OK;
		struct transfer_source made;
		struct send_seg seg;
		struct runs src;
		struct pkt out;
		bool gone = false;

		runs_begin(&src);
		if (n && !rd->placed)
			v = mkey_resolve(qp->adapter, &u, rd->va + off, n, &src);
		if (!mkey_staged(v) &&
		    !resp_granted(qp, v, IB_ACCESS_REMOTE_READ, rd->rkey, rd->va + off, n))
			return RESP_ERR_REMOTE_ACCESS;
		resp_answer_init(qp, &out, rd_response_op(!off, off + n == rd->len),
				 psn_add(rd->first_psn, off / qp->mtu));
		out.npkts = n ? div_round_up(n, qp->mtu) : 1;
		out.payload_len = n;
		out.nruns = src.n;
		out.runs = src.run;
		out.payload_gone = &gone;
		out.placed = rd->placed;
		if (unlikely(mkey_staged(v)))
			rd_answer_source(qp, rd, &seg, &made, &out);
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
		if (unlikely(out.source))
			transfer_source_end(&made, n);
		r->rd_off += n;
	} while (r->rd_off < rd->len);
	rd_done(r);
	return RESP_DONE;
}

static bool rd_answer_atomic(struct qp *qp, const struct rd_resource *rd)
{
	struct pkt out;

	resp_answer_init(qp, &out, BTH_ATOMIC_ACK, rd->first_psn);
	out.atomic_orig = rd->orig;
	return wire_xmit(qp->adapter->wire, &out) != WIRE_BUSY;
}

/* Answers accepted reads and atomics, in order. */
enum resp_state resp_answer_pending(struct qp *qp)
{
	struct responder *r = &qp->resp;

	if (migration_is_due(qp)) {
		qp_kick_later(qp);
		return RESP_DONE;
	}
	while (r->rd_answered != r->rd_count) {
		const struct rd_resource *rd = &r->rd[r->rd_answered % ADAPTER_MAX_RD_ATOMIC];
		uint32_t before = r->rd_answered;

		if (rd->atomic) {
			if (!rd_answer_atomic(qp, rd)) {
				qp_kick_later(qp);
				return RESP_DONE;
			}
			rd_done(r);
		} else {
			enum resp_state s = rd_answer_read(qp, rd);

			if (s != RESP_DONE)
				rd_give_up(r);
			if (s != RESP_DONE || r->rd_answered == before)
				return s;
		}
	}
	return RESP_DONE;
}

/*
 * True if the peer has reached its limit of outstanding reads and atomics.  Entries that wait for a
 * second answer do not count: a requester that asks for more has received the oldest of them
 * meanwhile.  Then we skip those, because we need their places.
 */
static bool rd_full(struct qp *qp)
{
	uint32_t depth = min_u32(qp->attr.max_dest_rd_atomic, ADAPTER_MAX_RD_ATOMIC);
	struct responder *r = &qp->resp;

	if (r->rd_count - r->rd_once >= depth)
		return true;
	if (unlikely(r->rd_count - r->rd_answered >= depth)) {
		r->rd_answered = r->rd_count + 1 - depth;
		r->rd_off = 0;
	}
	return false;
}

/* True if all waiting answers but the last have their data already.  Then the last one may read
 * memory (IBTA 9.5, ordering of READs). */
static bool rd_turn_has_come(const struct responder *r)
{
	for (uint32_t n = r->rd_answered; n != r->rd_count - 1; n++) {
		const struct rd_resource *rd = &r->rd[n % ADAPTER_MAX_RD_ATOMIC];

		if (!rd->atomic && !rd->placed)
			return false;
	}
	return true;
}

/* Called when the wire is busy: true if the rest of the answer to this request may go to its
 * places. */
static bool rd_may_place(const struct qp *qp, const struct rd_resource *rd, const struct pkt *pkt)
{
	const struct responder *r = &qp->resp;

	return r->rd_answered != r->rd_count && !rd->placed && pkt->foreign && pkt->nruns &&
	       rd->len <= READ_PLACE_MAX_BYTES && !bypass_observed(qp) && rd_turn_has_come(r);
}

/* Is the answer made on its way, because the key has signatures? */
static bool rd_is_made(struct qp *qp, const struct rd_resource *rd)
{
	const struct mkey_use u = qp_remote_use(qp, rd->rkey, rd->pdn, IB_ACCESS_REMOTE_READ);
	struct runs src;

	runs_begin(&src);
	return mkey_staged(mkey_resolve(qp->adapter, &u, rd->va, rd->len, &src));
}

/*
 * A long answer that is made in a buffer goes from there to its places at once.  Through the channel
 * it would be copied twice more, and each cache line would go from one processor to the other: where
 * those are far apart that takes four times as long.
 */
static void rd_place_at_once(struct qp *qp, struct rd_resource *rd, const struct pkt *pkt)
{
	if (rd->len >= PLACE_AT_ONCE_BYTES && rd_may_place(qp, rd, pkt) && rd_is_made(qp, rd))
		rd->placed = resp_place(qp, rd, 0, pkt);
}

/*
 * Answers a new READ.  If the peer has offered its places and takes no packets out of the channel
 * now, writes the rest of the answer to the places at once, however late the peer hears of it: the
 * peer may be waiting for the processor that we use.
 */
static enum resp_state rd_answer_new(struct qp *qp, struct rd_resource *rd, const struct pkt *pkt)
{
	struct responder *r = &qp->resp;

	rd_place_at_once(qp, rd, pkt);
	for (unsigned waits = 0;;) {
		enum resp_state s = resp_answer_pending(qp);
		bool first = r->rd_answered == r->rd_count - 1;

		if (likely(s != RESP_DONE || !rd_may_place(qp, rd, pkt)))
			return s;
		if (waits++ < PLACE_WAITS &&
		    wire_room_soon(qp->adapter->wire, &qp->path, qp->attr.dest_qpn))
			continue;
		rd->placed = resp_place(qp, rd, first ? r->rd_off : 0, pkt);
		if (!rd->placed)
			return RESP_DONE;
	}
}

enum resp_state resp_read(struct qp *qp, const struct pkt *pkt)
{
	struct responder *r = &qp->resp;
	uint32_t npkts = pkt->dma_len ? div_round_up(pkt->dma_len, qp->mtu) : 1;
	struct rd_resource *rd;

	if (rd_full(qp))
		return RESP_ERR_RD_DEPTH;
	if (pkt->dma_len > IB_MAX_MSG_BYTES)
		return RESP_ERR_INVALID;
	if (pkt->dma_len && !resp_may_access(qp, IB_ACCESS_REMOTE_READ, pkt))
		return RESP_ERR_REMOTE_ACCESS;
	shard_count(qp->adapter->counters, HW_RX_READ_REQUESTS, 1);
	rd = rd_accept(qp, pkt, npkts);
	r->epsn = psn_add(r->epsn, npkts);
	r->msn = psn_add(r->msn, 1);
	return rd_answer_new(qp, rd, pkt);
}

static uint32_t atomic_bytes(const struct pkt *pkt)
{
	return pkt_props(pkt)->masked ? pkt->dma_len : sizeof(uint64_t);
}

/* What a masked operation makes of a word. */
static uint64_t masked_result(const struct pkt *pkt, uint64_t word)
{
	uint64_t add = pkt->swap_add, top = pkt->compare;

	if (pkt_op(pkt) == BTH_MASKED_COMPARE_SWAP)
		return (word ^ pkt->compare) & pkt->compare_mask
			       ? word
			       : (word & ~pkt->swap_mask) | (pkt->swap_add & pkt->swap_mask);
	/* The highest bits of the fields are added without their carries. */
	return ((word & ~top) + (add & ~top)) ^ ((word ^ add) & top);
}

/* One of 4 bytes changes its half of an aligned word, whose other half is in the same page. */
static bool masked_execute(const struct pkt *pkt, void *addr, uint64_t *orig)
{
	unsigned shift = (unsigned)((uintptr_t)addr % sizeof(uint64_t)) * 8;
	void *at = (uint8_t *)addr - shift / 8;
	bool narrow = atomic_bytes(pkt) == sizeof(uint32_t);
	uint64_t mask = narrow ? (uint64_t)UINT32_MAX << shift : UINT64_MAX;
	uint64_t word, seen;

	if (!usermem_copy(&seen, at, sizeof(seen)))
		return false;
	do {
		uint64_t new = masked_result(pkt, (seen & mask) >> shift) << shift;

		word = seen;
		if (!usermem_compare_swap(at, word, (word & ~mask) | (new &mask), &seen))
			return false;
	} while (seen != word);
	*orig = (word & mask) >> shift;
	/* The mode of atomic_req_8B_endianness_mode leaves other sizes in network order. */
	if (narrow)
		*orig = htobe32((uint32_t)*orig);
	return true;
}

static bool atomic_execute(struct qp *qp, const struct pkt *pkt, uint64_t *orig)
{
	const struct mkey_use u =
		qp_remote_use(qp, pkt->rkey, qp->resp.pdn, IB_ACCESS_REMOTE_ATOMIC);
	enum mkey_verdict v;
	struct runs runs;

	runs_begin(&runs);
	v = mkey_resolve(qp->adapter, &u, pkt->va, atomic_bytes(pkt), &runs);
	/* A key with signatures allows no atomics either. */
	if (!resp_granted(qp, v, IB_ACCESS_REMOTE_ATOMIC, pkt->rkey, pkt->va, atomic_bytes(pkt)))
		return false;
	/* An iova and its memory may differ in alignment; the CPU's atomics need that of the
	 * memory. */
	if (runs.n != 1 || (uintptr_t)runs.run[0].addr % atomic_bytes(pkt))
		return false;
	if (unlikely(pkt_props(pkt)->masked))
		return masked_execute(pkt, runs.run[0].addr, orig);
	return pkt_op(pkt) == BTH_FETCH_ADD
		       ? usermem_fetch_add(runs.run[0].addr, pkt->swap_add, orig)
		       : usermem_compare_swap(runs.run[0].addr, pkt->compare, pkt->swap_add, orig);
}

enum resp_state resp_atomic(struct qp *qp, const struct pkt *pkt)
{
	struct responder *r = &qp->resp;
	struct rd_resource *rd;
	uint64_t orig = pkt->atomic_orig;

	if (rd_full(qp))
		return RESP_ERR_RD_DEPTH;
	if ((atomic_bytes(pkt) != sizeof(uint64_t) && atomic_bytes(pkt) != sizeof(uint32_t)) ||
	    pkt->va % atomic_bytes(pkt))
		return RESP_ERR_INVALID;
	/* The peer may have executed it by itself, and then found the word closed when it wanted to
	 * count it. */
	if (!pkt->executed && !atomic_execute(qp, pkt, &orig))
		return RESP_ERR_REMOTE_ACCESS;
	shard_count(qp->adapter->counters, HW_RX_ATOMIC_REQUESTS, 1);
	rd = rd_accept(qp, pkt, 1);
	rd->orig = orig;
	r->epsn = psn_add(r->epsn, 1);
	r->msn = psn_add(r->msn, 1);
	return resp_answer_pending(qp);
}

/* An answer that is sent again comes in packets from its beginning, because what was placed may be
 * only its end. */
static void rd_bring_again(struct responder *r)
{
	for (uint32_t n = r->rd_answered; n != r->rd_count; n++)
		r->rd[n % ADAPTER_MAX_RD_ATOMIC].placed = false;
}

/* Acknowledges sends and writes again, reads memory again for reads, and answers atomics from what
 * it remembers (IBTA 9.7.4.1.2). */
enum resp_state resp_duplicate(struct qp *qp, const struct pkt *pkt)
{
	const struct bth_props *p = pkt_props(pkt);
	struct responder *r = &qp->resp;

	trace(packet, duplicate, qp->qpn, bth_op_name(pkt->opcode), pkt->psn, r->epsn);
	if (explaining())
		resp_explain_duplicate(qp, pkt);
	shard_count(qp->adapter->counters, HW_DUPLICATE_REQUEST, 1);
	if (!p->read && !p->atomic) {
		resp_acknowledge(qp, AETH_ACK | AETH_NO_CREDIT, psn_add(r->epsn, IB_PSN_MASK));
		return RESP_DONE;
	}
	for (uint32_t n = 1; n <= min_u32(r->rd_count, ADAPTER_MAX_RD_ATOMIC); n++) {
		struct rd_resource *rd = &r->rd[(r->rd_count - n) % ADAPTER_MAX_RD_ATOMIC];
		int32_t into = psn_diff(pkt->psn, rd->first_psn);

		if (into < 0 || into >= (int32_t)rd->npkts || rd->atomic != p->atomic)
			continue;
		/* A repeated read may ask for the same range or for a part of it, but never for
		 * more. */
		if (p->read && (pkt->rkey != rd->rkey || pkt->dma_len > rd->len ||
				pkt->va != rd->va + (uint64_t)into * qp->mtu))
			return RESP_DONE;
		/* Its answer already waits, behind others that the peer has asked for again.  A
		 * requester that asks for a later part of it has received those others. */
		if (!into && (int32_t)(r->rd_count - n - r->rd_answered) > 0)
			return RESP_DONE;
		r->rd_answered = r->rd_count - n;
		r->rd_off = (uint64_t)into * qp->mtu;
		rd_bring_again(r);
		return resp_answer_pending(qp);
	}
	return RESP_DONE;
}
