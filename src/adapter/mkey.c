// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/mkey.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rcu.h"

struct mkey {
	uint32_t key;
	struct mkey_meaning *meaning;
};

static struct mkey_meaning *meaning_of(const struct mkey_attr *attr, uint32_t key)
{
	struct mkey_meaning *m = malloc(sizeof(*m));

	if (m)
		*m = (struct mkey_meaning){
			.key = key,
			.pdn = attr->pdn,
			.access = attr->access,
			.iova = attr->access & IB_ACCESS_ZERO_BASED ? 0 : attr->iova,
			.length = attr->length,
			.addr = attr->addr,
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
	m->key = (uint32_t)index << 8 | atomic_fetch_add(&a->key_variant, 1);
	m->meaning = meaning_of(attr, m->key);
	if (!m->meaning) {
		number_give(&a->mkeys, (uint32_t)index);
		free(m);
		return -ENOMEM;
	}
	number_publish(&a->mkeys, (uint32_t)index, m->meaning);
	*out = m;
	return 0;
}

uint32_t mkey_key(const struct mkey *m)
{
	return m->key;
}

int mkey_modify(struct adapter *a, struct mkey *m, const struct mkey_attr *attr)
{
	struct mkey_meaning *old = m->meaning;
	struct mkey_meaning *new = meaning_of(attr, m->key);

	if (!new)
		return -ENOMEM;
	m->meaning = new;
	number_publish(&a->mkeys, m->key >> 8, new);
	rcu_wait();
	free(old);
	return 0;
}

void mkey_destroy(struct adapter *a, struct mkey *m)
{
	number_publish(&a->mkeys, m->key >> 8, NULL);
	rcu_wait();
	number_give(&a->mkeys, m->key >> 8);
	free(m->meaning);
	free(m);
}

enum mkey_verdict mkey_append_runs(struct adapter *a, uint32_t key, uint32_t pdn, uint32_t access,
				   uint64_t va, uint64_t len, struct runs *runs)
{
	const struct mkey_meaning *m = number_find(&a->mkeys, key >> 8);

	if (unlikely(!m || m->key != key))
		return MKEY_NO_KEY;
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
