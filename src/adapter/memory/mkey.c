// SPDX-License-Identifier: BSD-2-Clause
/* Memory keys of regions, the null key, and what is said of keys that refuse; see mkey.h. */
#include "adapter/memory/mkey.h"

#include "base/hazard.h"
#include "base/memory_file.h"
#include "base/trace.h"
#include "exposure/expose.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The zeros are mapped only when somebody first reads them.  Every program asks
 * for the key when it opens a device, and hardly any uses it; but the address range counts under a
 * limit, and under mlockall. */

/*
 * The most bytes that one message carries.  Nobody writes the pages, so each of them is the
 * kernel's one page of zeros.
 */
#define ZEROS_BYTES ((size_t)IB_MAX_MSG_BYTES)

void null_mkey_init(struct null_mkey *n)
{
	pthread_mutex_init(&n->lock, NULL);
}

void null_mkey_release(struct null_mkey *n)
{
	uint8_t *zeros = atomic_load(&n->zeros);

	if (zeros)
		munmap(zeros, ZEROS_BYTES);
	pthread_mutex_destroy(&n->lock);
}

/* The zeros; NULL if there is no room for them. */
static uint8_t *zeros_of(struct null_mkey *n)
{
	uint8_t *zeros = atomic_load_explicit(&n->zeros, memory_order_acquire);

	if (likely(zeros))
		return zeros;
	pthread_mutex_lock(&n->lock);
	zeros = atomic_load_explicit(&n->zeros, memory_order_relaxed);
	if (!zeros) {
		zeros = sparse_map(ZEROS_BYTES, PROT_READ, -1, 0);
		atomic_store_explicit(&n->zeros, zeros, memory_order_release);
	}
	pthread_mutex_unlock(&n->lock);
	return zeros;
}

/* Nobody frees the index, so no other key can be mistaken for the null key. */
int64_t adapter_null_key(struct adapter *a)
{
	struct null_mkey *n = a->null_mkey;
	int64_t ret;

	pthread_mutex_lock(&n->lock);
	ret = atomic_load_explicit(&n->key, memory_order_relaxed);
	if (ret)
		goto unlock;
	ret = number_take(&a->mkeys, &a->attr, NUMBER_MKEY);
	if (ret < 0)
		goto unlock;
	ret = ret << 8;
	atomic_store_explicit(&n->key, (uint32_t)ret, memory_order_release);
unlock:
	pthread_mutex_unlock(&n->lock);
	return ret;
}

enum mkey_verdict null_mkey_resolve(struct null_mkey *n, const struct mkey_use *u, uint64_t len,
				    struct runs *runs)
{
	void *from = RUN_DISCARD;

	if (u->remote || !u->key || u->key != atomic_load_explicit(&n->key, memory_order_acquire))
		return MKEY_NO_KEY;
	if (u->access & ~(uint32_t)IB_ACCESS_LOCAL_WRITE)
		return MKEY_NO_RIGHT;
	if (len > ZEROS_BYTES)
		return MKEY_OUT_OF_RANGE;
	if (!len)
		return MKEY_OK;
	if (runs->n == RUNS_MAX)
		return MKEY_TOO_MANY_RUNS;
	if (!(u->access & IB_ACCESS_LOCAL_WRITE))
		from = zeros_of(n);
	if (unlikely(!from))
		return MKEY_NO_KEY;
	runs_add(runs, 0, from, len);
	return MKEY_OK;
}

struct mkey {
	uint32_t key;
	struct mkey_meaning *meaning;
	bool exposed;
	bool noted;
};

static const struct mkey_ops region_ops;

static struct mkey_meaning *region_meaning(struct mkey *owner, const struct mkey_attr *attr)
{
	struct mkey_meaning *m = malloc(sizeof(*m));

	if (m)
		*m = (struct mkey_meaning){
			.region_key = owner->key,
			.pdn = attr->pdn,
			.access = attr->access,
			.iova = attr->iova,
			.length = attr->length,
			.addr = attr->addr,
			.owner = owner,
			.ops = &region_ops,
		};
	return m;
}

