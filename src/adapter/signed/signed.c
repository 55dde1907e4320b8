// SPDX-License-Identifier: BSD-2-Clause
/* Transfers through keys with signatures, and reports of their errors; see signed.h. */
#include "adapter/signed/signed.h"

#include "adapter/qp/qp.h"
#include "adapter/qp/qp_explain.h"
#include "base/explain.h"
#include "usermem/usermem.h"
#include "wire/payload.h"

/* Each sets one bit only, because libmlx5 and the kernel look at several bits in different
 * orders. */
static const uint16_t syndrome[] = {
	[SIG_BAD_GUARD] = CQE_SIG_ERR_GUARD,
	[SIG_BAD_APP_TAG] = CQE_SIG_ERR_APP_TAG,
	[SIG_BAD_REF_TAG] = CQE_SIG_ERR_REF_TAG,
};

/* Explains e, which a transfer of qp has found under key; call it after explaining(). */
static __attribute__((cold)) void sig_report_explain(struct qp *qp, uint32_t key,
						     const struct sig_error *e)
{
	/* This reading says which value is which, whatever the program gets. */
	struct sig_report r = sig_error_report(e, SIG_REPORT_MANUAL);
	const char *side = e->side == SIG_MEMORY ? "the memory" : "the wire";

	if (e->transaction) {
		qp_explain(qp,
			   "signature error: the transaction signature that ends on %s under key "
			   "0x%x is 0x%llx, and 0x%llx was expected; the transfer goes on "
			   "(mlx5dv_mkey_check answers EINVAL)",
			   side, key, (unsigned long long)sig_report_part(e, r.expected),
			   (unsigned long long)sig_report_part(e, r.actual));
		return;
	}
	qp_explain(qp,
		   "signature error: the %s of block %llu, which begins at offset %llu of %s under "
		   "key 0x%x, is 0x%llx, and 0x%llx was expected; the transfer goes on "
		   "(mlx5dv_mkey_check)",
		   sig_error_name(e->kind), (unsigned long long)e->block,
		   (unsigned long long)r.offset, side, key,
		   (unsigned long long)sig_report_part(e, r.expected),
		   (unsigned long long)sig_report_part(e, r.actual));
}

/* Reports to cq that a request of qp, whose WQE is at that block, has found e under key. */
static void sig_report_push(struct qp *qp, struct cq *cq, uint32_t key, const struct sig_error *e,
			    uint16_t block)
{
	enum sig_report_style style =
		qp->adapter->attr.sig_report_hardware ? SIG_REPORT_HARDWARE : SIG_REPORT_MANUAL;
	struct sig_report r = sig_error_report(e, style);
	struct cqe64_sig_err cqe = {
		.expected_trans_sig = be32_of((uint32_t)(r.expected >> 32)),
		.actual_trans_sig = be32_of((uint32_t)(r.actual >> 32)),
		.expected_ref_tag = be32_of((uint32_t)r.expected),
		.actual_ref_tag = be32_of((uint32_t)r.actual),
		.syndrome = be16_of(syndrome[e->kind]),
		.sig_type = e->transaction,
		.domain = e->side == SIG_MEMORY,
		.mkey = be32_of(key),
		.offset = be64_of(r.offset),
		.sop_drop_qpn = be32_of(qp->qpn),
		.wqe_counter = be16_of(block),
		.op_own = CQE_OP_SIG_ERR << 4,
	};

	if (unlikely(!cq_push(cq, (struct cqe64 *)&cqe, CQ_WAKE_SOLICITED)))
		qp_cannot_complete(qp);
}

/* How many bytes one step takes of a payload that lies in another process or that a source has yet
 * to make.  They are on the stack, so they are not many. */
#define PART_BYTES 16384u

/* ---- lists ---- */

/* A part of the list that lies under one key and in one piece. */
struct piece {
	const struct send_seg *seg;
	uint64_t off; /* offset in the entry */
	uint64_t len;
};

