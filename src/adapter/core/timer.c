// SPDX-License-Identifier: BSD-2-Clause
/* See timer.h.  The heap is a pairing heap: Fredman, Sedgewick, Sleator, Tarjan, 1986. */
#include "adapter/core/timer.h"

#include <stddef.h>

#include "base/hazard.h"

void timers_init(struct timers *s, void (*kick)(void *user), void *user)
{
	*s = (struct timers){.kick = kick, .user = user};
	atomic_init(&s->next_ns, TIMER_NEVER);
}

/* Joins two heaps whose roots have no siblings. */
static struct timer *heap_meld(struct timer *a, struct timer *b)
{
	if (!a || !b)
		return a ? a : b;
	if (b->key < a->key) {
		struct timer *swap = a;

		a = b;
		b = swap;
	}
	b->next = a->child;
	if (a->child)
		a->child->prev = b;
	b->prev = a;
	a->child = b;
	return a;
}

/* Joins siblings into one heap: in pairs from the left, then the pairs from the right. */
static struct timer *heap_meld_siblings(struct timer *t)
{
	struct timer *pairs = NULL, *root = NULL;

	while (t) {
		struct timer *a = t, *b = t->next;

		t = b ? b->next : NULL;
		a->next = a->prev = NULL;
		if (b)
			b->next = b->prev = NULL;
		a = heap_meld(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs) {
		struct timer *next = pairs->next;

		pairs->next = NULL;
		root = heap_meld(root, pairs);
		pairs = next;
	}
	return root;
}

/* The caller holds the lock. */
static void timers_insert(struct timers *s, struct timer *t, uint64_t key)
{
	t->key = key;
	t->queued = true;
	t->child = t->next = t->prev = NULL;
	s->root = heap_meld(s->root, t);
}

/* The caller holds the lock. */
static void timers_take_out(struct timers *s, struct timer *t)
{
	struct timer *below = heap_meld_siblings(t->child);

	if (s->root == t) {
		s->root = below;
	} else {
		if (t->prev->child == t)
			t->prev->child = t->next;
		else
			t->prev->next = t->next;
		if (t->next)
			t->next->prev = t->prev;
		s->root = heap_meld(s->root, below);
	}
	t->queued = false;
}

/* The caller holds the lock. */
static void timers_refresh(struct timers *s)
{
	atomic_store_explicit(&s->next_ns, s->root ? s->root->key : TIMER_NEVER,
			      memory_order_relaxed);
}

void timer_arm(struct timers *s, struct timer *t, uint64_t deadline_ns)
{
	bool sooner;

	spin_lock(&s->lock);
	if (unlikely(t->retired)) {
		spin_unlock(&s->lock);
		return;
	}
	atomic_store(&t->deadline_ns, deadline_ns);
	if (t->queued && deadline_ns < t->key)
		timers_take_out(s, t);
	if (!t->queued)
		timers_insert(s, t, deadline_ns);
	sooner = s->root->key < timers_next(s);
	timers_refresh(s);
	spin_unlock(&s->lock);
	if (sooner && s->kick)
		s->kick(s->user);
}

void timer_cancel(struct timers *s, struct timer *t)
{
	spin_lock(&s->lock);
	atomic_store(&t->deadline_ns, 0);
	if (t->queued) {
		timers_take_out(s, t);
		timers_refresh(s);
	}
	spin_unlock(&s->lock);
}

void timer_retire(struct timers *s, struct timer *t)
{
	spin_lock(&s->lock);
	t->retired = true;
	spin_unlock(&s->lock);
	timer_cancel(s, t);
}

/* Takes the first timer that is due out of the heap, and disarms it. */
static struct timer *timers_pop(struct timers *s, uint64_t now_ns)
{
	struct timer *t, *due = NULL;

	spin_lock(&s->lock);
	while (!due && (t = s->root) && t->key <= now_ns) {
		uint64_t deadline = atomic_load(&t->deadline_ns);

		timers_take_out(s, t);
		if (deadline > now_ns) {
			timers_insert(s, t, deadline);
		} else if (deadline) {
			atomic_store(&t->deadline_ns, 0);
			hazard_hold(t);
			due = t;
		}
	}
	timers_refresh(s);
	spin_unlock(&s->lock);
	return due;
}

bool timers_run(struct timers *s, uint64_t now_ns)
{
	struct timer *t = NULL;
	bool any = false;

	while (now_ns >= timers_next(s)) {
		hazard_enter();
		t = timers_pop(s, now_ns);
		if (t) {
			t->fire(t);
			any = true;
		}
		hazard_leave();
	}
	return any;
}
