/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who drives the device: receives what peers have sent, runs timers, serves queues.  Either a thread
 * of the program does, while it is inside softhca (drive.h), or the engine, a thread of our own, of
 * which there is one per process.  docs/design/progress.md has the protocol.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/spin.h"
#include "registry/registry.h"

struct feeder;
struct process;

/*
 * The times by which the engine and the threads of the program (drive.h) go.  docs/design/progress.md has
 * the measurements that chose them.
 */

/* Whoever looks for work before it sleeps looks for so long, if its last sleep was shorter: a wake-up takes
 * 15 us and more. */
#define LOOK_NS 50000u
/* A turn: a thread that polls all the time does something else for less than this between two polls; a
 * thread that rings waits for an answer for so long, where processors are few; and so long is the first nap
 * of the guard. */
#define TURN_NS 100000u
/* While the program drives, the engine looks so often whether it still does.  What the program leaves
 * behind waits for so long at most. */
#define ENGINE_GUARD_MAX_NS 1000000u
/* What the threads of the program were seen doing is believed for so long: a few slices of the scheduler. */
#define LATELY_NS 20000000u

/* The thread makes it ENGINE_RUNS when it is ready to serve peers; engine_stop makes it
 * ENGINE_ENDS. */
enum engine_state { ENGINE_STARTS, ENGINE_RUNS, ENGINE_ENDS };

struct engine {
	struct process *process;
	struct feeder *feeder; /* NULL: no link has a descriptor */
	struct slot *slot;
	pthread_t thread;
	_Atomic(uint32_t) state; /* enum engine_state */
	bool few_cpus;		 /* the engine takes its processor from the program */
	/* Of the thread that rings (drive_after_fault). */
	uint32_t in_vain, rings_to_skip;
	/* Until then the engine leaves the device to nobody that polls: it found work lying there
	 * when it last did. */
	_Atomic(uint64_t) distrusts_until_ns;
	uint64_t look_ns;	/* the engine's own: how long it looks before it sleeps */
	uint32_t post_naps;	/* the engine's own: naps in a row for those who post receives */
	uint64_t poller_ran_ns; /* the engine's own: how long the poller had run at the last look */
	_Atomic(int32_t) poller; /* the thread that polled last for long; 0: none has */
	/* A thread of the program sleeps as the registered waiter, or was woken and has not run since. */
	_Atomic(bool) waiter_sleeps;
	/* Counts calls of the program's threads that look for work.  It is not exact: two of them may
	 * count as one. */
	cacheline_aligned _Atomic(uint32_t) polls;
	/* Held by the thread of the program that drives; the others go on looking at their CQs. */
	cacheline_aligned struct spin driving;
};

/* Starts the thread.  Returns 0 once it is ready to serve peers, or a negative errno if a resource
 * is missing. */
int engine_start(struct process *p);
/* Are there so few processors that the engine takes its own from the program? */
bool engine_cpus_are_few(void);
/* Waits for the thread's end. */
void engine_stop(struct process *p);
/* The caller has made work, or a deadline for work, and perhaps no thread of the program comes to
 * do it, so the engine has to look.  The call is cheap when somebody drives.  The slot is enough, because
 * a peer may open a channel while the engine is not there yet, or no longer. */
void engine_kick(struct process *p);
/* No thread of the program drives from now on, so the engine has to. */
void engine_take_over(struct process *p);
/* May the engine leave the device to a thread of the program that polls? */
static inline bool engine_trusts_program(const struct engine *e, uint64_t now_ns)
{
	return now_ns >= atomic_load_explicit(&e->distrusts_until_ns, memory_order_relaxed);
}

static inline enum slot_driver engine_driver(const struct slot *slot)
{
	return (enum slot_driver)atomic_load_explicit(&slot->driver, memory_order_relaxed);
}

/* A thread of the program has looked for work, or has done some. */
static inline void engine_note_poll(struct engine *e)
{
	uint32_t polls = atomic_load_explicit(&e->polls, memory_order_relaxed) + 1;

	atomic_store_explicit(&e->polls, polls, memory_order_relaxed);
}
