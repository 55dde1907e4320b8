// SPDX-License-Identifier: BSD-2-Clause
/*
 * See traffic.h.  The code takes no lock, because a handler of a signal may send too.  Two threads
 * that look for the same destination at once may take a cell each; the daemon does not mind.
 */
#include "wire/traffic.h"

static_assert(TRAFFIC_CELLS < UINT16_MAX, "an entry of the index is a cell plus one");

static uint32_t key_hash(uint64_t key)
{
	return (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 32) % TRAFFIC_INDEX;
}

/* Takes a cell that nobody else has.  Returns the cell plus one; TRAFFIC_NONE: there is none. */
static uint32_t cell_take(struct traffic *f, uint64_t key)
{
	uint32_t used = atomic_load_explicit(&f->used, memory_order_relaxed);

	do {
		if (used >= TRAFFIC_CELLS)
			return TRAFFIC_NONE;
	} while (!atomic_compare_exchange_weak(&f->used, &used, used + 1));
	atomic_store_explicit(&f->key[used], key, memory_order_release);
	return used + 1;
}

/* The loop ends because the index is never more than half full. */
static uint32_t cell_find(struct traffic *f, uint64_t key)
{
	for (uint32_t i = key_hash(key), taken = 0;; i = (i + 1) % TRAFFIC_INDEX) {
		uint16_t cell = atomic_load_explicit(&f->index[i], memory_order_acquire);

		if (cell && cell <= TRAFFIC_CELLS &&
		    atomic_load_explicit(&f->key[cell - 1], memory_order_relaxed) == key)
			return cell;
		if (cell)
			continue;
		if (!taken)
			taken = cell_take(f, key);
		if (taken == TRAFFIC_NONE ||
		    atomic_compare_exchange_strong(&f->index[i], &cell, (uint16_t)taken))
			return taken;
		/* Another thread has put a cell there, perhaps for the same key: look at it
		 * again. */
		i = (i + TRAFFIC_INDEX - 1) % TRAFFIC_INDEX;
	}
}

uint32_t traffic_find(struct traffic *f, const struct path *path)
{
	uint32_t cell = cell_find(f, traffic_key(path->src_port, path->dlid, path->sl, 0));

	if (path->route)
		atomic_store_explicit(&path->route->traffic, cell, memory_order_relaxed);
	return cell;
}

uint32_t traffic_find_back(struct traffic *f, const struct path *path)
{
	uint32_t cell = cell_find(f, traffic_key(path->dst_port, path->slid, path->sl, 0));

	if (path->route)
		atomic_store_explicit(&path->route->traffic_back, cell, memory_order_relaxed);
	return cell;
}

uint32_t traffic_find_refused(struct traffic *f, const struct path *path)
{
	return cell_find(f, traffic_key(path->src_port, path->dlid, path->sl, path->pkey));
}
