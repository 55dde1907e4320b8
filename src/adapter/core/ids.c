// SPDX-License-Identifier: BSD-2-Clause
/* See ids.h. */
#include "adapter/core/ids.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hazard.h"

void ids_init(struct ids *ids)
{
	pthread_mutex_init(&ids->lock, NULL);
}

void ids_release(struct ids *ids)
{
	for (unsigned i = 0; i < IDS_CHUNKS; i++)
		free(atomic_load_explicit(&ids->chunk[i], memory_order_relaxed));
	pthread_mutex_destroy(&ids->lock);
}

/* Finds a free number whose chunk exists.  The caller holds the lock. */
static int64_t ids_free_number(struct ids *ids)
{
	const uint32_t limit = IDS_CHUNK * IDS_CHUNKS;

	for (uint32_t i = 0; i < limit; i++) {
		uint32_t number = (ids->next + i) % limit;
		struct ids_chunk *chunk;

		if (!number || ids_find(ids, number))
			continue;
		if (atomic_load_explicit(&ids->chunk[number / IDS_CHUNK], memory_order_relaxed))
			return number;
		chunk = calloc(1, sizeof(*chunk));
		if (!chunk)
			return -ENOMEM;
		atomic_store_explicit(&ids->chunk[number / IDS_CHUNK], chunk, memory_order_release);
		return number;
	}
	return -ENOSPC;
}

int64_t ids_add(struct ids *ids, void *object)
{
	int64_t number;

	pthread_mutex_lock(&ids->lock);
	number = ids_free_number(ids);
	if (number > 0) {
		struct ids_chunk *chunk = atomic_load_explicit(
			&ids->chunk[(uint64_t)number / IDS_CHUNK], memory_order_relaxed);

		atomic_store_explicit(&chunk->object[(uint64_t)number % IDS_CHUNK], object,
				      memory_order_release);
		ids->next = (uint32_t)number + 1;
	}
	pthread_mutex_unlock(&ids->lock);
	return number;
}

void ids_remove(struct ids *ids, uint32_t number)
{
	struct ids_chunk *chunk =
		atomic_load_explicit(&ids->chunk[number / IDS_CHUNK], memory_order_relaxed);
	void *object;

	pthread_mutex_lock(&ids->lock);
	object = atomic_exchange(&chunk->object[number % IDS_CHUNK], NULL);
	pthread_mutex_unlock(&ids->lock);
	hazard_wait(object, 1);
}
