/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread looks for a moment before it sleeps, and so finds without the kernel what comes soon:
 * waking a thread takes many times as long as a short call.  Looking pays only if the last wait
 * would have been over in that time, if looking has not just been in vain, and if each looker has a
 * processor.
 *
 * Of two threads on one processor neither finds anything by looking.  If they go on like that, one
 * of them leaves the processor.  That takes as long as many changes between the two, so it leaves
 * after as many, and after more if leaving did not help.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/* Of one who waits, or of several of whom only one waits at a time. */
struct patience {
	bool brisk; /* the last wait was short, or would have been */
	uint32_t penalty_ns;
	uint64_t not_before_ns;
	uint32_t found; /* looks one upon the other */
	uint32_t near;	/* short waits beside the partner */
	uint32_t stay;	/* so many of them before one leaves */
	/* Who is waited for belongs to another process, which may use processors that we may not. */
	bool elsewhere;
};

/* Which processors there are, as the calling thread sees it. */
void patience_init(void);
/* Is it worth a look now?  The thread has waited before. */
bool patience_is_there(const struct patience *p) must_check;

/* What a looker does meanwhile. */
struct patience_meanwhile {
	bool (*work)(void *user); /* true if there was something to do */
	void *user;
};

/* Looks for it, if that is worth it; meanwhile may be NULL.  True: over(arg) holds. */
bool patience_look(struct patience *p, bool (*over)(const void *arg), const void *arg,
		   const struct patience_meanwhile *meanwhile);
/* Who is waited for is on its way to this processor, or from it: looks, whatever was before. */
bool patience_look_on(bool (*over)(const void *arg), const void *arg);
/* One more wait on the processor of who is waited for.  True: it is time to leave it. */
bool patience_leaves(struct patience *p) must_check;
/* After a sleep: so long after the waiting began was it over. */
void patience_learn(struct patience *p, uint64_t took_ns);
