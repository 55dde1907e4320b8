/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread looks for a moment before it sleeps, and so finds what comes soon without the kernel:
 * waking a thread takes many times as long as a short call.  Looking pays only if the last wait
 * would have been over in that time, if looking has not just been in vain, and if each looker has a
 * processor.
 *
 * If two threads share a processor, neither finds anything by looking.  If they go on like that,
 * one of them leaves the processor.  Leaving takes as long as many changes between the two, so the
 * thread leaves after as many of them, and after more if leaving did not help.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/* What is known of the waits of one thread, or of several threads of which one waits at a time. */
struct adaptive_spin {
	bool wait_was_short; /* the last wait was short, or would have been without the sleep */
	bool works;	     /* the thread makes the device work while it looks */
	uint32_t penalty_ns;
	uint64_t not_before_ns;
	uint32_t found; /* looks in a row that found something */
	uint32_t near;	/* short waits on the partner's processor */
	uint32_t stay;	/* how many of these the thread makes before it leaves */
};

/* Finds out which processors there are for the calling thread. */
void adaptive_spin_init(void);
/* Nobody looks in a child of fork. */
void adaptive_spin_fork_child(void);

/* The work that a looker does meanwhile. */
struct adaptive_spin_work {
	bool (*work)(void *user); /* true if there was something to do */
	void *user;
};

/* Looks until over(arg) holds, if a look is worth it; meanwhile may be NULL.  True: over(arg)
 * holds. */
bool adaptive_spin_until(struct adaptive_spin *p, bool (*over)(const void *arg), const void *arg,
			 const struct adaptive_spin_work *meanwhile);
/* Looks, whatever happened before, because the partner is on its way to this processor, or from
 * it. */
bool spin_on_until(bool (*over)(const void *arg), const void *arg);
/* The thread makes one more wait on the partner's processor.  True: it is time to leave the
 * processor. */
bool adaptive_spin_leaves_cpu(struct adaptive_spin *p) must_check;
/* Called after a sleep: the wait was over took_ns after it began. */
void adaptive_spin_learn(struct adaptive_spin *p, uint64_t took_ns);
