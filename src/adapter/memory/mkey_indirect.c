// SPDX-License-Identifier: BSD-2-Clause
/* Indirect memory keys, and their changes by UMR; see mkey_indirect.h. */
#include "adapter/memory/mkey_indirect.h"

#include "adapter/memory/psv.h"
#include "base/explain.h"
#include "base/log.h"
#include "base/trace.h"
#include "prm/cqe.h"
#include "prm/wqe.h"
#include "usermem/usermem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How deep lists of keys may be nested. */
#define MAX_DEPTH 4u

/* Ends a look-up although another thread changes the key without pause. */
#define MAX_ATTEMPTS 1000u

/* Entries of 64 bytes, in which programs write lists, and a device reads them: what is behind the
 * last one is padding, for which a key has room, too. */
#define LIST_UNIT 4u

/* A look-up copies this many pieces at a time out of the list, under its lock. */
#define PIECES 16u

/* ---- life ---- */

static bool indirect_attr_ok(const struct mkey_indirect_attr *attr)
{
	return attr->max_entries <= ADAPTER_MAX_KLM && attr->entries <= attr->max_entries &&
	       attr->qpn <= MKEY_ANY_QPN && (!attr->signature || attr->bsf_octowords) &&
	       (attr->list == MKEY_LIST_KLM ||
		(attr->list == MKEY_LIST_KSM && attr->log_entry_bytes < 32));
}

static int indirect_fill(struct indirect *k, const struct mkey_indirect_attr *attr)
{
	const char *why;
	int ret;

	ret = klm_list_init(&k->list, attr->list, attr->log_entry_bytes,
			    (uint32_t)align_up(attr->max_entries, LIST_UNIT));
	if (ret < 0)
		return ret;
	if (attr->entries)
		klm_list_put(&k->list, 0, attr->entry, attr->entries);
	why = klm_list_settle(&k->list);
	if (why) {
		log_info("indirect key: %s", why);
		return -EINVAL;
	}
	k->meaning.ops = &indirect_ops;
	k->meaning.pdn = attr->pdn;
	k->umr = attr->umr;
	k->bsf_octowords = attr->bsf_octowords;
	k->qpn = attr->qpn;
	k->access = attr->access;
	k->local_read = attr->local_read;
	k->free = attr->free;
	k->remote_invalidate = attr->remote_invalidate;
	k->start = attr->start;
	k->length = attr->length;
	k->signature = attr->signature;
	return 0;
}

static void indirect_free(struct mkey_meaning *m)
{
	struct indirect *k = container_of(m, struct indirect, meaning);

	klm_list_release(&k->list);
	free(k);
}

int mkey_create_indirect(struct adapter *a, const struct mkey_indirect_attr *attr,
			 struct mkey **out)
{
	struct indirect *k;
	int ret;

	if (!indirect_attr_ok(attr))
		return -EINVAL;
	k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	ret = indirect_fill(k, attr);
	if (ret < 0)
		goto release;
	k->generation = (uint64_t)atomic_fetch_add(&a->lists_made, 1) << 32;
	ret = mkey_adopt(a, &k->meaning, attr->variant, &k->key, out);
	if (ret < 0)
		goto release;
	mkey_note(a, *out, KEY_WHY_LIST);
	return 0;
release:
	indirect_free(&k->meaning);
	return ret;
}

/* ---- use ---- */

static enum mkey_verdict indirect_check(const struct indirect *k, const struct mkey_use *u)
{
	if (k->key != u->key || k->free)
		return MKEY_NO_KEY;
	if (k->meaning.pdn != u->pdn)
		return MKEY_WRONG_PD;
	if (k->qpn != MKEY_ANY_QPN && k->qpn != u->qpn)
		return u->qpn == MKEY_ANY_QPN ? MKEY_BOUND : MKEY_NO_RIGHT;
	if ((k->access & u->access) != u->access || (!u->remote && !u->access && !k->local_read))
		return MKEY_NO_RIGHT;
	return MKEY_OK;
}

