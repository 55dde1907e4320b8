/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fence of which one side costs nothing.  Two threads each store and then look at what the other
 * stores, one of them often and the other seldom.  The first puts fence_light between the two, the
 * second fence_heavy, which has every running thread of the process pass a full fence: one of the
 * two sees the other's store.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/compiler.h"

/* Does the system lack what fence_heavy needs?  Both are full fences then. */
extern _Atomic(bool) fence_symmetric;

static inline void fence_light(void)
{
	if (unlikely(atomic_load_explicit(&fence_symmetric, memory_order_relaxed)))
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
}

/*
 * Behind an atomic exchange of sequential consistency that is to come before looks at memory which
 * are none: makes it a full fence.  On x86-64 it is one.
 */
static inline void fence_after_rmw(void)
{
#if defined(__x86_64__)
	atomic_signal_fence(memory_order_seq_cst);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* A system call: the caller holds no spin lock. */
void fence_heavy(void);

/*
 * The same between processes.  Only a process for which this is true may leave its side to
 * fence_far_light, with which it says that fence_far reaches its threads.
 */
extern _Atomic(bool) fence_far_ready;

static inline void fence_far_light(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

/* Has every running thread of all processes that are ready pass a full fence.  A system call, too.
 * If the program has forbidden itself that, it waits until what was stored before must have been
 * seen. */
void fence_far(void);
/* In a forked child. */
void fence_fork_child(void);
