/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of objects that only their own device names, from 1 on, and the objects.  Numbers that
 * were given back are given out again as late as can be.
 *
 * Load: a look-up for each frame that comes by, without a lock, under RCU.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"

#define IDS_CHUNK  256u
#define IDS_CHUNKS 256u

struct ids_chunk {
	_Atomic(void *) object[IDS_CHUNK];
};

struct ids {
	pthread_mutex_t lock;
	uint32_t next; /* where the search for a free one begins */
	_Atomic(struct ids_chunk *) chunk[IDS_CHUNKS];
};

void ids_init(struct ids *ids);
void ids_release(struct ids *ids);
/* The number, or -ENOMEM, -ENOSPC. */
int64_t ids_add(struct ids *ids, void *object) must_check;
/* Waits until no reader can have the object any more. */
void ids_remove(struct ids *ids, uint32_t number);

static inline void *ids_find(struct ids *ids, uint32_t number)
{
	struct ids_chunk *chunk;

	if (number >= IDS_CHUNK * IDS_CHUNKS)
		return NULL;
	chunk = atomic_load_explicit(&ids->chunk[number / IDS_CHUNK], memory_order_acquire);
	return chunk ? atomic_load_explicit(&chunk->object[number % IDS_CHUNK],
					    memory_order_acquire)
		     : NULL;
}