/* Joins the last two runs of a region if they touch. */
static void runs_join_last(struct runs *runs)
{
	struct run *last = &runs->run[runs->n - 1];
	struct run *before = last - 1;

	if (runs->n < 2 || before->addr == RUN_DISCARD ||
	    runs->key[runs->n - 2] != runs->key[runs->n - 1] ||
	    (uint8_t *)before->addr + before->len != last->addr)
		return;
	before->len += last->len;
	runs->n--;
}

static enum mkey_verdict indirect_list_runs(struct adapter *a, struct indirect *k,
					    uint64_t generation, uint32_t access, uint64_t off,
					    uint64_t len, struct runs *runs, unsigned depth);

/* Says whether the key may be used so.  *generation identifies the present list. */
static enum mkey_verdict indirect_look(struct indirect *k, const struct mkey_use *u, uint64_t va,
				       uint64_t len, uint64_t *off, uint64_t *generation)
{
	enum mkey_verdict v;

	spin_lock(&k->lock);
	v = indirect_check(k, u);
	*generation = k->generation;
	*off = va - k->start;
	/* With signatures, addresses count in the wire's stream and say little about memory. */
	if (v == MKEY_OK && indirect_signed(k))
		v = MKEY_SIGNED;
	if (v == MKEY_OK && !range_inside(*off, len, k->length))
		v = MKEY_OUT_OF_RANGE;
	spin_unlock(&k->lock);
	return v;
}

static bool indirect_changed(struct indirect *k, uint64_t generation)
{
	bool changed;

	spin_lock(&k->lock);
	changed = k->generation != generation;
	spin_unlock(&k->lock);
	return changed;
}

/* An access meets a concurrent change before or after it, never half of it, and no change makes it
 * fail. */
static enum mkey_verdict indirect_runs(struct adapter *a, struct indirect *k,
				       const struct mkey_use *u, uint64_t va, uint64_t len,
				       struct runs *runs, unsigned depth)
{
	const uint32_t before = runs->n;
	const struct run last = before ? runs->run[before - 1] : (struct run){0};

	for (unsigned attempt = 1;; attempt++) {
		uint64_t generation, off;
		enum mkey_verdict v = indirect_look(k, u, va, len, &off, &generation);

		if (v != MKEY_OK || !len)
			return v;
		v = indirect_list_runs(a, k, generation, u->access, off, len, runs, depth);
		if (likely(v != MKEY_NO_KEY) || attempt == MAX_ATTEMPTS ||
		    !indirect_changed(k, generation))
			return v;
		runs->n = before;
		if (before)
			runs->run[before - 1] = last;
	}
}

/*
 * Follows a piece, which belongs to another key of the same domain.  That key is only asked for
 * local rights, because the outer key says what a peer may do.
 */
static enum mkey_verdict indirect_follow(struct adapter *a, uint32_t pdn, uint32_t access,
					 const struct klm_piece *p, struct runs *runs,
					 unsigned depth)
{
	struct indirect *inner = indirect_find(a, p->key);
	const struct mkey_use u = {
		.key = p->key,
		.pdn = pdn,
		.qpn = MKEY_ANY_QPN,
		.access = access,
		.listed = true,
	};
	enum mkey_verdict v;

	if (!inner)
		v = mkey_resolve(a, &u, p->va, p->len, runs);
	else if (depth + 1 < MAX_DEPTH)
		v = indirect_runs(a, inner, &u, p->va, p->len, runs, depth + 1);
	else
		v = MKEY_NO_RIGHT;
	/* The bytes of a signed key are not those in memory, so it cannot be a piece.  A key that
	 * only one QP may use cannot be a piece of a key that others may use. */
	if (v == MKEY_SIGNED || v == MKEY_BOUND)
		v = MKEY_NO_RIGHT;
	if (v == MKEY_OK)
		runs_join_last(runs);
	else if (v != MKEY_TOO_MANY_RUNS)
		trace(access, list, p->key, p->va, p->len, mkey_verdict_name(v), depth);
	return v;
}

