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

/*
 * The same between processes.  Only a process for which fence_far_ready is true may use
 * fence_far_light on its side; it says that fence_far reaches the process's threads.
 */
extern _Atomic(bool) fence_far_ready;

static inline void fence_far_light(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

/* Makes every running thread of all processes that are ready pass a full fence.  Makes a system
 * call, too.  If the program has forbidden itself that call, it waits until every processor must
 * have seen what was stored before. */
void fence_far(void);
/* Called in a forked child. */
void fence_fork_child(void);
