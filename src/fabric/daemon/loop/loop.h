/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's one thread: descriptors that epoll watches, timers, and work that is left for later,
 * so that nothing recurses and no client waits for the whole of a long computation.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/compiler.h"

struct loop;

struct source {
	void (*ready)(struct loop *l, struct source *src, uint32_t events);
	int fd;
};

/* Due times are of loop_now.  The wheel turns in 1 ms; arming and cancelling take tens of ns. */
struct loop_timer {
	struct loop_timer *next, **prev; /* NULL prev: not armed */
	uint64_t due_ns;
	void (*fire)(struct loop *l, struct loop_timer *t);
};

/* Work to be done soon.  'run' does a bounded part of it and queues itself again for the rest. */
struct loop_work {
	struct loop_work *next;
	bool queued;
	uint32_t round; /* the loop's round in which it was queued */
	void (*run)(struct loop *l, struct loop_work *w);
};

/* Memory that an event of the present round may still name. */
struct loop_grave {
	struct loop_grave *next;
	void (*bury)(struct loop_grave *g);
};

#define LOOP_LEVELS 4u
#define LOOP_SLOTS  256u

struct loop {
	int epoll;
	struct loop_timer *wheel[LOOP_LEVELS][LOOP_SLOTS];
	/* Slots that may hold timers; a look that finds one empty strikes it out. */
	uint64_t filled[LOOP_LEVELS][LOOP_SLOTS / 64];
	uint64_t wheel_ms; /* the wheel has turned up to here */
	uint32_t ntimers;
	uint32_t round; /* rises before the work of a round begins */
	struct loop_work *work, **work_end;
	struct loop_grave *graves;
	uint64_t still_ns; /* not 0: a test's time, which stands still */
};

static inline uint64_t loop_now(const struct loop *l)
{
	return l->still_ns ? l->still_ns : clock_ns();
}

int loop_open(struct loop *l) must_check;
/*
 * Forgets what is armed or queued, and frees what is buried.  A loop that is all zero but for epoll
 * -1 is not open.
 */
void loop_close(struct loop *l);

/* 0 or negative errno. */
int loop_watch(struct loop *l, struct source *src, uint32_t events) must_check;
/* Watches other events than before; false: that was not possible. */
bool loop_rewatch(struct loop *l, struct source *src, uint32_t events);
/* Frees the memory at the end of this round. */
void loop_bury(struct loop *l, struct loop_grave *g);

/* Arms it, or moves it if it is armed. */
void loop_timer_arm(struct loop *l, struct loop_timer *t, uint64_t due_ns);
/* Does nothing if the timer is not armed. */
void loop_timer_cancel(struct loop *l, struct loop_timer *t);
/* Does nothing if the work is queued already. */
void loop_queue(struct loop *l, struct loop_work *w);
void loop_unqueue(struct loop *l, struct loop_work *w);

/* Does one round: waits at most timeout_ms (-1: for ever) for events, timers or work, and does
 * them.  Returns how many events there were, or a negative errno. */
int loop_round(struct loop *l, int timeout_ms);

/* ---- timers ---- */

/* Fires all timers that are due. */
void loop_timers_run(struct loop *l);
/* Milliseconds until the next timer; -1: there is none.  Never too long, perhaps too short. */
int loop_timers_wait(struct loop *l);
