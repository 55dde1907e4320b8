// SPDX-License-Identifier: BSD-2-Clause
/* See cq_timer.h. */
#include "adapter/queue/cq_timer.h"

#include <stddef.h>

void cq_timers_init(struct cq_timers *s)
{
	atomic_init(&s->next_ns, CQ_TIMER_NONE);
}

/* Lock held. */
static void take_out(struct cq_timers *s, struct cq_timer *t)
{
	if (t->prev)
		t->prev->next = t->next;
	else
		s->head = t->next;
	if (t->next)
		t->next->prev = t->prev;
	t->listed = false;
}

/* Lock held. */
static void refresh_next(struct cq_timers *s)
{
	uint64_t next = CQ_TIMER_NONE;

	for (const struct cq_timer *t = s->head; t; t = t->next)
		if (t->deadline_ns < next)
			next = t->deadline_ns;
	atomic_store_explicit(&s->next_ns, next, memory_order_relaxed);
}

bool cq_timer_start(struct cq_timers *s, struct cq_timer *t, uint64_t deadline_ns)
{
	bool soonest = false;

	spin_lock(&s->lock);
	if (!t->listed) {
		*t = (struct cq_timer){.next = s->head, .listed = true, .deadline_ns = deadline_ns};
		if (s->head)
			s->head->prev = t;
		s->head = t;
		soonest = deadline_ns < atomic_load_explicit(&s->next_ns, memory_order_relaxed);
		if (soonest)
			atomic_store_explicit(&s->next_ns, deadline_ns, memory_order_relaxed);
	}
	spin_unlock(&s->lock);
	return soonest;
}

void cq_timer_stop(struct cq_timers *s, struct cq_timer *t)
{
	spin_lock(&s->lock);
	if (t->listed) {
		take_out(s, t);
		refresh_next(s);
	}
	spin_unlock(&s->lock);
}

static struct cq_timer *pop_due(struct cq_timers *s, uint64_t now_ns)
{
	struct cq_timer *t;

	spin_lock(&s->lock);
	for (t = s->head; t && t->deadline_ns > now_ns; t = t->next)
		;
	if (t)
		take_out(s, t);
	refresh_next(s);
	spin_unlock(&s->lock);
	return t;
}

bool cq_timers_run(struct cq_timers *s, uint64_t now_ns)
{
	struct cq_timer *t;
	bool any = false;

	if (now_ns < atomic_load_explicit(&s->next_ns, memory_order_relaxed))
		return false;
	while ((t = pop_due(s, now_ns))) {
		cq_timer_fired(t);
		any = true;
	}
	return any;
}
