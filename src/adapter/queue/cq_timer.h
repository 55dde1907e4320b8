/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues whose moderated event is due at some time.  Few at any moment: a CQ is listed
 * from its first unreported completion until the event.
 *
 * Lock order: a CQ's lock may be held when one of these is called, so none is called back with the
 * list's lock held.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/spin.h"

#define CQ_TIMER_NONE UINT64_MAX

struct cq_timer {
	struct cq_timer *next, *prev;
	bool listed;
	uint64_t deadline_ns;
};

struct cq_timers {
	struct spin lock;
	struct cq_timer *head;
	_Atomic(uint64_t) next_ns; /* CQ_TIMER_NONE: nothing is listed */
};

void cq_timers_init(struct cq_timers *s);
/* Leaves a running one alone.  True: it is the next to fire, so somebody must know of it. */
bool cq_timer_start(struct cq_timers *s, struct cq_timer *t, uint64_t deadline_ns);
void cq_timer_stop(struct cq_timers *s, struct cq_timer *t);
/* Calls cq_timer_fired for what is due; true if anything was.  Under RCU: who frees a timer stops
 * it and waits for a grace period. */
bool cq_timers_run(struct cq_timers *s, uint64_t now_ns);
/* In cq.c. */
void cq_timer_fired(struct cq_timer *t);
