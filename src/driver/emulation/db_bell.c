// SPDX-License-Identifier: BSD-2-Clause
/* See db_bell.h. */
#include "driver/emulation/db_bell.h"

#include <errno.h>

#include "base/spin.h"

/* A doorbell register of device code has this many values for the handle. */
#define DB_HANDLES (1u << 26)

/*
 * Threads hold the locks of the functions while they tell of a driver's ring, so they take this
 * lock inside of those.
 */
static struct {
	struct spin lock;
	struct db_bell *first;
	uint32_t handles; /* the last handle that was given out; none comes twice */
} bells;

int db_bell_link(struct db_bell *b)
{
	int handle = -ENOSPC;

	spin_lock(&bells.lock);
	if (bells.handles < DB_HANDLES - 1) {
		handle = (int)++bells.handles;
		b->handle = (uint32_t)handle;
		b->next = bells.first;
		bells.first = b;
	}
	spin_unlock(&bells.lock);
	return handle;
}

void db_bell_unlink(struct db_bell *b)
{
	struct db_bell **at = &bells.first;

	spin_lock(&bells.lock);
	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	spin_unlock(&bells.lock);
}

/* Lock held. */
static void db_bell_fire(struct db_bell *b)
{
	b->armed = false;
	b->rung = false;
	(void)cq_bell_empty(b->adapter, b->region, b->cqn);
}

void db_bell_rung(struct db_bell *b)
{
	spin_lock(&bells.lock);
	if (b->armed)
		db_bell_fire(b);
	else
		b->rung = true;
	spin_unlock(&bells.lock);
}

void db_bell_ring(uint32_t region, uint32_t cqn, uint32_t handle, bool force)
{
	struct db_bell *b;

	spin_lock(&bells.lock);
	for (b = bells.first; b && b->handle != handle; b = b->next)
		;
	if (b && b->region == region && b->cqn == cqn) {
		if (force || b->rung)
			db_bell_fire(b);
		else
			b->armed = true;
	}
	spin_unlock(&bells.lock);
}
