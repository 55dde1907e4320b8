/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Grace periods (liburcu, "bulletproof" flavour: threads of the application need not
 * register).  Readers: the data path, around each look at a table of objects and the use of what
 * it found.  Writers: the control path, which unpublishes, waits, frees.
 *
 * ThreadSanitizer cannot see liburcu's membarrier protocol, so a build for it is told the same
 * order by hand.
 */
#pragma once

/*
 * Makes readers inline: a few loads and stores, which the header's licence allows any program.  Not
 * under UBSan, because the library aligns its per-thread record less than its type declares.
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

/* Waits until every reader that could have seen what was unpublished before has left. */
static inline void rcu_wait(void)
{
	urcu_bp_synchronize_rcu();
#ifdef TSAN_WATCHES
	__tsan_acquire(&rcu_tsan_token);
#endif
}
