/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fence that costs one of its sides nothing.  Two threads each store and then look at what the
 * other stores, one of them often and the other seldom.  The first puts fence_light between its
 * store and its look.  The second puts fence_heavy there, which makes every running thread of the
 * process pass a full fence.  So one of the two sees the other's store.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/compiler.h"

/* True if the system lacks what fence_heavy needs.  Then both are full fences. */
extern _Atomic(bool) fence_symmetric;

static inline void fence_light(void)
{
	if (unlikely(atomic_load_explicit(&fence_symmetric, memory_order_relaxed)))
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
}

/*
 * Makes a sequentially consistent atomic exchange before it a full fence, which also orders later
 * looks at memory that are no atomics of that kind.  On x86-64 the exchange is one already.
 */
static inline void fence_after_rmw(void)
{
#if defined(__x86_64__)
	atomic_signal_fence(memory_order_seq_cst);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* Makes a system call: the caller holds no spin lock. */
void fence_heavy(void);
