// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/pd.h"

#include <stdlib.h>

#include "adapter/device.h"

void pd_space_init(struct pd_space *s)
{
	pthread_mutex_init(&s->lock, NULL);
	/* 0 is left out: a PD number that nobody set should match nothing */
	s->fresh = 1;
}

void pd_space_release(struct pd_space *s)
{
	free(s->freed);
	pthread_mutex_destroy(&s->lock);
}

uint32_t pd_alloc(struct adapter *a)
{
	struct pd_space *s = &a->pds;
	uint32_t pdn;

	pthread_mutex_lock(&s->lock);
	pdn = s->nfreed ? s->freed[--s->nfreed] : s->fresh++;
	pthread_mutex_unlock(&s->lock);
	return pdn;
}

void pd_free(struct adapter *a, uint32_t pdn)
{
	struct pd_space *s = &a->pds;

	pthread_mutex_lock(&s->lock);
	if (s->nfreed == s->capacity) {
		uint32_t capacity = s->capacity ? 2 * s->capacity : 64;
		uint32_t *grown = realloc(s->freed, capacity * sizeof(*grown));

		/* without memory the number is simply not used again */
		if (!grown)
			goto unlock;
		s->freed = grown;
		s->capacity = capacity;
	}
	s->freed[s->nfreed++] = pdn;
unlock:
	pthread_mutex_unlock(&s->lock);
}
