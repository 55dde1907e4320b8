/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The run queue: each entry has work that the thread which found it could not do, because it held a
 * lock that the work needs or because the wire was busy.  The outermost call of a thread runs the
 * entries, or any progress call does.
 *
 * An entry is in at most one of two lists: entries to run, first in first out, and entries that
 * wait for the next progress call.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/compiler.h"
#include "base/spin.h"

struct run_entry {
	/* Does the work of the entry; NULL: the queue's function does. */
	void (*run)(struct run_entry *e);
	_Atomic(bool) queued;
	bool removed; /* under the lock: nobody may list it again */
	struct run_entry *next;
};

struct runq {
	/* Does the work of an entry, in a reader that holds the entry, without a lock. */
	void (*run)(struct run_entry *e);
	/* Called when an entry waits for the next progress call, and nobody may be polling.  May be
	 * NULL. */
	void (*kick)(void *user);
	void *user;

	struct spin lock;
	struct run_entry *head, *tail;
	_Atomic(bool) any;
	struct run_entry *later;
	_Atomic(bool) later_any;
};

/* Notes that the entry has work. */
void runq_add(struct runq *q, struct run_entry *e);
/* Notes that the entry has work for the next progress call. */
void runq_add_later(struct runq *q, struct run_entry *e);
/* Takes the entry of an object that is destroyed out of both lists; nobody lists it again.  A
 * thread is a reader while it lists an entry, and holds an entry while it runs it. */
void runq_remove(struct runq *q, struct run_entry *e);
/* Makes entries ready that have waited for a progress call; true if there were any. */
bool runq_wake_later(struct runq *q);
/* Runs ready entries until there are none.  The caller holds no lock. */
void runq_run_all(struct runq *q);

static inline bool runq_ready(const struct runq *q)
{
	return atomic_load_explicit(&q->any, memory_order_relaxed);
}

static inline bool runq_waiting(const struct runq *q)
{
	return atomic_load_explicit(&q->later_any, memory_order_relaxed);
}

static inline void runq_run(struct runq *q)
{
	if (unlikely(runq_ready(q)))
		runq_run_all(q);
}
