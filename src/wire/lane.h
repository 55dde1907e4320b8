/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counting without fighting.  Every packet counts four times, so counters must cost next to
 * nothing: each thread counts in a lane of its own, with plain loads and stores; whoever reads adds
 * the lanes up.  There are SLOT_THREAD_LANES of them; lane 0 is for all threads that found no other
 * free, and counts with atomic additions.
 */
#pragma once

#include "base/compiler.h"
#include "wire/registry.h"

/* This thread's lane plus one; 0: none taken yet. */
extern _Thread_local unsigned lane_plus_1;
/* Takes a lane for this thread, until it ends. */
unsigned lane_take(void);

/* This thread's own lane of the counters, for lane_add; NULL: it shares lane 0. */
static inline _Atomic(uint64_t) *lane_own(_Atomic(uint64_t) *counters)
{
	unsigned lane = likely(lane_plus_1) ? lane_plus_1 - 1 : lane_take();

	return likely(lane) ? counters + (size_t)lane * SLOT_HCAS * PORT_COUNTERS : NULL;
}

static inline void lane_add(_Atomic(uint64_t) *own, enum port_counter c, uint64_t n)
{
	/* Relaxed: a counter orders nothing. */
	atomic_store_explicit(&own[c], atomic_load_explicit(&own[c], memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* The same in a lane that others count in as well. */
static inline void lane_add_shared(_Atomic(uint64_t) *lane, enum port_counter c, uint64_t n)
{
	atomic_fetch_add_explicit(&lane[c], n, memory_order_relaxed);
}

typedef void lane_add_fn(_Atomic(uint64_t) *lane, enum port_counter c, uint64_t n);

/* counters: those of one port in lane 0. */
static inline void lane_count(_Atomic(uint64_t) *counters, enum port_counter c, uint64_t n)
{
	_Atomic(uint64_t) *own = lane_own(counters);

	if (likely(own))
		lane_add(own, c, n);
	else
		lane_add_shared(counters, c, n);
}
