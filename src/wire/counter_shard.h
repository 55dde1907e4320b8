/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts without contention.  Every packet counts four times, so counters must cost next to
 * nothing.  Each thread counts in a shard of its own, with plain loads and stores; readers add the
 * shards up.  There are SLOT_THREAD_SHARDS of them.  Threads that find no free shard share shard 0,
 * with atomic additions.
 */
#pragma once

#include "base/compiler.h"
#include "registry/registry.h"

/* This thread's shard plus one; 0: none taken yet. */
extern _Thread_local unsigned shard_plus_1;
/* Takes a shard for this thread, until it ends. */
unsigned shard_take(void);

/* This thread's own shard of the counters, for shard_add; NULL: the thread shares shard 0. */
static inline _Atomic(uint64_t) *shard_own(_Atomic(uint64_t) *counters)
{
	unsigned shard = likely(shard_plus_1) ? shard_plus_1 - 1 : shard_take();

	return likely(shard) ? counters + (size_t)shard * SLOT_PORTS * PORT_COUNTERS : NULL;
}

static inline void shard_add_at(_Atomic(uint64_t) *at, uint64_t n)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	/* One instruction, so that a handler of a signal may count in between. */
	__asm__("addq %1, %0" : "+m"(*at) : "er"(n) : "cc");
#else
	/* Relaxed: a counter orders nothing. */
	atomic_store_explicit(at, atomic_load_explicit(at, memory_order_relaxed) + n,
			      memory_order_relaxed);
#endif
}

static inline void shard_add(_Atomic(uint64_t) *own, enum port_counter c, uint64_t n)
{
	shard_add_at(&own[c], n);
}

/* Adds in a shard in which other threads count as well. */
static inline void shard_add_shared(_Atomic(uint64_t) *shard, enum port_counter c, uint64_t n)
{
	atomic_fetch_add_explicit(&shard[c], n, memory_order_relaxed);
}

typedef void shard_add_fn(_Atomic(uint64_t) *shard, enum port_counter c, uint64_t n);

/* Counts for this thread.  counters: those of one port in shard 0. */
static inline void shard_count(_Atomic(uint64_t) *counters, enum port_counter c, uint64_t n)
{
	_Atomic(uint64_t) *own = shard_own(counters);

	if (likely(own))
		shard_add(own, c, n);
	else
		shard_add_shared(counters, c, n);
}
