/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files that interpose poll, select and epoll have in common for a wait in which one of
 * the descriptors is a completion channel (driver/runtime/drive.h).
 *
 * We first ask the kernel, without waiting, whether there is something, so the kernel says what is
 * wrong with a call.  Then we wait for all descriptors and the further one at once.  We pass on
 * what the kernel says of the program's descriptors as it comes, because a few kinds of file say a
 * thing only once.
 *
 * Signals are held back from before the first such wait on, except in the waits themselves.  A
 * signal that came between two waits would run its handler, and the program, which has slept all
 * the time, would not hear of it (EINTR).  A signal that nobody handles may then be pending for a
 * moment and end a wait of epoll, as continuing after a stop does.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/compiler.h"

#define WAIT_FOR_EVER UINT64_MAX

struct wait_call {
	/*
	 * 'ask' asks without waiting.  'wait' waits until the deadline, also for the descriptor
	 * 'fifo' if that is not -1; the result does not count that one.  A thread may be cancelled
	 * in either.
	 */
	int (*ask)(struct wait_call *c);
	int (*wait)(struct wait_call *c, int fifo, bool *woken);
	uint64_t deadline_ns;
	uint32_t events; /* the completion events that there were before the kernel was asked */
	/* Not NULL: signals are held back, and this is the program's mask. */
	const sigset_t *mask;
};

/* Computes when this time from now on is over.  False: the kernel would not take it. */
bool wait_until(const struct timespec *from_now, uint64_t *deadline_ns) must_check;

/* The program has closed the descriptor: if it was a set of epoll, we forget what it led to. */
void wait_closed(int fd);

/* ---- signal masks that a program gives, without the faults of the device (signal.c) ---- */

/*
 * Returns the mask for a wait in place of the program's; room is for a changed copy.  Handlers run in
 * a wait, and they may ring doorbells.  A mask that cannot be read stays the kernel's to refuse.
 */
const sigset_t *signal_wait_mask(const sigset_t *mask, sigset_t *room);
