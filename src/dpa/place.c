// SPDX-License-Identifier: BSD-2-Clause
/* See place.h. */
#include "dpa/place.h"

#include <sched.h>

static _Thread_local bool does_not_matter;

void dpa_place_does_not_matter(void)
{
	does_not_matter = true;
}

uint32_t dpa_place_here(void)
{
	int processor = does_not_matter ? -1 : sched_getcpu();

	return processor < 0 ? DPA_NOWHERE : (uint32_t)processor;
}

bool dpa_place_leave(uint32_t processor)
{
	cpu_set_t all, others, now;

	/* A set of this size has no room for the largest machines, where the call fails. */
	if (processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof(all), &all))
		return false;
	others = all;
	CPU_CLR(processor, &others);
	if (!CPU_COUNT(&others) || sched_setaffinity(0, sizeof(others), &others))
		return false;
	if (!sched_getaffinity(0, sizeof(now), &now) && CPU_EQUAL(&now, &others))
		(void)sched_setaffinity(0, sizeof(all), &all);
	return true;
}
