/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers (QPN, SRQN, mkey index) and the objects that they name.
 *
 * The fabric gives out numbers in chunks of NUMBER_CHUNK, so that they are unique among all
 * processes of the host.  A freed number goes to the end of the queue, because a late packet for a
 * QP that is gone should not find a new one at once.
 *
 * Load: one look-up per packet or scatter entry, an insertion per object.  Hence an array of
 * arrays, which readers use without a lock under RCU.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "adapter/adapter.h"
#include "registry/registry.h"

struct number_space {
	_Atomic(_Atomic(void *) *) chunk[REGISTRY_CHUNKS];
	pthread_mutex_t lock;
	/* queue of free numbers, a ring that holds every number of our chunks */
	uint32_t *free;
	uint32_t capacity;
	uint32_t head;
	uint32_t count;
};

void number_space_init(struct number_space *s);
void number_space_release(struct number_space *s);
/* Takes a free number, asking for another chunk when there is none; negative errno. */
int64_t number_take(struct number_space *s, const struct adapter_attr *attr, enum number_kind kind);
void number_give(struct number_space *s, uint32_t number);
/* Publishes (or with NULL unpublishes) the object behind a number that is ours. */
void number_publish(struct number_space *s, uint32_t number, void *object);

/* The object behind a number, or NULL.  Under RCU. */
static inline void *number_find(struct number_space *s, uint32_t number)
{
	_Atomic(void *) *chunk;

	if (unlikely(number >> REGISTRY_CHUNK_SHIFT >= REGISTRY_CHUNKS))
		return NULL;
	chunk = atomic_load_explicit(&s->chunk[number >> REGISTRY_CHUNK_SHIFT],
				     memory_order_acquire);
	if (unlikely(!chunk))
		return NULL;
	return atomic_load_explicit(&chunk[number & (NUMBER_CHUNK - 1)], memory_order_acquire);
}
