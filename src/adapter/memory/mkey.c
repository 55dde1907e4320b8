// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/memory/mkey.h"

#include <errno.h>
#include <stdlib.h>

#include "adapter/memory/window.h"
#include "base/rcu.h"
#include "base/trace.h"

struct mkey {
	uint32_t key;
	/* Windows bound to it; or FROZEN: none is and none can be. */
	_Atomic(uint32_t) windows;
	struct mkey_meaning *meaning;
	bool exposed;
};

#define FROZEN UINT32_MAX

static struct mkey_meaning *meaning_of(struct mkey *owner, const struct mkey_attr *attr)
{
	struct mkey_meaning *m = malloc(sizeof(*m));

	if (m)
		*m = (struct mkey_meaning){
			.key = owner->key,
			.kind = MKEY_FLAT,
			.pdn = attr->pdn,
			.access = attr->access,
			.iova = attr->access & IB_ACCESS_ZERO_BASED ? 0 : attr->iova,
			.length = attr->length,
			.addr = attr->addr,
			.owner = owner,
		};
	return m;
}

int mkey_create(struct adapter *a, const struct mkey_attr *attr, struct mkey **out)
{
	struct mkey *m = malloc(sizeof(*m));
	int64_t index;

	if (!m)
		return -ENOMEM;
	index = number_take(&a->mkeys, &a->attr, NUMBER_MKEY);
	if (index < 0) {
		free(m);
		return (int)index;
	}
	m->key = (uint32_t)index << 8 |
		 (attr->given_variant ? attr->variant : atomic_fetch_add(&a->key_variant, 1));
	atomic_init(&m->windows, 0);
	m->exposed = false;
	m->meaning = meaning_of(m, attr);
	if (!m->meaning) {
		number_give(&a->mkeys, (uint32_t)index);
		free(m);
		return -ENOMEM;
	}
	number_publish(&a->mkeys, (uint32_t)index, m->meaning);
	*out = m;
	return 0;
}

int mkey_adopt(struct adapter *a, struct mkey_meaning *meaning, uint8_t variant, uint32_t *key,
	       struct mkey **out)
{
	struct mkey *m = malloc(sizeof(*m));
	int64_t index;

	if (!m)
		return -ENOMEM;
	index = number_take(&a->mkeys, &a->attr, NUMBER_MKEY);
	if (index < 0) {
		free(m);
		return (int)index;
	}
	m->key = *key = (uint32_t)index << 8 | variant;
	atomic_init(&m->windows, 0);
	m->exposed = false;
	m->meaning = meaning;
	meaning->key = ~m->key;
	number_publish(&a->mkeys, (uint32_t)index, meaning);
	*out = m;
	return 0;
}

uint32_t mkey_key(const struct mkey *m)
{
	return m->key;
}

bool mkey_hold(struct mkey *m)
{
	uint32_t n = atomic_load(&m->windows);

	do {
		if (n >= FROZEN - 1)
			return false;
	} while (!atomic_compare_exchange_weak(&m->windows, &n, n + 1));
	return true;
}

void mkey_let_go(struct mkey *m)
{
	atomic_fetch_sub(&m->windows, 1);
}

int mkey_retire(struct mkey *m)
{
	uint32_t none = 0;

	return atomic_compare_exchange_strong(&m->windows, &none, FROZEN) ? 0 : -EBUSY;
}

static void hide(struct adapter *a, struct mkey *m)
{
	if (m->exposed)
		expose_key_end(wire_expose(a->wire), m->key);
	m->exposed = false;
}

/* Nobody finds the key any more, nor is a request being sent that has found it before: what was
 * sent by reference and has not been read yet never will be. */
static void withdraw_sent(struct adapter *a, const struct mkey_meaning *m)
{
	if (m->kind == MKEY_FLAT && m->length)
		wire_withdraw_memory(a->wire, (struct run){m->addr, m->length}, qp_payload_lost, a);
}

int mkey_modify(struct adapter *a, struct mkey *m, const struct mkey_attr *attr)
{
	struct mkey_meaning *old = m->meaning;
	struct mkey_meaning *new = meaning_of(m, attr);

	if (!new)
		return -ENOMEM;
	/* IBTA 11.2.8, Reregister Memory Region: not while windows are bound to it */
	if (mkey_retire(m) < 0) {
		free(new);
		return -EBUSY;
	}
	hide(a, m);
	m->meaning = new;
	number_publish(&a->mkeys, m->key >> 8, new);
	rcu_wait();
	withdraw_sent(a, old);
	atomic_store(&m->windows, 0);
	free(old);
	return 0;
}

void mkey_expose(struct adapter *a, struct mkey *m, uint64_t offset)
{
	const struct key_block k = {
		.key = m->key,
		.pdn = m->meaning->pdn,
		.access = m->meaning->access,
		.iova = m->meaning->iova,
		.length = m->meaning->length,
		.offset = offset,
	};

	m->exposed = expose_key(wire_expose(a->wire), &k);
}

