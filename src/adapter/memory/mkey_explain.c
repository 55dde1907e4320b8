// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/memory/mkey_explain.h"

#include <stdio.h>
#include <string.h>

/* Rights as programs name them. */
static const struct {
	uint32_t bit;
	const char *name;
} rights[] = {
	{IB_ACCESS_LOCAL_WRITE, "IBV_ACCESS_LOCAL_WRITE"},
	{IB_ACCESS_REMOTE_WRITE, "IBV_ACCESS_REMOTE_WRITE"},
	{IB_ACCESS_REMOTE_READ, "IBV_ACCESS_REMOTE_READ"},
	{IB_ACCESS_REMOTE_ATOMIC, "IBV_ACCESS_REMOTE_ATOMIC"},
	{IB_ACCESS_MW_BIND, "IBV_ACCESS_MW_BIND"},
	{IB_ACCESS_ZERO_BASED, "IBV_ACCESS_ZERO_BASED"},
	{IB_ACCESS_ON_DEMAND, "IBV_ACCESS_ON_DEMAND"},
	{IB_ACCESS_HUGETLB, "IBV_ACCESS_HUGETLB"},
	{IB_ACCESS_RELAXED_ORDERING, "IBV_ACCESS_RELAXED_ORDERING"},
};

#define RIGHTS_BYTES 240

const char *access_text(uint32_t access, char *text, size_t size)
{
	size_t n = 0;

	(void)snprintf(text, size, "none");
	for (size_t i = 0; i < array_size(rights); i++) {
		if (!(access & rights[i].bit) || n >= size)
			continue;
		n += (size_t)snprintf(text + n, size - n, "%s%s", n ? "|" : "", rights[i].name);
	}
	return text;
}

static const char *key_word(const struct mkey_refusal *r)
{
	return r->use.remote ? "rkey" : "lkey";
}

/* The access, in brackets behind the reason. */
#define ACCESS_FORMAT "(address 0x%llx, %llu bytes)"
#define ACCESS_OF(r)  (unsigned long long)(r)->va, (unsigned long long)(r)->len

static bool key_is_region(const struct mkey_meaning *m, uint32_t key)
{
	return m && m->region_key == key;
}

static const struct gone_key *key_gone(const struct adapter *a, uint32_t key)
{
	for (unsigned i = 0; i < array_size(a->gone.keys); i++)
		if (a->gone.keys[i].key == key && a->gone.keys[i].length)
			return &a->gone.keys[i];
	return NULL;
}

void mkey_explain_gone(struct adapter *a, const struct mkey_meaning *m)
{
	struct gone_keys *g = &a->gone;

	if (m->region_key == MKEY_NO_REGION)
		return;
	spin_lock(&g->lock);
	g->keys[g->next++ % array_size(g->keys)] = (struct gone_key){
		.key = (uint32_t)m->region_key, .iova = m->iova, .length = m->length};
	spin_unlock(&g->lock);
}

static bool explain_if_gone(struct adapter *a, const struct mkey_refusal *r)
{
	const struct gone_key *g;
	struct gone_key gone;

	spin_lock(&a->gone.lock);
	g = key_gone(a, r->use.key);
	if (g)
		gone = *g;
	spin_unlock(&a->gone.lock);
	if (g)
		explain_because("%s 0x%x was deregistered (ibv_dereg_mr, ibv_rereg_mr); it was of "
				"0x%llx, %llu bytes " ACCESS_FORMAT,
				key_word(r), r->use.key, (unsigned long long)gone.iova,
				(unsigned long long)gone.length, ACCESS_OF(r));
	return g;
}

