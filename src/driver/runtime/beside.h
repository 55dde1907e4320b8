/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moves the engine to the processor on which it is woken.
 *
 * To wake a thread on another processor takes several times as long as to wake it on one's own.  If
 * a thread of the program spins there on the memory that the engine is to write, it also waits for
 * the engine to run.  So an engine that peers wake again and again moves to the processor of these
 * peers, because the kernel leaves a thread where it last ran, unless some processor has nothing to
 * do.
 *
 * The engine moves to processors that the program is allowed.  It moves to others only if somebody
 * has asked for that (SOFTHCA_PROCESSORS): then it also allows itself the processor of the peer
 * whose work it does there.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct beside {
	/* The engine may leave the processors that the program is allowed, if its group has
	 * more. */
	bool leaves;
	uint32_t apart;	    /* wake-ups from another processor in a row */
	uint32_t doublings; /* of the number of such wake-ups before it moves */
	uint32_t extra;	    /* the further processor that is allowed, plus 1; or 0 */
	bool moved;	    /* the engine has moved since the last wake-up */
	cpu_set_t set;	    /* the processors that beside_move allowed last */
};

/* Returns the processor of the calling thread, plus 1; 0: it is not known. */
uint32_t beside_here_plus_1(void);
/* Somebody woke the calling thread from that processor (plus 1; 0: nobody did, or it is not known).
 * Returns true if the thread ran on that processor when it woke. */
bool beside_woken(struct beside *b, uint32_t waker_plus_1);
/* Does the thread move if a few more wake-ups come from another processor? */
bool beside_moves_soon(const struct beside *b);
