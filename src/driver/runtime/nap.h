/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The naps of the engine, from which it looks now and then whether threads of the program still do
 * its work.
 *
 * A nap is twice as long as the one before, and a millisecond at most.  While the thread that polls
 * waits for a processor in turn with others, the engine's look would take that processor from all
 * of them.  So a nap is up to NAP_IN_TURNS_NS, two ticks of the kernel, if that thread was found
 * waiting when the nap began.  A thread that comes to rely on the engine's look makes the nap short.
 *
 * The futex is one of this process alone, because a thread of the program may sleep at the word of
 * the slot.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Whoever relies on the engine's looks hears of its work so late at most, unless a thread that polls
 * will take that work when it has a processor. */
#define NAP_MAX_NS	1000000u
#define NAP_IN_TURNS_NS 8000000u

/* What the futex says.  SHORTER ends a nap and not the naps. */
enum nap_state { NAP_ON, NAP_OVER, NAP_SHORTER };

struct nap {
	_Atomic(uint32_t) state; /* enum nap_state */
	_Atomic(bool) is_long;	 /* the engine naps for more than NAP_MAX_NS, or is about to */
	/* The engine's own: how long the next nap is, and may be, and how long the last one was. */
	uint64_t ns, longest_ns, took_ns;
};

/* ---- of the engine ---- */

/* Others may end the naps from here on. */
void nap_allow(struct nap *n);
/* The next nap is as short as can be. */
void nap_start(struct nap *n);
/* The next naps may last for NAP_IN_TURNS_NS, until nap_keep_short. */
void nap_may_be_long(struct nap *n);
/* No nap is longer than NAP_MAX_NS, also if nap_announce has announced a longer one. */
void nap_keep_short(struct nap *n);
/* Tells other threads whether the next nap is long.  One that changes what the caller looks at after
 * this call, too late for that look, sees it and ends the nap. */
void nap_announce(struct nap *n);
/* Sleeps until the nap is over or somebody ends it. */
void nap_take(struct nap *n);
bool nap_was_long(const struct nap *n);
bool nap_is_over(const struct nap *n);

/* ---- of other threads ---- */

void nap_end(struct nap *n);
/* The caller relies on the engine's looks from now on.  It calls this after it has stored what the
 * engine looks at between nap_announce and nap_take. */
void nap_shorten(struct nap *n);
