/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread of the program that is about to sleep in read of a completion channel sleeps in the
 * engine's place instead: at the word of our slot (registry/registry.h).  A peer that has sent
 * something then wakes only that thread, which takes the packet itself and finds its event.
 * Otherwise the peer would wake the engine, and the engine would wake the thread.
 *
 * The thread holds its signals off while it works in the device.  One thread at a time takes the
 * place (stand_in.h); others sleep as they would without this.
 */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"
#include "driver/runtime/stand_in.h"

/*
 * The calling thread is about to read from fd, which blocks until has_event(fd); it was not true
 * after the mark of the channel was made.  Returns 0 if there is an event, or if the thread has to
 * wait as usual; -EINTR where read would return it.  The caller holds cancellation off; cancel is
 * what cancel_restore needs to allow it.
 */
int reader_wait(int fd, bool (*has_event)(int fd), struct stand_in_mark mark,
		const int *cancel) must_check;
/* Somebody has made an event of the channel, for which such a thread may be waiting, or has closed
 * its descriptor. */
void reader_rouse(const void *channel);
/* pthread_cancel has asked a thread of the program to end; it may be such a thread. */
void reader_cancelled(void);
