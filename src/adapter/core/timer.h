/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers.  A timer lies inside the object that it belongs to, so arming it allocates nothing.  All
 * timers of an adapter are in one heap ordered by deadline: arming and firing cost the logarithm of
 * the number of armed timers, however many objects there are.
 *
 * Most timers are disarmed before they fire.  Disarming is a store: the timer stays in the heap
 * until its old deadline, and the heap drops it then.  A timer that is armed again for a later time
 * also stays where it is, and moves at its old deadline.
 *
 * A callback runs without the lock of the heap, in a reader that holds the timer.  To free a timer,
 * cancel it and wait for its readers.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/spin.h"

#define TIMER_NEVER UINT64_MAX

struct timer {
	void (*fire)(struct timer *t);
	_Atomic(uint64_t) deadline_ns; /* 0: not armed */
	/* under the lock: a node of a pairing heap */
	bool queued;
	bool retired;	     /* nobody arms it again */
	uint64_t key;	     /* deadline at which the heap looks at it */
	struct timer *child; /* the first of its children */
	struct timer *next;  /* sibling */
	struct timer *prev;  /* the sibling before; the first one's parent */
};

struct timers {
	/* Called when a new deadline is sooner than all others, and nobody may be polling.  May be
	 * NULL. */
	void (*kick)(void *user);
	void *user;

	struct spin lock;
	struct timer *root;
	_Atomic(uint64_t) next_ns; /* TIMER_NEVER: the heap is empty */
};

void timers_init(struct timers *s, void (*kick)(void *user), void *user);

/* Sets the deadline, whether the timer is armed or not. */
void timer_arm(struct timers *s, struct timer *t, uint64_t deadline_ns);
/* Takes the timer out of the heap.  When it returns, the timer's callback may still run
 * elsewhere. */
void timer_cancel(struct timers *s, struct timer *t);
/* The same for a timer whose object is destroyed: nobody can arm it again. */
void timer_retire(struct timers *s, struct timer *t);
/* Fires the timers that are due; true if there were any. */
bool timers_run(struct timers *s, uint64_t now_ns);

/* Disarms the timer, which may be firing at this moment. */
static inline void timer_disarm(struct timer *t)
{
	atomic_store(&t->deadline_ns, 0);
}

static inline bool timer_armed(const struct timer *t)
{
	return atomic_load_explicit(&t->deadline_ns, memory_order_relaxed);
}

/* When timers_run has something to do next. */
static inline uint64_t timers_next(const struct timers *s)
{
	return atomic_load_explicit(&s->next_ns, memory_order_relaxed);
}
