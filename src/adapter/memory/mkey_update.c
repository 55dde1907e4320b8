// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/memory/mkey_update.h"

#include <string.h>

#include "adapter/memory/mkey_internal.h"
#include "adapter/memory/psv.h"
#include "base/explain.h"
#include "prm/wqe.h"
#include "prm/cqe.h"
#include "usermem/usermem.h"

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