/* Finds the piece at byte off of the message, at most len bytes; false beyond the list's end. */
static bool piece_at(const struct transfer *t, uint64_t off, uint64_t len, struct piece *out)
{
	for (uint32_t i = 0; i < t->nsegs; i++) {
		const struct send_seg *s = &t->seg[i];

		if (off < s->len) {
			*out = (struct piece){s, off, min_u64(len, s->len - off)};
			return true;
		}
		off -= s->len;
	}
	return false;
}

static uint64_t runs_bytes(const struct run *run, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += run[i].len;
	return sum;
}

/* Moves the next len bytes at the cursor into a list of their own. */
static bool transfer_split(struct sig_cursor *c, uint64_t len, struct runs *out)
{
	runs_begin(out);
	while (len) {
		uint64_t n = min_u64(len, sig_cursor_left(c));

		if (!n || out->n == RUNS_MAX)
			return false;
		runs_add(out, 0, sig_cursor_at(c), n);
		sig_cursor_advance(c, n);
		len -= n;
	}
	return true;
}

/* Accepts a list that is full; *len says how many bytes it holds. */
static enum mkey_verdict as_many_as_fit(enum mkey_verdict v, const struct runs *runs, uint64_t *len)
{
	if (v != MKEY_TOO_MANY_RUNS)
		return v;
	*len = runs_bytes(runs->run, runs->n);
	return *len ? MKEY_OK : MKEY_TOO_MANY_RUNS;
}

static struct mkey_use transfer_use(const struct transfer *t, uint32_t key)
{
	return (struct mkey_use){
		.key = key,
		.pdn = t->pdn,
		.qpn = t->qp->qpn,
		.remote = t->remote ? &t->qp->resp.stay : NULL,
		.access = t->access,
	};
}

/* ---- pieces without signatures ---- */

static enum mkey_verdict plain_runs(const struct transfer *t, const struct piece *p, uint64_t off,
				    uint64_t *len, struct runs *runs)
{
	const struct send_seg *s = p->seg;
	uint64_t at = p->off + off;
	struct mkey_use u;
	enum mkey_verdict v;

	runs_begin(runs);
	if (s->inline_data) {
		runs_add(runs, 0, (void *)(uintptr_t)(s->inline_data + at), *len);
		return MKEY_OK;
	}
	u = transfer_use(t, s->lkey);
	v = mkey_resolve(t->adapter, &u, s->addr + at, *len, runs);
	return as_many_as_fit(v, runs, len);
}

static enum mkey_verdict plain_move(const struct transfer *t, const struct piece *p,
				    struct sig_cursor *wire)
{
	struct runs memory, other;
	uint64_t n;

	for (uint64_t done = 0; done < p->len; done += n) {
		enum mkey_verdict v;
		bool ok;

		n = p->len - done;
		v = plain_runs(t, p, done, &n, &memory);
		if (v != MKEY_OK)
			return v;
		if (!transfer_split(wire, n, &other))
			return MKEY_TOO_MANY_RUNS;
		if (t->direction == SIG_GATHER)
			ok = usermem_pull(other.run, other.n, memory.run, memory.n);
		else
			ok = usermem_pull(memory.run, memory.n, other.run, other.n);
		if (!ok)
			return MKEY_GONE;
	}
	return MKEY_OK;
}

/* ---- pieces with signatures ---- */

/* A piece, in terms of its key. */
struct stretch {
	const struct mkey_signed *key;
	uint64_t wire;	      /* offset in the wire's stream */
	uint64_t memory, end; /* offsets in the memory's stream */
};

/* Opens a piece's key.  MKEY_NO_KEY if the key has no signatures. */
static enum mkey_verdict open_key(const struct transfer *t, const struct piece *p,
				  struct mkey_signed *key, struct stretch *out)
{
	const struct send_seg *s = p->seg;
	struct mkey_use u;
	enum mkey_verdict v;
	uint64_t end;

