/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers (QPN, SRQN, mkey index) and the objects that they name.
 *
 * The fabric gives out numbers in chunks of NUMBER_CHUNK, so that they are unique among all
 * processes of the host.  A freed number goes to the end of the queue, because a late packet for a
 * destroyed QP should not find a new one at once.
 *
 * Each packet or scatter entry looks a number up, and each object inserts one.  So it is an array
 * of arrays, which readers use without a lock (base/hazard.h).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "adapter/adapter.h"
#include "base/hazard.h"
#include "registry/registry.h"

struct number_space {
	_Atomic(_Atomic(void *) *) chunk[REGISTRY_CHUNKS];
	/* Those that there are lie between: to look at all others would touch 32 pages. */
	uint32_t first_chunk, end_chunk;
	pthread_mutex_t lock;
	/* queue of free numbers, a ring that holds every number of our chunks */
	uint32_t *free;
	uint32_t capacity;
	uint32_t head;
	uint32_t count;
};

void number_space_init(struct number_space *s);
void number_space_release(struct number_space *s);
/* Takes a free number, and asks for another chunk when there is none.  Returns negative errno on
 * failure. */
int64_t number_take(struct number_space *s, const struct adapter_attr *attr, enum number_kind kind);
void number_give(struct number_space *s, uint32_t number);
/* Publishes the object behind a number that is ours, or unpublishes it (NULL). */
void number_publish(struct number_space *s, uint32_t number, void *object);

/* The object behind a number, which the calling reader holds from now on; or NULL. */
static inline void *number_find(struct number_space *s, uint32_t number)
{
	_Atomic(void *) *chunk;

	if (unlikely(number >> REGISTRY_CHUNK_SHIFT >= REGISTRY_CHUNKS))
		return NULL;
	chunk = atomic_load_explicit(&s->chunk[number >> REGISTRY_CHUNK_SHIFT],
				     memory_order_acquire);
	if (unlikely(!chunk))
		return NULL;
	return hazard_take(&chunk[number & (NUMBER_CHUNK - 1)]);
}