/* Appends bytes [off, off + len) of the list while the key has this generation. */
static enum mkey_verdict indirect_list_runs(struct adapter *a, struct indirect *k,
					    uint64_t generation, uint32_t access, uint64_t off,
					    uint64_t len, struct runs *runs, unsigned depth)
{
	uint32_t local =
		access & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)
			? IB_ACCESS_LOCAL_WRITE
			: 0;
	struct klm_piece piece[PIECES];

	while (len) {
		/* One piece too many shows that the runs do not fit. */
		uint32_t room = min_u32(RUNS_MAX - runs->n, PIECES);
		enum mkey_verdict v = MKEY_OK;
		uint32_t n = 0;

		spin_lock(&k->lock);
		if (k->generation != generation)
			v = MKEY_NO_KEY;
		else if (!range_inside(off, len, k->list.bytes))
			v = MKEY_OUT_OF_RANGE;
		else
			n = klm_list_pieces(&k->list, off, len, piece, room ? room : 1);
		spin_unlock(&k->lock);
		for (uint32_t i = 0; i < n && v == MKEY_OK; i++) {
			v = indirect_follow(a, k->meaning.pdn, local, &piece[i], runs, depth);
			off += piece[i].len;
			len -= piece[i].len;
		}
		if (v != MKEY_OK)
			return v;
	}
	return MKEY_OK;
}

static enum mkey_verdict indirect_resolve(struct adapter *a, struct mkey_meaning *m,
					  const struct mkey_use *u, uint64_t va, uint64_t len,
					  struct runs *runs)
{
	return indirect_runs(a, container_of(m, struct indirect, meaning), u, va, len, runs, 0);
}

/* Send with Invalidate: the key's owner must have allowed it. */
static enum mkey_verdict indirect_invalidate(struct mkey_meaning *m, const struct mkey_use *u)
{
	struct indirect *k = container_of(m, struct indirect, meaning);
	enum mkey_verdict v = MKEY_OK;

	spin_lock(&k->lock);
	if (k->key != u->key || k->free)
		v = MKEY_NO_KEY;
	else if (k->meaning.pdn != u->pdn)
		v = MKEY_WRONG_PD;
	else if (!k->remote_invalidate || (k->qpn != MKEY_ANY_QPN && k->qpn != u->qpn))
		v = MKEY_NO_RIGHT;
	if (v == MKEY_OK) {
		k->free = true;
		k->generation++;
	}
	spin_unlock(&k->lock);
	return v;
}

const struct mkey_ops indirect_ops = {
	.resolve = indirect_resolve,
	.invalidate = indirect_invalidate,
	.release = indirect_free,
};

/* ---- signatures ---- */

enum mkey_verdict mkey_signed_open(struct adapter *a, const struct mkey_use *u,
				   enum sig_direction d, struct mkey_signed *out)
{
	struct indirect *k = indirect_find(a, u->key);
	enum mkey_verdict v;

	if (!k)
		return MKEY_NO_KEY;
	spin_lock(&k->lock);
	v = indirect_check(k, u);
	if (v == MKEY_OK && !indirect_signed(k))
		v = MKEY_NO_KEY;
	if (v == MKEY_OK)
		*out = (struct mkey_signed){
			.key = u->key,
			.generation = k->generation,
			.start = k->start,
			.length = k->length,
			.plan = k->plan[d],
		};
	spin_unlock(&k->lock);
	return v;
}

enum mkey_verdict mkey_signed_runs(struct adapter *a, const struct mkey_signed *s, uint32_t access,
				   uint64_t off, uint64_t len, struct runs *runs)
{
	struct indirect *k = indirect_find(a, s->key);

	if (!k)
		return MKEY_NO_KEY;
	if (!range_inside(off, len, s->length))
		return MKEY_OUT_OF_RANGE;
	return indirect_list_runs(a, k, s->generation, access, off, len, runs, 0);
}

/* A transaction signature is a CRC of 32 bits, and its register stands where that of SET_PSV does. */
#define CARRY_SHIFT 32

static void link_take(struct adapter *a, struct indirect *k, struct sig_frame *f, uint64_t message,
		      uint64_t offset)
{
	struct chain_link *l = &k->link[f->side];

	if (!f->transaction || f->first)
		return;
	if (!l->taken || (!offset && (!message || l->taken_by != message))) {
		l->start = psv_value(a, k->psv[f->side]) >> CARRY_SHIFT;
		l->taken = true;
		l->taken_by = message;
	}
	f->start = l->start;
}

