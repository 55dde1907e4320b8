// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/memory/mkey.h"

#include <errno.h>
#include <stdlib.h>

#include "adapter/memory/mkey_explain.h"
#include "base/hazard.h"
#include "base/trace.h"
#include "exposure/expose.h"

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
