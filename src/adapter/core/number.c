// SPDX-License-Identifier: BSD-2-Clause
/* The numbers of the objects of a device; see number.h. */
#include "adapter/core/number.h"

#include "adapter/core/device.h"
#include "base/hazard.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

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

void number_space_init(struct number_space *s)
{
	pthread_mutex_init(&s->lock, NULL);
	s->first_chunk = REGISTRY_CHUNKS;
	s->end_chunk = 0;
}

void number_space_release(struct number_space *s)
{
	for (uint32_t i = s->first_chunk; i < s->end_chunk; i++)
		free(atomic_load_explicit(&s->chunk[i], memory_order_relaxed));
	free(s->free);
	pthread_mutex_destroy(&s->lock);
}

static int number_grow(struct number_space *s, const struct adapter_attr *attr,
		       enum number_kind kind)
{
	int64_t first = attr->number_chunk(attr->user, kind);
	uint64_t index = (uint64_t)first >> REGISTRY_CHUNK_SHIFT;
	uint32_t begin = (uint32_t)first % NUMBER_CHUNK;
	uint32_t capacity = s->capacity + NUMBER_CHUNK;
	_Atomic(void *) *chunk;
	uint32_t *ring;

	if (first < 0)
		return (int)first;
	if (index >= REGISTRY_CHUNKS)
		return -ERANGE;
	chunk = calloc(NUMBER_CHUNK, sizeof(*chunk));
	ring = malloc(capacity * sizeof(*ring));
	if (!chunk || !ring) {
		free(chunk);
		free(ring);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < s->count; i++)
		ring[i] = s->free[(s->head + i) % s->capacity];
	for (uint32_t i = 0; i < NUMBER_CHUNK; i++)
		ring[s->count + i] = (uint32_t)first - begin + (begin + i) % NUMBER_CHUNK;
	free(s->free);
	s->free = ring;
	s->capacity = capacity;
	s->head = 0;
	s->count += NUMBER_CHUNK;
	if (index < s->first_chunk)
		s->first_chunk = (uint32_t)index;
	if (index >= s->end_chunk)
		s->end_chunk = (uint32_t)index + 1;
	atomic_store_explicit(&s->chunk[index], chunk, memory_order_release);
	return 0;
}

int64_t number_take(struct number_space *s, const struct adapter_attr *attr, enum number_kind kind)
{
	int64_t number = 0;

	pthread_mutex_lock(&s->lock);
	if (!s->count)
		number = number_grow(s, attr, kind);
	if (!number) {
		number = s->free[s->head];
		s->head = (s->head + 1) % s->capacity;
		s->count--;
	}
	pthread_mutex_unlock(&s->lock);
	return number;
}

void number_give(struct number_space *s, uint32_t number)
{
	pthread_mutex_lock(&s->lock);
	s->free[(s->head + s->count++) % s->capacity] = number;
	pthread_mutex_unlock(&s->lock);
}

void number_publish(struct number_space *s, uint32_t number, void *object)
{
	_Atomic(void *) *chunk = atomic_load_explicit(&s->chunk[number >> REGISTRY_CHUNK_SHIFT],
						      memory_order_relaxed);

	atomic_store_explicit(&chunk[number & (NUMBER_CHUNK - 1)], object, memory_order_release);
}

static_assert(RESERVE_RANGES <= 32, "a word of bits");

#define ALL_USED ((uint32_t)((1ull << RESERVE_RANGES) - 1))

void reserve_init(struct reserve *r)
{
	pthread_mutex_init(&r->lock, NULL);
	r->chunks = NULL;
}

void reserve_release(struct reserve *r)
{
	struct reserve_chunk *next;

	for (struct reserve_chunk *c = r->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	pthread_mutex_destroy(&r->lock);
}

/* Takes a chunk.  The fabric gets it back when the process ends, like all numbers. */
static int reserve_grow(struct adapter *a)
{
	struct reserve_chunk *c = calloc(1, sizeof(*c));
	int64_t first;

	if (!c)
		return -ENOMEM;
	first = a->attr.number_chunk(a->attr.user, NUMBER_QPN);
	if (first < 0) {
		free(c);
		return (int)first;
	}
	c->first = (uint32_t)first - (uint32_t)first % NUMBER_CHUNK;
	c->next = a->reserve.chunks;
	a->reserve.chunks = c;
	return 0;
}

static struct reserve_chunk *with_room(struct reserve *r)
{
	struct reserve_chunk *c = r->chunks;

	while (c && c->used == ALL_USED)
		c = c->next;
	return c;
}

int64_t qpn_reserve(struct adapter *a)
{
	struct reserve *r = &a->reserve;
	struct reserve_chunk *c;
	int64_t qpn = 0;

	pthread_mutex_lock(&r->lock);
	if (!with_room(r))
		qpn = reserve_grow(a);
	c = with_room(r);
	if (c) {
		uint32_t range = (uint32_t)__builtin_ctz(~c->used);

		c->used |= 1u << range;
		qpn = c->first + range * RESERVE_RANGE;
	}
	pthread_mutex_unlock(&r->lock);
	return qpn;
}

void qpn_unreserve(struct adapter *a, uint32_t first)
{
	struct reserve *r = &a->reserve;

	pthread_mutex_lock(&r->lock);
	for (struct reserve_chunk *c = r->chunks; c; c = c->next)
		if (first - c->first < NUMBER_CHUNK)
			c->used &= ~(1u << (first - c->first) / RESERVE_RANGE);
	pthread_mutex_unlock(&r->lock);
}

static void pd_space_init(struct pd_space *s)
{
	pthread_mutex_init(&s->lock, NULL);
	/* Skip 0, because a PD number that nobody has set should match nothing. */
	s->fresh = 1;
}

static void pd_space_release(struct pd_space *s)
{
	free(s->freed);
	pthread_mutex_destroy(&s->lock);
}

struct domains *domains_create(void)
{
	struct domains *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	pd_space_init(&d->pds);
	pd_space_init(&d->xrcds);
	return d;
}

void domains_destroy(struct domains *d)
{
	pd_space_release(&d->pds);
	pd_space_release(&d->xrcds);
	free(d);
}

static uint32_t pd_take(struct pd_space *s)
{
	uint32_t number;

	pthread_mutex_lock(&s->lock);
	number = s->nfreed ? s->freed[--s->nfreed] : s->fresh++;
	pthread_mutex_unlock(&s->lock);
	return number;
}

static void pd_give(struct pd_space *s, uint32_t number)
{
	pthread_mutex_lock(&s->lock);
	if (s->nfreed == s->capacity) {
		uint32_t capacity = s->capacity ? 2 * s->capacity : 64;
		uint32_t *grown = realloc(s->freed, capacity * sizeof(*grown));

		/* Without memory nobody uses the number again. */
		if (!grown)
			goto unlock;
		s->freed = grown;
		s->capacity = capacity;
	}
	s->freed[s->nfreed++] = number;
unlock:
	pthread_mutex_unlock(&s->lock);
}

uint32_t pd_alloc(struct adapter *a)
{
	return pd_take(&a->attr.domains->pds);
}

void pd_free(struct adapter *a, uint32_t pdn)
{
	pd_give(&a->attr.domains->pds, pdn);
}

uint32_t xrcd_alloc(struct adapter *a)
{
	return pd_take(&a->attr.domains->xrcds);
}

void xrcd_free(struct adapter *a, uint32_t xrcdn)
{
	pd_give(&a->attr.domains->xrcds, xrcdn);
}