void mkey_signed_take(struct adapter *a, struct mkey_signed *s, uint64_t message, uint64_t offset)
{
	struct indirect *k = indirect_find(a, s->key);

	if (!k)
		return;
	spin_lock(&k->lock);
	if (k->generation == s->generation) {
		link_take(a, k, &s->plan.in, message, offset);
		link_take(a, k, &s->plan.out, message, offset);
	}
	spin_unlock(&k->lock);
}

void mkey_signed_carry(struct adapter *a, const struct mkey_signed *s, uint64_t message,
		       enum sig_side side, uint64_t reg)
{
	struct indirect *k = indirect_find(a, s->key);

	if (!k)
		return;
	spin_lock(&k->lock);
	if (k->generation == s->generation && (!message || k->link[side].carried_by != message)) {
		k->link[side].carried_by = message;
		psv_carry(a, k->psv[side], reg << CARRY_SHIFT);
	}
	spin_unlock(&k->lock);
}

bool mkey_signed_raise(struct adapter *a, const struct mkey_signed *s, const struct sig_error *e)
{
	struct indirect *k = indirect_find(a, s->key);
	uint32_t arms, psv;
	bool first;

	if (!k)
		return false;
	spin_lock(&k->lock);
	psv = k->psv[e->side];
	arms = psv_arms(a, k->psv[SIG_WIRE]) + psv_arms(a, k->psv[SIG_MEMORY]);
	first = !k->reported || k->psv_arms != arms;
	k->reported = true;
	k->psv_arms = arms;
	spin_unlock(&k->lock);
	return psv_note_error(a, psv) && first;
}

/* How many entries of a list in memory it fetches at a time. */
#define FETCH 64u

/* Hints about ordering, which mean nothing here. */
#define MASK_HINTS (UMR_MASK_SMALL_FENCE | UMR_MASK_RELAXED_WRITE | UMR_MASK_RELAXED_READ)
#define MASK_KNOWN                                                                                \
	(UMR_MASK_ACCESS | MASK_HINTS | UMR_MASK_LEN | UMR_MASK_PAGE_SIZE | UMR_MASK_START_ADDR | \
	 UMR_MASK_PD | UMR_MASK_REMOTE_INVALIDATE | UMR_MASK_SIG_ERR | UMR_MASK_BSF_ENABLE |      \
	 UMR_MASK_MKEY | UMR_MASK_QPN | UMR_MASK_FREE)

/* Why an update is refused; all zero: no objection. */
struct objection {
	uint8_t syndrome; /* enum cqe_syndrome */
	const char *why;
};

static const struct objection none;

static struct objection update_object(uint8_t syndrome, const char *why)
{
	return (struct objection){syndrome, why};
}

/* ---- checks that do not need the key's state ---- */

static struct objection check_request(const struct indirect *k, const struct mkey_update *u)
{
	if (u->mask & ~MASK_KNOWN)
		return update_object(CQE_SYN_LOCAL_QP_OP, "an unknown field in the mask");
	if (!k->umr)
		return update_object(CQE_SYN_MW_BIND, "the key was made without UMR");
	if (k->meaning.pdn != u->pdn)
		return update_object(CQE_SYN_MW_BIND, "the key is of another protection domain");
	if (u->mask & UMR_MASK_PD && (be32_get(u->context.flags_pd) & MKEY_CTX_PD) != u->pdn)
		return update_object(CQE_SYN_LOCAL_QP_OP,
				     "a key cannot change its protection domain");
	if (u->entries && !range_inside(u->at, u->entries, k->list.room))
		return update_object(CQE_SYN_MW_BIND, "the key has no room for the list");
	if (u->bsf && u->bsf_octowords > k->bsf_octowords)
		return update_object(CQE_SYN_MW_BIND, "the key has no room for the BSF");
	if (u->mask & UMR_MASK_BSF_ENABLE && be32_get(u->context.flags_pd) & MKEY_CTX_BSF_ENABLE &&
	    !k->bsf_octowords)
		return update_object(CQE_SYN_MW_BIND, "the key has no BSF to enable");
	return none;
}

/* ---- signatures ---- */

struct signature {
	struct sig_plan plan[2];
	uint32_t psv[SIG_SIDES];
};