/* Makes a key that has a number and no meaning yet. */
static int mkey_alloc(struct adapter *a, uint8_t variant, struct mkey **out)
{
	struct mkey *m = calloc(1, sizeof(*m));
	int64_t index;

	if (!m)
		return -ENOMEM;
	index = number_take(&a->mkeys, &a->attr, NUMBER_MKEY);
	if (index < 0) {
		free(m);
		return (int)index;
	}
	m->key = (uint32_t)index << 8 | variant;
	*out = m;
	return 0;
}

int mkey_create(struct adapter *a, const struct mkey_attr *attr, struct mkey **out)
{
	uint8_t variant =
		attr->given_variant ? attr->variant : atomic_fetch_add(&a->key_variant, 1);
	struct mkey *m = NULL;
	int ret = mkey_alloc(a, variant, &m);

	if (ret < 0)
		return ret;
	m->meaning = region_meaning(m, attr);
	if (!m->meaning) {
		number_give(&a->mkeys, m->key >> 8);
		free(m);
		return -ENOMEM;
	}
	number_publish(&a->mkeys, m->key >> 8, m->meaning);
	*out = m;
	return 0;
}

int mkey_adopt(struct adapter *a, struct mkey_meaning *meaning, uint8_t variant, uint32_t *key,
	       struct mkey **out)
{
	struct mkey *m = NULL;
	int ret = mkey_alloc(a, variant, &m);

	if (ret < 0)
		return ret;
	*key = m->key;
	m->meaning = meaning;
	meaning->region_key = MKEY_NO_REGION;
	number_publish(&a->mkeys, m->key >> 8, meaning);
	*out = m;
	return 0;
}

uint32_t mkey_key(const struct mkey *m)
{
	return m->key;
}

/* Ends the key's exposure.  When it returns, no peer is in the memory any more. */
void mkey_conceal(struct adapter *a, struct mkey *m)
{
	struct expose *e = wire_expose(a->wire);

	if (m->noted)
		expose_note_key_end(e, m->key);
	m->noted = false;
	if (!m->exposed)
		return;
	expose_key_end(e, m->key);
	expose_revoke(e);
	m->exposed = false;
}

/* Called when no request finds the key any more and none that found it is being sent.  Nobody reads
 * payloads any more that were sent by reference and not read yet; when it returns, no peer is
 * reading one. */
static void mkey_withdraw_sent(struct adapter *a, const struct mkey_meaning *m)
{
	if (m->ops == &region_ops && m->length &&
	    wire_withdraw_key(a->wire, (uint32_t)m->region_key, (struct run){m->addr, m->length},
			      a->payload_lost, a))
		expose_revoke(wire_expose(a->wire));
}

int mkey_modify(struct adapter *a, struct mkey *m, const struct mkey_attr *attr)
{
	struct mkey_meaning *old = m->meaning;
	struct mkey_meaning *new = region_meaning(m, attr);

	if (!new)
		return -ENOMEM;
	mkey_conceal(a, m);
	m->meaning = new;
	number_publish(&a->mkeys, m->key >> 8, new);
	hazard_wait(old, 1);
	mkey_withdraw_sent(a, old);
	free(old);
	return 0;
}

void mkey_expose(struct adapter *a, struct mkey *m, const struct key_place *place)
{
	const struct key_block k = {
		.key = m->key,
		.pdn = m->meaning->pdn,
		.access = m->meaning->access,
		.iova = m->meaning->iova,
		.length = m->meaning->length,
		.place = *place,
	};

	m->exposed = expose_key(wire_expose(a->wire), &k);
}

void mkey_note(struct adapter *a, struct mkey *m, enum key_why why)
{
	expose_note_key(wire_expose(a->wire), &(struct key_block){
						      .key = m->key,
						      .pdn = m->meaning->pdn,
						      .access = m->meaning->access,
						      .iova = m->meaning->iova,
						      .length = m->meaning->length,
						      .place.why = why,
					      });
	m->noted = true;
}

static __attribute__((cold)) void mkey_explain_gone(struct adapter *a,
						    const struct mkey_meaning *m);

void mkey_destroy(struct adapter *a, struct mkey *m)
{
	mkey_conceal(a, m);
	number_publish(&a->mkeys, m->key >> 8, NULL);
	hazard_wait(m->meaning, 1);
	mkey_withdraw_sent(a, m->meaning);
	if (explaining())
		mkey_explain_gone(a, m->meaning);
	number_give(&a->mkeys, m->key >> 8);
	m->meaning->ops->release(m->meaning);
	free(m);
}

