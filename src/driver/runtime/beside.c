// SPDX-License-Identifier: BSD-2-Clause
/* See beside.h. */
#include "driver/runtime/beside.h"

#include "base/compiler.h"

#define PATIENCE      8u
#define DOUBLINGS_MAX 17u

uint32_t beside_here_plus_1(void)
{
	return (uint32_t)(sched_getcpu() + 1);
}

/* Returns the processors that the program allows: leaves out the one that was added here, unless
 * the program has set something since. */
static bool beside_allowed(const struct beside *b, cpu_set_t *out)
{
	/* A set of this size has no room for the largest machines, where this fails. */
	if (sched_getaffinity(0, sizeof(*out), out))
		return false;
	if (b->extra && CPU_EQUAL(out, &b->set))
		CPU_CLR(b->extra - 1, out);
	return true;
}

/* Moves the thread: forbids it all other processors for a moment. */
static void beside_move(struct beside *b, uint32_t processor)
{
	cpu_set_t all, there, now;

	if (processor >= CPU_SETSIZE || !beside_allowed(b, &all))
		return;
	if (!b->leaves && !CPU_ISSET(processor, &all))
		return;
	CPU_ZERO(&there);
	CPU_SET(processor, &there);
	if (sched_setaffinity(0, sizeof(there), &there))
		return; /* the processor is not one of its group's */
	b->extra = CPU_ISSET(processor, &all) ? 0 : processor + 1;
	CPU_SET(processor, &all);
	b->set = all;
	if (!sched_getaffinity(0, sizeof(now), &now) && CPU_EQUAL(&now, &there))
		(void)sched_setaffinity(0, sizeof(all), &all);
}

bool beside_woken(struct beside *b, uint32_t waker_plus_1)
{
	if (!waker_plus_1)
		return false;
	if (waker_plus_1 == beside_here_plus_1()) {
		b->apart = 0;
		b->doublings = 0;
		return true;
	}
	/* The thread did not stay where it moved: somebody else wakes it, too, or some processors
	 * do nothing. */
	if (b->moved)
		b->doublings = min_u32(b->doublings + 1, DOUBLINGS_MAX);
	b->moved = false;
	if (++b->apart < PATIENCE << b->doublings)
		return false;
	b->apart = 0;
	b->moved = true;
	beside_move(b, waker_plus_1 - 1);
	return false;
}

bool beside_moves_soon(const struct beside *b)
{
	return b->apart >= (PATIENCE << b->doublings) / 2;
}
