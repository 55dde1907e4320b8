/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's one thread: descriptors that epoll watches, timers, and work that is left for later
 * so that nothing recurses and no client waits for the whole of a long computation.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct loop;

struct source {
	void (*ready)(struct loop *l, struct source *src, uint32_t events);
	int fd;
};

/* Due times are of clock_ns.  A wheel of 1 ms; arming and cancelling take tens of nanoseconds. */
struct loop_timer {
	struct loop_timer *next, **prev; /* NULL prev: not armed */
	uint64_t due_ns;
	void (*fire)(struct loop *l, struct loop_timer *t);
};

/* Work to be done soon.  'run' does a bounded part and queues itself again for the rest. */
struct loop_work {
	struct loop_work *next;
	bool queued;
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
	uint64_t wheel_ms; /* up to here the wheel has turned */
	uint32_t ntimers;
	struct loop_work *work, **work_end;
	struct loop_grave *graves;
};

int loop_open(struct loop *l) must_check;
/* What is armed or queued is forgotten; what is buried is freed. */
void loop_close(struct loop *l);

int loop_watch(struct loop *l, struct source *src, uint32_t events) must_check;
bool loop_rewatch(struct loop *l, struct source *src, uint32_t events);
void loop_bury(struct loop *l, struct loop_grave *g);

/* Arms it, or moves it if it is armed. */
void loop_timer_arm(struct loop *l, struct loop_timer *t, uint64_t due_ns);
/* Not armed: nothing happens. */
void loop_timer_cancel(struct loop *l, struct loop_timer *t);
void loop_queue(struct loop *l, struct loop_work *w);
void loop_unqueue(struct loop *l, struct loop_work *w);

/* One round: waits at most so long (-1: for ever) for events, timers or work, and does them.  How
 * many events there were, or negative errno. */
int loop_round(struct loop *l, int timeout_ms);