int mkey_query(struct adapter *a, uint32_t key, struct mkey_attr *out)
{
	const struct mkey_meaning *m;
	int ret = -ENOENT;

	hazard_enter();
	m = number_find(&a->mkeys, key >> 8);
	if (m && m->ops != &region_ops) {
		ret = -EINVAL;
	} else if (m && m->region_key == key) {
		*out = (struct mkey_attr){
			.pdn = m->pdn,
			.access = m->access,
			.iova = m->iova,
			.length = m->length,
			.addr = m->addr,
		};
		ret = 0;
	}
	hazard_leave();
	return ret;
}

/* Appends the runs of a range, if the key names this region. */
static inline enum mkey_verdict region_runs(const struct mkey_meaning *m, const struct mkey_use *u,
					    uint64_t va, uint64_t len, struct runs *runs)
{
	if (unlikely(m->pdn != u->pdn))
		return MKEY_WRONG_PD;
	if (unlikely((m->access & u->access) != u->access))
		return MKEY_NO_RIGHT;
	/* va - iova wraps to something huge when va lies before the region */
	if (unlikely(!range_inside(va - m->iova, len, m->length)))
		return MKEY_OUT_OF_RANGE;
	if (!len)
		return MKEY_OK;
	if (unlikely(runs->n == RUNS_MAX))
		return MKEY_TOO_MANY_RUNS;
	runs_add(runs, u->key, m->addr + (va - m->iova), len);
	return MKEY_OK;
}

enum mkey_verdict mkey_piece_refused(struct adapter *a, enum mkey_verdict v,
				     const struct mkey_use *u, uint64_t va, uint64_t len)
{
	/* The other verdicts lead to another way to the same memory. */
	if (v == MKEY_TOO_MANY_RUNS || v == MKEY_SIGNED || v == MKEY_BOUND)
		return v;
	trace(access, key, u->key, va, len, ib_access_name(u->access), mkey_verdict_name(v));
	if (explaining())
		mkey_explain(a, &(struct mkey_refusal){*u, va, len, v});
	return v;
}

static enum mkey_verdict region_resolve(struct adapter *a, struct mkey_meaning *m,
					const struct mkey_use *u, uint64_t va, uint64_t len,
					struct runs *runs)
{
	(void)a;
	return m->region_key == u->key ? region_runs(m, u, va, len, runs) : MKEY_NO_KEY;
}

/* Requests do not invalidate a region that Register Memory Region has made (IBTA 10.6.5). */
static enum mkey_verdict region_invalidate(struct mkey_meaning *m, const struct mkey_use *u)
{
	return m->region_key == u->key ? MKEY_NO_RIGHT : MKEY_NO_KEY;
}

static void region_release(struct mkey_meaning *m)
{
	free(m);
}

static const struct mkey_ops region_ops = {
	.resolve = region_resolve,
	.invalidate = region_invalidate,
	.release = region_release,
};

enum mkey_verdict mkey_resolve(struct adapter *a, const struct mkey_use *u, uint64_t va,
			       uint64_t len, struct runs *runs)
{
	struct mkey_meaning *m = number_find(&a->mkeys, u->key >> 8);

	if (likely(m && m->region_key == u->key))
		return region_runs(m, u, va, len, runs);
	if (m)
		return m->ops->resolve(a, m, u, va, len, runs);
	return null_mkey_resolve(a->null_mkey, u, len, runs);
}

bool mkey_is_region(struct adapter *a, uint32_t key)
{
	struct mkey_meaning *m = number_find(&a->mkeys, key >> 8);

	return m && m->region_key == key;
}

enum mkey_verdict mkey_invalidate(struct adapter *a, const struct mkey_use *u)
{
	struct mkey_meaning *m = number_find(&a->mkeys, u->key >> 8);

	return m ? m->ops->invalidate(m, u) : MKEY_NO_KEY;
}

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

/* Notes that the key of this region ends, which explains a later use of the key. */
static void mkey_explain_gone(struct adapter *a, const struct mkey_meaning *m)
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
