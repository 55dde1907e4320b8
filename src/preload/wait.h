/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for descriptors, for the files that interpose such calls: what poll, select and epoll have in common when
 * one of the descriptors is a completion channel (driver/runtime/waiter.h).
 *
 * The kernel is asked first whether there is something, so what is wrong with a call is said by it, and then for
 * all descriptors and the one more at once.  What it says of the program's is passed on as it comes: a
 * few kinds of file say a thing once only.
 *
 * Signals are held back from before the first wait on, but for the waits themselves: one that came between two of them
 * would run its handler, and the program, which has slept all the time, would not hear of it (EINTR).  One that nobody handles
 * may then be pending for a moment, and end a wait of epoll, as going on after a stop does.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/compiler.h"

#define WAIT_FOR_EVER UINT64_MAX

struct wait_call {
	/* Asks without waiting, or waits until the deadline, also for the descriptor 'knock' if that is not -1, which is not
	 * counted in the result.  Points at which a thread is cancelled. */
	int (*ask)(struct wait_call *c);
	int (*wait)(struct wait_call *c, int knock, bool *knocked);
	uint64_t deadline_ns;
	/* Not NULL: signals are held back, and this is the program's mask. */
	const sigset_t *mask;
};

/* It has been asked, and there was nothing. */
int wait_in_place(struct wait_call *c);

/* When a time from now is over.  False: the kernel would not take it. */
bool wait_until(const struct timespec *from_now, uint64_t *deadline_ns) must_check;
uint64_t wait_until_ms(int ms);
/* What is left; NULL: for ever. */
const struct timespec *wait_left(uint64_t deadline_ns, struct timespec *left);

/* The same for calls that take milliseconds: never too early. */
int wait_left_ms(uint64_t deadline_ns);

/*
 * Does one who waits for this descriptor wait for a completion channel?  It is one, or a set of epoll to which
 * one was added.  That it was is forgotten when the set is closed, where we hear of it; one who waits in the engine's place
 * needlessly loses nothing.
 */
bool wait_leads_to_channel(int fd) must_check;
void wait_set_leads_to_channel(int set);
void wait_closed(int fd);