	if (s->inline_data)
		return MKEY_NO_KEY;
	u = transfer_use(t, s->lkey);
	v = mkey_signed_open(t->adapter, &u, t->direction, key);
	if (v != MKEY_OK)
		return v;
	out->key = key;
	/* wraps to a huge number if the piece lies before the key's first byte */
	out->wire = s->addr + p->off - key->start;
	if (__builtin_add_overflow(out->wire, p->len, &end))
		return MKEY_OUT_OF_RANGE;
	out->memory = sig_place(&key->plan, out->wire);
	out->end = sig_place(&key->plan, end);
	/* UINT64_MAX, which means no such place, is more than any key has */
	return out->end <= key->length && out->memory <= out->end ? MKEY_OK : MKEY_OUT_OF_RANGE;
}

static enum mkey_verdict signed_runs(const struct transfer *t, const struct mkey_signed *key,
				     uint64_t off, uint64_t *len, struct runs *runs)
{
	runs_begin(runs);
	if (!*len)
		return MKEY_OK;
	return as_many_as_fit(mkey_signed_runs(t->adapter, key, t->access, off, *len, runs), runs,
			      len);
}

/* One call of the engine. */
struct sig_step {
	struct sig_stream *stream;
	struct sig_cursor *from, *to;
	bool done;
};

static void transfer_feed(void *arg)
{
	struct sig_step *e = arg;

	sig_stream_feed(e->stream, e->from, e->to);
}

static void transfer_prime(void *arg)
{
	struct sig_step *e = arg;

	e->done = sig_stream_prime(e->stream, e->from);
}

static struct usermem_list list_of(const struct runs *runs)
{
	return (struct usermem_list){runs->run, runs->n};
}

/* Prepares the stream at the beginning of the stretch. */
static enum mkey_verdict transfer_begin(const struct transfer *t, struct sig_resume *f,
					const struct stretch *s)
{
	const struct usermem_list none = {NULL, 0};
	uint64_t lead;

	sig_stream_begin(&f->stream, &s->key->plan, s->wire);
	while ((lead = sig_stream_lead(&f->stream))) {
		struct runs memory;
		struct sig_cursor c;
		struct sig_step e = {.stream = &f->stream, .from = &c};
		enum mkey_verdict v = signed_runs(t, s->key, s->memory - lead, &lead, &memory);

		if (v != MKEY_OK)
			return v;
		c = sig_cursor(memory.run, memory.n);
		if (!usermem_guarded(transfer_prime, &e, list_of(&memory), none))
			return MKEY_GONE;
	}
	return MKEY_OK;
}

static void transfer_report(const struct transfer *t, struct sig_resume *f)
{
	const struct sig_error *e = sig_stream_finish(&f->stream);

	if (likely(!e))
		return;
	if (mkey_signed_raise(t->adapter, &f->key, e)) {
		if (explaining())
			sig_report_explain(t->qp, f->key.key, e);
		if (t->cq)
			sig_report_push(t->qp, t->cq, f->key.key, e, t->block);
		if (t->drain)
			qp_drain(t->qp);
	}
	/* The program may arm the key again before the stream ends, so the next error counts as a
	 * first one. */
	f->stream.errors = 0;
}

/* Which sides' transactions have all their data. */
static unsigned transfer_summed(const struct sig_resume *f, uint64_t reg[SIG_SIDES])
{
	unsigned sides = 0;

	if (likely(!f->stream.plan->transaction))
		return 0;
	for (unsigned i = 0; i < SIG_SIDES; i++)
		if (sig_stream_summed(&f->stream, (enum sig_side)i, &reg[i]))
			sides |= 1u << i;
	return sides;
}

/* Carries the sums of the transactions that have become complete since 'before'. */
static void transfer_carry(const struct transfer *t, const struct sig_resume *f, unsigned before)
{
	uint64_t reg[SIG_SIDES] = {0};
	unsigned sides = transfer_summed(f, reg) & ~before;

	for (unsigned i = 0; i < SIG_SIDES; i++)
		if (unlikely(sides & 1u << i))
			mkey_signed_carry(t->adapter, &f->key, t->message, (enum sig_side)i,
					  reg[i]);
}

