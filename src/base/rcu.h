/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Grace periods (liburcu, "bulletproof" flavour: threads of the application need not register).
 * The data path reads: it enters around each look at a table of objects and the use of what it
 * found.  The control path writes: it unpublishes an object, waits, and frees it.
 *
 * ThreadSanitizer cannot see liburcu's membarrier protocol, so a build for it tells it the same
 * order by hand.
 */
#pragma once

/*
 * Makes readers inline: a few loads and stores, which the header's licence allows any program.  A
 * build with UBSan does not, because the library aligns its per-thread record less than its type
 * declares.
 */
#ifndef RCU_OUT_OF_LINE
#define _LGPL_SOURCE
#endif
#include <urcu/urcu-bp.h>

#include "base/tsan.h"

#ifdef TSAN_WATCHES
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
extern char rcu_tsan_token;
#endif

static inline void rcu_enter(void)
{
	urcu_bp_read_lock();
}

static inline void rcu_leave(void)
{
#ifdef TSAN_WATCHES
	__tsan_release(&rcu_tsan_token);
#endif
	urcu_bp_read_unlock();
}

/* Waits until every reader has left that could have seen what the caller unpublished before. */
static inline void rcu_wait(void)
{
	urcu_bp_synchronize_rcu();
#ifdef TSAN_WATCHES
	__tsan_acquire(&rcu_tsan_token);
#endif
}
