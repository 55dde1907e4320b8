/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cancellation of threads.  With hardware, most of what the device does for a program is no
 * cancellation point; and a thread that ended in the middle would leave locks held and data half
 * stored.  So the entry points of the driver, and the rare paths that open something or log, hold
 * cancellation off.  Posting, polling and events make their system calls by syscall(2), which is no
 * cancellation point and costs nothing.
 */
#pragma once

#include <pthread.h>

static inline int cancel_hold(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void cancel_restore(const int *state)
{
	pthread_setcancelstate(*state, NULL);
}

/* Holds cancellation off from here to the end of the block. */
#define no_cancellation() \
	const int cancel_state_ __attribute__((cleanup(cancel_restore))) = cancel_hold()