/* Explains that nothing has this key. */
static void explain_unknown(struct adapter *a, const struct mkey_refusal *r)
{
	const struct mkey_meaning *m = number_find(&a->mkeys, r->use.key >> 8);
	uint32_t swapped = __builtin_bswap32(r->use.key);

	if (explain_if_gone(a, r))
		return;
	if (key_is_region(number_find(&a->mkeys, swapped >> 8), swapped))
		explain_because("%s 0x%x is unknown, but 0x%x is a key here: is it in the wrong "
				"byte order? " ACCESS_FORMAT,
				key_word(r), r->use.key, swapped, ACCESS_OF(r));
	else if (m && m->region_key != MKEY_NO_REGION)
		explain_because("%s 0x%x is not valid; its index belongs to the MR of key 0x%x, "
				"so it is wrong, or an earlier MR had it " ACCESS_FORMAT,
				key_word(r), r->use.key, (uint32_t)m->region_key, ACCESS_OF(r));
	else if (m)
		explain_because("%s 0x%x is not valid; its index belongs to a memory window or "
				"mkey, which is not bound or has another key now " ACCESS_FORMAT,
				key_word(r), r->use.key, ACCESS_OF(r));
	else
		explain_because("%s 0x%x is unknown: no MR of this process on this device has "
				"it " ACCESS_FORMAT,
				key_word(r), r->use.key, ACCESS_OF(r));
}

static void explain_right(const struct mkey_meaning *m, const struct mkey_refusal *r)
{
	char has[RIGHTS_BYTES], lacks[RIGHTS_BYTES];

	if (!key_is_region(m, r->use.key)) {
		explain_because("the memory window or mkey of %s 0x%x does not allow %s to this "
				"QP " ACCESS_FORMAT,
				key_word(r), r->use.key,
				access_text(r->use.access, lacks, sizeof(lacks)), ACCESS_OF(r));
		return;
	}
	explain_because("the MR of %s 0x%x was registered without %s; it has %s " ACCESS_FORMAT,
			key_word(r), r->use.key,
			access_text(r->use.access & ~m->access, lacks, sizeof(lacks)),
			access_text(m->access, has, sizeof(has)), ACCESS_OF(r));
}

/* Explains how far an access lies outside of a region. */
static void explain_range(const struct mkey_meaning *m, const struct mkey_refusal *r)
{
	uint64_t end = r->va + r->len;
	uint64_t stop = key_is_region(m, r->use.key) ? m->iova + m->length : 0;

	if (!key_is_region(m, r->use.key))
		explain_because("the access is not within the memory window or mkey of %s "
				"0x%x " ACCESS_FORMAT,
				key_word(r), r->use.key, ACCESS_OF(r));
	else if (r->va < m->iova)
		explain_because("the access begins %llu bytes before the MR of %s 0x%x, which is "
				"of 0x%llx, %llu bytes " ACCESS_FORMAT,
				(unsigned long long)(m->iova - r->va), key_word(r), r->use.key,
				(unsigned long long)m->iova, (unsigned long long)m->length,
				ACCESS_OF(r));
	else
		explain_because("the access ends %llu bytes behind the MR of %s 0x%x, which is of "
				"0x%llx, %llu bytes " ACCESS_FORMAT,
				(unsigned long long)(end - stop), key_word(r), r->use.key,
				(unsigned long long)m->iova, (unsigned long long)m->length,
				ACCESS_OF(r));
}

void mkey_explain(struct adapter *a, const struct mkey_refusal *r)
{
	const struct mkey_meaning *m = number_find(&a->mkeys, r->use.key >> 8);

	if (r->verdict == MKEY_NO_KEY || (!m && r->verdict != MKEY_GONE))
		explain_unknown(a, r);
	else if (r->verdict == MKEY_WRONG_PD)
		explain_because("%s 0x%x belongs to PD %u, the QP to PD %u " ACCESS_FORMAT,
				key_word(r), r->use.key, m->pdn, r->use.pdn, ACCESS_OF(r));
	else if (r->verdict == MKEY_NO_RIGHT)
		explain_right(m, r);
	else if (r->verdict == MKEY_OUT_OF_RANGE)
		explain_range(m, r);
	else if (r->verdict == MKEY_GONE)
		explain_because("the memory of %s 0x%x cannot be accessed: it is not mapped any "
				"more (with on-demand paging it may never have been), its rights "
				"have changed (mprotect) or its file was truncated " ACCESS_FORMAT,
				key_word(r), r->use.key, ACCESS_OF(r));
	else if (r->verdict == MKEY_TOO_MANY_RUNS)
		explain_because("the mkey of %s 0x%x has too many pieces for one "
				"packet " ACCESS_FORMAT,
				key_word(r), r->use.key, ACCESS_OF(r));
	else
		explain_because("%s 0x%x allows no access of this kind " ACCESS_FORMAT, key_word(r),
				r->use.key, ACCESS_OF(r));
}
