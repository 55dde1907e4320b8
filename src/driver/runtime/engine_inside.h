/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of the engine, for its thread (engine.c) and for the threads that take its place (stand_in.c). */
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
#include "driver/runtime/poller.h"
#include "registry/registry.h"

struct feeder;
struct process;

#define ENGINE_NAP_MAX_NS 1000000u
/* Empty polls that come this close on the average are a poller's. */
#define ENGINE_POLL_APART_NS 4000u

/*
 * What is wanted of the thread, and PARKED, its answer to PARK.  It is not ended and made anew: a
 * program may have forbidden itself more threads.  While parked it stores nothing, so that even the
 * memory under this structure may be replaced; the futex is private, hence the same wherever the
 * page comes from.
 */
enum engine_state { ENGINE_RUN, ENGINE_PARK, ENGINE_PARKED, ENGINE_END };

struct engine {
	struct process *process;
	struct feeder *feeder;	 /* NULL: no link has a descriptor */
	_Atomic(uint32_t) *wake; /* of our slot */
	_Atomic(uint32_t) *waker_plus_1, *at_plus_1;
	pthread_t thread;
	_Atomic(uint32_t) nap; /* futex: 1 ends the nap, whatever 'wake' says */
	uint64_t spin_ns, spin_min_ns, spin_max_ns;
	uint32_t left_at_once; /* looks with a window of nothing */
	uint32_t window_polls; /* 'polls' when the window began */
	uint64_t window_ns;
	uint64_t distrust_ns;	      /* for how long, the next time */
	_Atomic(uint64_t) trust_at;   /* no naps before */
	_Atomic(uint64_t) noticed_at; /* the last POLLS_PER_NOTICE of polls */
	_Atomic(uint64_t) no_reader_before;
	_Atomic(bool) watching;		    /* it naps */
	_Atomic(bool) stand_in_sleeps;	    /* also while it has been woken and does not run yet */
	_Atomic(uint64_t) crowded_until_ns; /* others wait for events who have not got the place */
	struct hidden door;		    /* where peers knock, under 'polling' */
	/* Of the thread that has the place, or is about to take it (stand_in.c); under 'gazing'. */
	struct patience patience;
	struct spin gazing;	    /* only ever tried: one thread looks before it sleeps */
	uint64_t stand_in_slept_ns; /* since when it sleeps there */
	uint64_t seen_ns;	    /* the last look at the clock while awake */
	uint64_t starved_until_ns, starved_for_ns;
	struct beside place;
	struct poller poller;
	bool few; /* processors */
	/* Of those who ring (ringer.c), whoever has made the word SLOT_RINGER. */
	uint32_t unanswered, rings_to_skip;
	_Atomic(uint64_t) answered_until_ns; /* they reckon with answers */
	_Atomic(uint32_t) state;	     /* enum engine_state */
	/* Empty polls of the program's threads.  Not exact: two of them may count as one. */
	cacheline_aligned _Atomic(uint32_t) polls;
	_Atomic(uint32_t)
		refused; /* of these the last ones, in a row, as another thread was in the device */
	/* One thread polls the device for all; the others go on looking at their CQs. */
	cacheline_aligned struct spin polling;
};

/* Is it in order that the engine leaves the device to threads of the program? */
static inline bool engine_trusts_pollers(const struct engine *e, uint64_t now_ns)
{
	return now_ns >= atomic_load_explicit(&e->trust_at, memory_order_relaxed);
}

/* Does a thread of the program poll, often enough to leave the device to it?  The engine asks. */
bool engine_is_polled_for(struct engine *e, uint64_t now_ns);

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
