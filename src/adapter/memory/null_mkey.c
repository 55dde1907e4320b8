// SPDX-License-Identifier: BSD-2-Clause
/* See null_mkey.h.  It is made on demand, because its address range costs something under a limit.
 */
#include "adapter/memory/null_mkey.h"

#include <errno.h>
#include <sys/mman.h>

#include "adapter/memory/mkey.h"

/*
 * One message carries at most so much.  The pages are never written, so all of them are the
 * kernel's one page of zeros.
 */
#define ZEROS_BYTES ((size_t)IB_MAX_MSG_BYTES)

void null_mkey_init(struct null_mkey *n)
{
	pthread_mutex_init(&n->lock, NULL);
}

void null_mkey_release(struct null_mkey *n)
{
	if (n->zeros)
		munmap(n->zeros, ZEROS_BYTES);
	pthread_mutex_destroy(&n->lock);
}

static int map_zeros(struct null_mkey *n)
{
	void *zeros;

	if (n->zeros)
		return 0;
	zeros = mmap(NULL, ZEROS_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		     0);
	if (zeros == MAP_FAILED)
		return -ENOMEM;
	(void)madvise(zeros, ZEROS_BYTES, MADV_DONTDUMP);
	n->zeros = zeros;
	return 0;
}

/* The index is never freed, so no other key can be mistaken for it. */
int64_t adapter_null_key(struct adapter *a)
{
	struct null_mkey *n = a->null_mkey;
	int64_t ret;

	pthread_mutex_lock(&n->lock);
	ret = atomic_load_explicit(&n->key, memory_order_relaxed);
	if (ret)
		goto unlock;
	ret = map_zeros(n);
	if (ret < 0)
		goto unlock;
	ret = number_take(&a->mkeys, &a->attr, NUMBER_MKEY);
	if (ret < 0)
		goto unlock;
	ret = ret << 8;
	/* publishes the zeros before the key */
	atomic_store_explicit(&n->key, (uint32_t)ret, memory_order_release);
unlock:
	pthread_mutex_unlock(&n->lock);
	return ret;
}

enum mkey_verdict null_mkey_resolve(const struct null_mkey *n, const struct mkey_use *u,
				    uint64_t len, struct runs *runs)
{
	bool write = u->access & IB_ACCESS_LOCAL_WRITE;

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
	runs_add(runs, 0, write ? RUN_DISCARD : n->zeros, len);
	return MKEY_OK;
}
