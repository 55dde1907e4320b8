// SPDX-License-Identifier: BSD-2-Clause
/* See null_mkey.h.  The zeros are mapped only when somebody first reads them.  Every program asks
 * for the key when it opens a device, and hardly any uses it; but the address range counts under a
 * limit, and under mlockall. */
#include "adapter/memory/null_mkey.h"

#include <errno.h>
#include <sys/mman.h>

#include "adapter/memory/mkey.h"
#include "base/memory_file.h"

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
