/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers, from 1 on, for objects that only their own device names, and the objects.  A number that
 * was given back is given out again as late as possible.
 *
 * Each frame that comes by looks a number up, without a lock, as a reader.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/hazard.h"

#define IDS_CHUNK  256u
#define IDS_CHUNKS 256u

struct ids_chunk {
	_Atomic(void *) object[IDS_CHUNK];
};

struct ids {
	pthread_mutex_t lock;
	uint32_t next; /* where the search for a free number begins */
	_Atomic(struct ids_chunk *) chunk[IDS_CHUNKS];
};

void ids_init(struct ids *ids);
void ids_release(struct ids *ids);
/* Returns the number, -ENOMEM or -ENOSPC. */
int64_t ids_add(struct ids *ids, void *object) must_check;
/* Removes the object, and waits until no reader holds it any more. */
void ids_remove(struct ids *ids, uint32_t number);

static inline void *ids_find(struct ids *ids, uint32_t number)
{
	struct ids_chunk *chunk;

	if (number >= IDS_CHUNK * IDS_CHUNKS)
		return NULL;
	chunk = atomic_load_explicit(&ids->chunk[number / IDS_CHUNK], memory_order_acquire);
	return chunk ? hazard_take(&chunk->object[number % IDS_CHUNK]) : NULL;
}