static enum mkey_verdict stretch_move(const struct transfer *t, struct sig_resume *f,
				      const struct stretch *s, const struct runs *wire)
{
	bool gather = t->direction == SIG_GATHER;
	struct sig_cursor message = sig_cursor(wire->run, wire->n);
	uint64_t at = s->memory;
	uint64_t n, reg[SIG_SIDES];
	unsigned before = transfer_summed(f, reg);

	/* A stretch may lie completely in a signature of the wire, and then moves no byte of
	 * memory. */
	do {
		struct runs memory;
		struct sig_cursor c;
		struct sig_step e = {
			.stream = &f->stream,
			.from = gather ? &c : &message,
			.to = gather ? &message : &c,
		};
		enum mkey_verdict v;

		n = s->end - at;
		v = signed_runs(t, s->key, at, &n, &memory);
		if (v != MKEY_OK)
			return v;
		c = sig_cursor(memory.run, memory.n);
		if (!usermem_guarded(transfer_feed, &e, list_of(&memory), list_of(wire)))
			return MKEY_GONE;
		at += n;
	} while (at < s->end);
	transfer_carry(t, f, before);
	transfer_report(t, f);
	return MKEY_OK;
}

/* Moves a piece with signatures.  MKEY_NO_KEY if the key has none; then it has done nothing. */
static enum mkey_verdict signed_move(const struct transfer *t, const struct piece *p,
				     struct sig_cursor *wire)
{
	struct sig_resume *f = t->flow;
	uint32_t key = f->key.key;
	uint64_t generation = f->key.generation;
	uint64_t next = f->next;
	enum mkey_verdict v;
	struct stretch s;
	struct runs part;

	/* unusable until everything has gone well */
	f->next = 0;
	v = open_key(t, p, &f->key, &s);
	if (v == MKEY_NO_KEY)
		f->next = next;
	if (v != MKEY_OK)
		return v;
	if (!next || next != s.wire || key != f->key.key || generation != f->key.generation) {
		if (unlikely(f->key.plan.transaction))
			mkey_signed_take(t->adapter, &f->key, t->message, s.wire);
		v = transfer_begin(t, f, &s);
		if (v != MKEY_OK)
			return v;
	}
	if (!transfer_split(wire, p->len, &part))
		return MKEY_TOO_MANY_RUNS;
	v = stretch_move(t, f, &s, &part);
	if (v == MKEY_OK)
		f->next = s.wire + p->len;
	return v;
}

/* ---- transfers ---- */

enum mkey_verdict transfer_check(const struct transfer *t, uint64_t off, uint64_t len)
{
	struct piece p;

	for (uint64_t end = off + len; off < end; off += p.len) {
		enum mkey_verdict v;
		struct mkey_signed key;
		struct stretch s;
		struct runs runs;
		uint64_t n;

		if (!piece_at(t, off, end - off, &p))
			return MKEY_OUT_OF_RANGE;
		n = p.len;
		v = plain_runs(t, &p, 0, &n, &runs);
		if (v == MKEY_SIGNED)
			v = open_key(t, &p, &key, &s);
		if (v != MKEY_OK)
			return v;
	}
	return MKEY_OK;
}

enum mkey_verdict transfer_move(const struct transfer *t, uint64_t off, uint64_t len,
				const struct run *wire, uint32_t nwire)
{
	struct sig_cursor c = sig_cursor(wire, nwire);
	struct piece p;

	for (uint64_t end = off + len; off < end; off += p.len) {
		enum mkey_verdict v;

		if (!piece_at(t, off, end - off, &p))
			return MKEY_OUT_OF_RANGE;
		v = signed_move(t, &p, &c);
		if (v == MKEY_NO_KEY)
			v = plain_move(t, &p, &c);
		if (v != MKEY_OK)
			return v;
	}
	return MKEY_OK;
}

