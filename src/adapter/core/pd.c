// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/core/pd.h"

#include <stdlib.h>

#include "adapter/core/device.h"

void pd_space_init(struct pd_space *s)
{
	pthread_mutex_init(&s->lock, NULL);
	/* Skip 0, because a PD number that nobody has set should match nothing. */
	s->fresh = 1;
}

void pd_space_release(struct pd_space *s)
{
	free(s->freed);
	pthread_mutex_destroy(&s->lock);
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
	return pd_take(&a->pds);
}

void pd_free(struct adapter *a, uint32_t pdn)
{
	pd_give(&a->pds, pdn);
}

uint32_t xrcd_alloc(struct adapter *a)
{
	return pd_take(&a->xrcds);
}

void xrcd_free(struct adapter *a, uint32_t xrcdn)
{
	pd_give(&a->xrcds, xrcdn);
}