void mkey_destroy(struct adapter *a, struct mkey *m)
{
	hide(a, m);
	number_publish(&a->mkeys, m->key >> 8, NULL);
	rcu_wait();
	withdraw_sent(a, m->meaning);
	number_give(&a->mkeys, m->key >> 8);
	if (m->meaning->release)
		m->meaning->release(m->meaning);
	else
		free(m->meaning);
	free(m);
}

int mkey_query(struct adapter *a, uint32_t key, struct mkey_attr *out)
{
	const struct mkey_meaning *m;
	int ret = -ENOENT;

	rcu_enter();
	m = number_find(&a->mkeys, key >> 8);
	if (m && m->kind != MKEY_FLAT) {
		ret = -EINVAL;
	} else if (m && m->key == key) {
		*out = (struct mkey_attr){
			.pdn = m->pdn,
			.access = m->access,
			.iova = m->iova,
			.length = m->length,
			.addr = m->addr,
		};
		ret = 0;
	}
	rcu_leave();
	return ret;
}

/* The key names this region. */
static inline enum mkey_verdict region_runs(const struct mkey_meaning *m, uint32_t pdn,
					    uint32_t access, uint64_t va, uint64_t len,
					    struct runs *runs)
{
	if (unlikely(m->pdn != pdn))
		return MKEY_WRONG_PD;
	if (unlikely((m->access & access) != access))
		return MKEY_NO_RIGHT;
	/* va - iova wraps to something huge when va lies before the region */
	if (unlikely(!range_inside(va - m->iova, len, m->length)))
		return MKEY_OUT_OF_RANGE;
	if (!len)
		return MKEY_OK;
	if (unlikely(runs->n == PKT_MAX_RUNS))
		return MKEY_TOO_MANY_RUNS;
	runs->run[runs->n++] = (struct run){m->addr + (va - m->iova), len};
	return MKEY_OK;
}

enum mkey_verdict mkey_piece_refused(enum mkey_verdict v, uint32_t lkey, uint32_t access,
				     uint64_t va, uint64_t len)
{
	/* The others lead to another way to the same memory. */
	if (v != MKEY_TOO_MANY_RUNS && v != MKEY_SIGNED && v != MKEY_BOUND)
		trace(access, key, lkey, va, len, ib_access_name(access), mkey_verdict_name(v));
	return v;
}

enum mkey_verdict mkey_append_runs(struct adapter *a, uint32_t key, uint32_t pdn, uint32_t access,
				   uint64_t va, uint64_t len, struct runs *runs)
{
	const struct mkey_meaning *m = number_find(&a->mkeys, key >> 8);

	if (likely(m && m->key == key))
		return region_runs(m, pdn, access, va, len, runs);
	if (m && m->kind == MKEY_INDIRECT)
		return indirect_append_runs(a, key, pdn, MKEY_ANY_QPN, false, access, va, len,
					    runs);
	return null_mkey_append_runs(a->null_mkey, key, access, len, runs);
}

enum mkey_verdict mkey_append_own_runs(struct adapter *a, uint32_t key, uint32_t pdn, uint32_t qpn,
				       uint32_t access, uint64_t va, uint64_t len,
				       struct runs *runs)
{
	const struct mkey_meaning *m = number_find(&a->mkeys, key >> 8);

	if (m && m->kind == MKEY_INDIRECT)
		return indirect_append_runs(a, key, pdn, qpn, false, access, va, len, runs);
	return mkey_append_runs(a, key, pdn, access, va, len, runs);
}

enum mkey_verdict mkey_append_remote_runs(struct adapter *a, uint32_t key, uint32_t pdn,
					  uint32_t qpn, uint32_t access, uint64_t va, uint64_t len,
					  struct runs *runs)
{
	const struct mkey_meaning *m = number_find(&a->mkeys, key >> 8);

	if (likely(m && m->key == key))
		return region_runs(m, pdn, access, va, len, runs);
	if (m && m->kind == MKEY_INDIRECT)
		return indirect_append_runs(a, key, pdn, qpn, true, access, va, len, runs);
	return window_append_runs(a, key, pdn, qpn, access, va, len, runs);
}

enum mkey_verdict mkey_invalidate(struct adapter *a, uint32_t key, uint32_t pdn, uint32_t qpn)
{
	struct mkey_meaning *m = number_find(&a->mkeys, key >> 8);

	if (!m)
		return MKEY_NO_KEY;
	switch (m->kind) {
	case MKEY_WINDOW:
		return window_invalidate(m, key, pdn, qpn);
	case MKEY_INDIRECT:
		return indirect_invalidate(a, key, pdn, qpn);
	case MKEY_FLAT:
		break;
	}
	/* IBTA 10.6.5: a region made by Register Memory Region is not invalidated by requests. */
	return m->key == key ? MKEY_NO_RIGHT : MKEY_NO_KEY;
}
