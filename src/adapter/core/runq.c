// SPDX-License-Identifier: BSD-2-Clause
/* See runq.h. */
#include "adapter/core/runq.h"

#include <stddef.h>

#include "base/hazard.h"

/* The caller holds the lock. */
static void runq_append(struct runq *q, struct run_entry *e)
{
	e->next = NULL;
	if (q->tail)
		q->tail->next = e;
	else
		q->head = e;
	q->tail = e;
	atomic_store(&q->any, true);
}

void runq_add(struct runq *q, struct run_entry *e)
{
	if (atomic_exchange(&e->queued, true))
		return;
	spin_lock(&q->lock);
	if (likely(!e->removed))
		runq_append(q, e);
	spin_unlock(&q->lock);
}

void runq_add_later(struct runq *q, struct run_entry *e)
{
	if (atomic_exchange(&e->queued, true))
		return;
	spin_lock(&q->lock);
	if (likely(!e->removed)) {
		e->next = q->later;
		q->later = e;
		atomic_store(&q->later_any, true);
	}
	spin_unlock(&q->lock);
	if (q->kick)
		q->kick(q->user);
}

void runq_remove(struct runq *q, struct run_entry *e)
{
	struct run_entry **at = &q->head, *last = NULL;

	spin_lock(&q->lock);
	e->removed = true;
	for (; *at && *at != e; at = &(*at)->next)
		last = *at;
	if (*at) {
		*at = e->next;
		if (q->tail == e)
			q->tail = last;
	}
	for (at = &q->later; *at && *at != e; at = &(*at)->next)
		;
	if (*at)
		*at = e->next;
	spin_unlock(&q->lock);
}

bool runq_wake_later(struct runq *q)
{
	struct run_entry *e, *next;

	if (likely(!runq_waiting(q)))
		return false;
	spin_lock(&q->lock);
	e = q->later;
	q->later = NULL;
	atomic_store(&q->later_any, false);
	for (; e; e = next) {
		next = e->next;
		runq_append(q, e);
	}
	spin_unlock(&q->lock);
	return true;
}

static struct run_entry *runq_pop(struct runq *q)
{
	struct run_entry *e;

	spin_lock(&q->lock);
	e = q->head;
	if (e) {
		hazard_hold(e);
		q->head = e->next;
		if (!q->head)
			q->tail = NULL;
		/* clear it before the run, so that work that comes meanwhile lists the entry
		 * again */
		atomic_store(&e->queued, false);
	}
	if (!q->head)
		atomic_store(&q->any, false);
	spin_unlock(&q->lock);
	return e;
}

void runq_run_all(struct runq *q)
{
	while (runq_ready(q)) {
		struct run_entry *e;

		hazard_enter();
		e = runq_pop(q);
		if (e)
			(unlikely(e->run) ? e->run : q->run)(e);
		hazard_leave();
	}
}
