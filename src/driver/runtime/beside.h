/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * On which processor the engine is woken.
 *
 * To wake a thread on another processor takes several times as long as on one's own, and if a thread
 * of the program spins there, on the memory that the engine is to write, the one that was woken
 * has to wait for it.  So an engine that peers wake again and again goes to where they are.  The kernel leaves
 * a thread where it last was, unless some processor has nothing to do.
 *
 * It goes to processors that the program is allowed, and to others only if somebody has asked for
 * that (SOFTHCA_PROCESSORS): then that of the peer, whose work it does there, is allowed besides.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct beside {
	bool leaves; /* the processors that the program is allowed, where the group of it has more */
	uint32_t apart;	    /* so many times in a row it was woken from another processor */
	uint32_t doublings; /* of how often it is before it moves */
	uint32_t extra;	    /* processor + 1 that is allowed besides; or 0 */
	bool moved;	    /* since the last wake-up */
	cpu_set_t set;	    /* what was set then */
};

/* Of the calling thread, plus 1; 0: not known. */
uint32_t beside_here_plus_1(void);
/*
 * The calling thread was woken from that processor (plus 1; 0: it is not known, or nobody has).  True: that is
 * the one on which it runs.
 */
bool beside_woken(struct beside *b, uint32_t waker_plus_1);