static struct objection read_signature(struct adapter *a, const struct mkey_update *u,
				       struct signature *out)
{
	struct sig_config c;
	enum sig_refusal r = sig_config_decode(u->bsf, (size_t)u->bsf_octowords * WQE_UNIT, &c);

	if (r != SIG_ACCEPTED)
		return update_object(CQE_SYN_LOCAL_QP_OP, sig_refusal_name(r));
	for (int i = 0; i < SIG_SIDES; i++) {
		out->psv[i] = c.side[i].psv;
		if (c.side[i].type != SIG_NONE && !psv_exists(a, c.side[i].psv, u->pdn))
			return update_object(CQE_SYN_MW_BIND,
					     "no such PSV in the protection domain");
	}
	sig_plan_make(&out->plan[SIG_GATHER], &c, SIG_GATHER);
	sig_plan_make(&out->plan[SIG_SCATTER], &c, SIG_SCATTER);
	return none;
}

/* ---- under the key's lock ---- */

static struct objection check_state(const struct indirect *k, const struct mkey_update *u)
{
	if (u->flags & UMR_CHECK_FREE && !k->free)
		return update_object(CQE_SYN_MW_BIND, "the key is not free");
	if (u->flags & UMR_CHECK_NOT_FREE && k->free)
		return update_object(CQE_SYN_MW_BIND, "the key is free");
	if (u->flags & UMR_CHECK_QPN && k->qpn != MKEY_ANY_QPN && k->qpn != u->qpn)
		return update_object(CQE_SYN_MW_BIND, "the key is of another QP");
	if (mkey_update_invalidates(u) && k->key != u->key)
		return update_object(CQE_SYN_MW_BIND, "the key is not valid");
	return none;
}

static void apply_access(struct indirect *k, const struct mkey_update *u)
{
	static const struct {
		uint64_t mask;
		uint8_t bit;
		uint32_t right;
	} rights[] = {
		{UMR_MASK_ACCESS_LOCAL_WRITE, MKEY_CTX_ACCESS_LOCAL_WRITE, IB_ACCESS_LOCAL_WRITE},
		{UMR_MASK_ACCESS_REMOTE_READ, MKEY_CTX_ACCESS_REMOTE_READ, IB_ACCESS_REMOTE_READ},
		{UMR_MASK_ACCESS_REMOTE_WRITE, MKEY_CTX_ACCESS_REMOTE_WRITE,
		 IB_ACCESS_REMOTE_WRITE},
		{UMR_MASK_ACCESS_ATOMIC, MKEY_CTX_ACCESS_ATOMIC, IB_ACCESS_REMOTE_ATOMIC},
	};

	for (size_t i = 0; i < array_size(rights); i++) {
		if (!(u->mask & rights[i].mask))
			continue;
		k->access &= ~rights[i].right;
		if (u->context.access & rights[i].bit)
			k->access |= rights[i].right;
	}
	if (u->mask & UMR_MASK_ACCESS_LOCAL_READ)
		k->local_read = u->context.access & MKEY_CTX_ACCESS_LOCAL_READ;
}

static void apply_fields(struct indirect *k, const struct mkey_update *u)
{
	const struct umr_mkey_context *c = &u->context;
	uint32_t qpn_mkey = be32_get(c->qpn_mkey), flags = be32_get(c->flags_pd);

	if (u->mask & UMR_MASK_LEN)
		k->length = be64_get(c->len);
	if (u->mask & UMR_MASK_START_ADDR)
		k->start = be64_get(c->start_addr);
	if (u->mask & UMR_MASK_PAGE_SIZE)
		k->list.log_entry_bytes = c->log_page_size & MKEY_CTX_LOG_PAGE_SIZE;
	if (u->mask & UMR_MASK_REMOTE_INVALIDATE)
		k->remote_invalidate = flags & MKEY_CTX_REMOTE_INVALIDATE;
	/* Only software uses the value of the bit, as a counter.  Setting it to either value arms
	 * the key. */
	if (u->mask & UMR_MASK_SIG_ERR)
		k->reported = false;
	if (u->mask & UMR_MASK_BSF_ENABLE)
		k->signature = flags & MKEY_CTX_BSF_ENABLE;
	if (u->mask & UMR_MASK_MKEY)
		k->key = (k->key & ~0xffu) | (qpn_mkey & 0xff);
	if (u->mask & UMR_MASK_QPN)
		k->qpn = qpn_mkey >> 8;
	if (u->mask & UMR_MASK_FREE)
		k->free = c->free & MKEY_CTX_FREE;
	apply_access(k, u);
}

