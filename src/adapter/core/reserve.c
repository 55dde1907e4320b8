// SPDX-License-Identifier: BSD-2-Clause
/* See reserve.h. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "adapter/core/device.h"

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
	c->first = (uint32_t)first;
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
