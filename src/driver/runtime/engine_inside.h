/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of the engine, for its own thread (engine.c, engine_window.c) and for the threads that
 * take its place (stand_in.c). */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/hidden.h"
#include "base/patience.h"
#include "base/spin.h"
#include "driver/runtime/beside.h"
#include "driver/runtime/nap.h"
#include "driver/runtime/poller.h"
#include "registry/registry.h"

struct feeder;
struct process;

/* A thread whose empty polls come at most this far apart on the average is a poller. */
#define ENGINE_POLL_APART_NS 4000u

/* The thread makes it ENGINE_RUNS when it is ready to serve peers; engine_stop makes it
 * ENGINE_ENDS. */
enum engine_state { ENGINE_STARTS, ENGINE_RUNS, ENGINE_ENDS };

struct engine {
	struct process *process;
	struct feeder *feeder;	 /* NULL: no link has a descriptor */
	_Atomic(uint32_t) *wake; /* of our slot */
	_Atomic(uint32_t) *waker_plus_1, *at_plus_1;
	pthread_t thread;
	struct nap nap;
	uint64_t spin_ns, spin_min_ns, spin_max_ns;
	uint32_t left_at_once; /* looks that had no spin window */
	uint32_t window_polls; /* 'polls' when the window began */
	uint64_t window_ns;
	uint64_t distrust_ns;	      /* how long the next distrust of naps lasts */
	_Atomic(uint64_t) trust_at;   /* no naps before this time */
	_Atomic(uint64_t) noticed_at; /* when engine_notice_poller ran last */
	_Atomic(uint64_t) no_reader_before;
	_Atomic(bool) watching;	       /* the engine naps */
	_Atomic(bool) stand_in_sleeps; /* also after it was woken, until it runs */
	/* Until then other threads may wait for events without having got the place. */
	_Atomic(uint64_t) crowded_until_ns;
	struct hidden door; /* the descriptor at which peers knock, under 'polling' */
	/* Under 'gazing': what is known of waits of the thread that has the place, or is about to
	 * take it (stand_in.c). */
	struct patience patience;
	struct spin gazing;	    /* only ever tried: one thread looks before it sleeps */
	uint64_t stand_in_slept_ns; /* when that thread went to sleep */
	uint64_t seen_ns;	    /* the last look at the clock while awake */
	uint64_t starved_until_ns, starved_for_ns;
	/* Since the engine woke, or since it was away: when that was, and the looks that found work. */
	uint64_t turn_began_ns, turn_pieces;
	struct beside place;
	struct poller poller;
	bool few; /* there are few processors */
	/* Of threads that ring (ringer.c); the thread that made the word SLOT_RINGER uses them. */
	uint32_t unanswered, rings_to_skip;
	_Atomic(uint64_t) answered_until_ns; /* until then they expect answers */
	_Atomic(uint32_t) state;	     /* enum engine_state */
	/* Counts empty polls of the program's threads.  It is not exact: two of them may count as
	 * one. */
	cacheline_aligned _Atomic(uint32_t) polls;
	/* The last of these polls, in a row, that found another thread in the device. */
	_Atomic(uint32_t) refused;
	/* Taken by the one thread that polls the device for all; the others go on looking at their
	 * CQs. */
	cacheline_aligned struct spin polling;
};

/* May the engine leave the device to threads of the program? */
static inline bool engine_trusts_pollers(const struct engine *e, uint64_t now_ns)
{
	return now_ns >= atomic_load_explicit(&e->trust_at, memory_order_relaxed);
}

/* Does a thread of the program poll so often that the engine may leave the device to it?  Only the
 * engine calls this. */
bool engine_is_polled_for(struct engine *e, uint64_t now_ns);

/* Does the poller run or wait for a processor, and has it polled while it ran?  polls: how often,
 * since it was marked. */
bool engine_poller_goes_on(struct engine *e, uint32_t polls);

/* ---- how long the engine stays awake; for its own thread (engine_window.c) ---- */

void engine_window_init(struct engine *e);
/* Are processors scarce, as far as the engine knows? */
bool engine_is_scarce(const struct engine *e, uint64_t now);
/* Called after a sleep.  If a thread that waits for this processor woke the engine, processors are
 * scarce, because the kernel would have taken another one that is free. */
void engine_woken(struct engine *e);
/* The engine begins to look.  Returns for how long it stays after the last piece of work. */
uint64_t engine_window_open(struct engine *e, uint64_t now);
/* The engine has looked.  Notices when it got no processor although it was awake, which it may lose
 * at any moment; nobody else hears of bare stores then. */
void engine_looked(struct engine *e, uint64_t now, bool done);
/* Work that came in several batches is a stream, so the engine stays longer for the next batch. */
void engine_window_close(struct engine *e, unsigned batches);

/* Does a thread of the program sleep in the engine's place (stand_in.h)? */
static inline bool engine_is_stood_for(uint32_t word)
{
	return word == SLOT_READER || word == SLOT_WAITER;
}

/* The calling thread has looked for work, or has done some. */
static inline void engine_note_poll(struct engine *e)
{
	uint32_t polls = atomic_load_explicit(&e->polls, memory_order_relaxed) + 1;

	atomic_store_explicit(&e->polls, polls, memory_order_relaxed);
}