/* Copies bytes [off, off + len) of the payload into to. */
static bool payload_part(const struct pkt *pkt, uint64_t off, uint64_t len, uint8_t *to)
{
	const struct run dst = {to, len};
	struct sig_cursor c = sig_cursor(pkt->runs, pkt->nruns);
	struct runs part;

	if (pkt->source)
		return pkt->source->pull(pkt->source, off, &dst, 1);
	for (uint64_t skip = off; skip;) {
		uint64_t n = min_u64(skip, sig_cursor_left(&c));

		if (!n)
			return false;
		sig_cursor_advance(&c, n);
		skip -= n;
	}
	return transfer_split(&c, len, &part) &&
	       payload_pull_runs(&dst, 1, pkt, part.run, part.n) && !pkt_withdrawn(pkt);
}

enum mkey_verdict transfer_place(const struct transfer *t, uint64_t off, const struct pkt *pkt)
{
	uint8_t stage[PART_BYTES];
	uint64_t n;

	if (!pkt->source && !pkt->foreign)
		return transfer_move(t, off, pkt->payload_len, pkt->runs, pkt->nruns);
	for (uint64_t done = 0; done < pkt->payload_len; done += n) {
		struct run part = {stage, n = min_u64(sizeof(stage), pkt->payload_len - done)};
		enum mkey_verdict v;

		if (!payload_part(pkt, done, n, stage))
			return MKEY_GONE;
		v = transfer_move(t, off + done, n, &part, 1);
		if (v != MKEY_OK)
			return v;
	}
	return MKEY_OK;
}

/* ---- payloads made on demand ---- */

/* True if the memory of bytes [off, off + len) exists.  This slow test tells whose memory is
 * missing. */
static bool memory_there(const struct transfer *t, uint64_t off, uint64_t len)
{
	uint8_t scratch[4096];
	uint64_t n;

	for (uint64_t done = 0; done < len; done += n) {
		struct run part = {scratch, n = min_u64(sizeof(scratch), len - done)};

		if (transfer_move(t, off + done, n, &part, 1) != MKEY_OK)
			return false;
	}
	return true;
}

static bool source_pull(struct pkt_source *source, uint64_t off, const struct run *dst,
			uint32_t ndst)
{
	struct transfer_source *s = container_of(source, struct transfer_source, source);
	uint64_t len = runs_bytes(dst, ndst);
	enum mkey_verdict v = transfer_move(&s->t, s->off + off, len, dst, ndst);

	if (likely(v == MKEY_OK)) {
		if (s->made == off)
			s->made = off + len;
		return true;
	}
	source->gone = v != MKEY_GONE || !memory_there(&s->t, s->off + off, len);
	return false;
}

void transfer_source_begin(struct transfer_source *s, uint64_t off)
{
	s->source = (struct pkt_source){.pull = source_pull};
	s->off = off;
	s->made = 0;
}

/* Does a key of the list belong to a chain? */
static bool transfer_is_chained(const struct transfer *t)
{
	struct mkey_signed key;

	for (uint32_t i = 0; i < t->nsegs; i++) {
		const struct mkey_use u = transfer_use(t, t->seg[i].lkey);

		if (!t->seg[i].inline_data &&
		    mkey_signed_open(t->adapter, &u, t->direction, &key) == MKEY_OK &&
		    key.plan.transaction)
			return true;
	}
	return false;
}

void transfer_source_end(struct transfer_source *s, uint64_t len)
{
	struct run nowhere = {RUN_DISCARD, len - s->made};

	if (likely(s->made == len) || s->source.gone)
		return;
	if (!transfer_is_chained(&s->t) && !(s->t.drain && atomic_load(&s->t.qp->drain_sigerr)))
		return;
	/* If this fails, the packet is sent again and fails then. */
	if (!source_pull(&s->source, s->made, &nowhere, 1))
		s->made = 0;
}
