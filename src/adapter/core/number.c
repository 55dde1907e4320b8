// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/core/number.h"

#include <errno.h>
#include <stdlib.h>

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
		ring[s->count + i] = (uint32_t)first + i;
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
