/* SPDX-License-Identifier: BSD-2-Clause */
/* The numbers of the objects of a device. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "adapter/adapter.h"
#include "base/compiler.h"
#include "base/hazard.h"
#include "registry/registry.h"

/*
 * Numbers, from 1 on, for objects that only their own device names, and the objects.  A number that
 * was given back is given out again as late as possible.
 *
 * Each frame that comes by looks a number up, without a lock, as a reader.
 */

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

/*
 * Ranges of QP numbers that no queue pair gets.  Programs give them to connections whose queue
 * pairs have numbers of another kind.  The ranges come from chunks of their own, so that they stay
 * whole.
 */

struct adapter;

#define RESERVE_RANGE  (1u << ADAPTER_LOG_RESERVED_QPNS)
#define RESERVE_RANGES (NUMBER_CHUNK / RESERVE_RANGE) /* ranges of a chunk */

struct reserve_chunk {
	uint32_t first;
	uint32_t used; /* a bit for each range */
	struct reserve_chunk *next;
};

struct reserve {
	pthread_mutex_t lock;
	struct reserve_chunk *chunks;
};

void reserve_init(struct reserve *r);
void reserve_release(struct reserve *r);

/*
 * Numbers of protection domains and XRC domains.  A domain has no state of its own: keys and queues
 * carry its number, and their numbers must be equal.  Numbers are private to the process, because
 * keys and queues are looked up there.  All devices of a process take theirs from one space: a peer
 * that finds a key in what the process lays open sees the number alone.
 */

struct pd_space {
	pthread_mutex_t lock;
	uint32_t fresh; /* all numbers below were given out once */
	uint32_t *freed;
	uint32_t nfreed;
	uint32_t capacity;
};

struct domains {
	struct pd_space pds, xrcds;
};