static struct objection update_apply(struct indirect *k, const struct mkey_update *u,
				     const struct signature *s)
{
	const char *why;

	k->generation++;
	if (u->entry)
		klm_list_put(&k->list, (uint32_t)u->at, u->entry, u->entries);
	apply_fields(k, u);
	if (u->bsf) {
		k->plan[SIG_GATHER] = s->plan[SIG_GATHER];
		k->plan[SIG_SCATTER] = s->plan[SIG_SCATTER];
		memcpy(k->psv, s->psv, sizeof(k->psv));
		memset(k->link, 0, sizeof(k->link));
		k->has_bsf = true;
	}
	why = klm_list_settle(&k->list);
	return why ? update_object(CQE_SYN_LOCAL_QP_OP, why) : none;
}

/* Checks whether the key may change.  If so, a list that is written anew is empty from here on. */
static struct objection update_begin(struct indirect *k, const struct mkey_update *u)
{
	struct objection o = check_state(k, u);

	if (!o.why && u->entries && !(u->flags & UMR_TRANSLATION_OFFSET))
		klm_list_clear(&k->list);
	return o;
}

/* ---- a list in memory ---- */

static bool update_fetch(struct adapter *a, const struct mkey_update *u, uint32_t i,
			 struct umr_klm *to, uint32_t n)
{
	const struct mkey_use list = {.key = u->list_lkey, .pdn = u->pdn, .qpn = MKEY_ANY_QPN};
	struct run dst = {to, n * sizeof(*to)};
	struct runs src;

	runs_begin(&src);
	return mkey_resolve(a, &list, u->list_va + i * sizeof(*to), dst.len, &src) == MKEY_OK &&
	       usermem_pull(&dst, 1, src.run, src.n);
}

/* Fetches a list in steps.  The list describes nothing before the last step, or after a step that
 * fails. */
static struct objection fetch_list(struct adapter *a, struct indirect *k,
				   const struct mkey_update *u)
{
	struct umr_klm part[FETCH];
	struct objection o;

	spin_lock(&k->lock);
	o = update_begin(k, u);
	if (!o.why)
		k->generation++;
	spin_unlock(&k->lock);
	for (uint32_t i = 0; i < u->entries && !o.why; i += FETCH) {
		uint32_t n = min_u32(u->entries - i, FETCH);

		if (!update_fetch(a, u, i, part, n))
			return update_object(CQE_SYN_LOCAL_PROT, "the list cannot be read");
		spin_lock(&k->lock);
		klm_list_put(&k->list, (uint32_t)u->at + i, part, n);
		spin_unlock(&k->lock);
	}
	return o;
}

static struct objection update_check(struct adapter *a, const struct mkey_update *u)
{
	struct indirect *k = indirect_find(a, u->key);
	bool fetched = u->entries && !u->entry;
	struct signature s;
	struct objection o;

	if (!k)
		return update_object(CQE_SYN_MW_BIND, "it is no indirect key");
	o = check_request(k, u);
	if (!o.why && u->bsf)
		o = read_signature(a, u, &s);
	if (!o.why && fetched)
		o = fetch_list(a, k, u);
	if (o.why)
		return o;
	spin_lock(&k->lock);
	if (!fetched)
		o = update_begin(k, u);
	if (!o.why)
		o = update_apply(k, u, &s);
	spin_unlock(&k->lock);
	return o;
}

uint8_t mkey_update(struct adapter *a, const struct mkey_update *u)
{
	const struct objection o = update_check(a, u);

	/* If the list cannot be read, the key of its memory has already said why. */
	if (o.why && o.syndrome != CQE_SYN_LOCAL_PROT && explaining())
		explain_because("UMR of mkey 0x%x: %s", u->key, o.why);
	return o.syndrome;
}
