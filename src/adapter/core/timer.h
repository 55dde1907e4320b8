/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers.  A timer lies inside the object that it belongs to, so arming it allocates nothing, and
 * all timers of an adapter stand in one heap by their deadline: arming and firing cost the
 * logarithm of how many are armed, however many objects there are.
 *
 * Most timers are disarmed before they fire.  Disarming is a store: the timer stays in the heap
 * until its old deadline and is dropped then.  A timer that is armed again for a later time stays
 * where it is, too, and moves when its old time has come.
 *
 * Callbacks run under RCU and without the lock of the heap.  Who frees a timer cancels it and waits
 * for a grace period.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/spin.h"

#define TIMER_NEVER UINT64_MAX

struct timer {
	void (*fire)(struct timer *t);
	_Atomic(uint64_t) deadline_ns; /* 0: not armed */
	/* under the lock: a node of a pairing heap */
	bool queued;
	uint64_t key;	     /* deadline at which the heap looks at it */
	struct timer *child; /* the first of those below */
	struct timer *next;  /* sibling */
	struct timer *prev;  /* sibling, of the first the parent */
};

struct timers {
	/* A deadline sooner than all others came up, and nobody may be polling.  May be NULL. */
	void (*kick)(void *user);
	void *user;

	struct spin lock;
	struct timer *root;
	_Atomic(uint64_t) next_ns; /* TIMER_NEVER: nothing is in the heap */
};

void timers_init(struct timers *s, void (*kick)(void *user), void *user);

/* Sets the deadline, whether the timer is armed or not. */
void timer_arm(struct timers *s, struct timer *t, uint64_t deadline_ns);
/* On return it is in the heap no more; its callback may still run elsewhere. */
void timer_cancel(struct timers *s, struct timer *t);
/* Calls what is due; true if anything was. */
bool timers_run(struct timers *s, uint64_t now_ns);

/* It does not fire any more, unless it does so just now. */
static inline void timer_disarm(struct timer *t)
{
	atomic_store(&t->deadline_ns, 0);
}

static inline bool timer_armed(const struct timer *t)
{
	return atomic_load_explicit(&t->deadline_ns, memory_order_relaxed);
}

/* When to call timers_run next. */
static inline uint64_t timers_next(const struct timers *s)
{
	return atomic_load_explicit(&s->next_ns, memory_order_relaxed);
}
