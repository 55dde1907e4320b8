/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread of the program that is about to sleep in read of a completion channel waits in the engine's
 * place instead: at the word of our slot (registry/registry.h).  Whoever has sent something wakes that
 * thread alone, which takes the packet itself and finds its event, where otherwise the engine would be
 * woken and then wake the thread.
 *
 * The thread's signals are held off while it works in the device.  One thread does so at a time (stand_in.h); others
 * sleep as without this.
 */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

/*
 * The calling thread is about to read from fd, which blocks until has_event(fd).  0: there is an event, or
 * it is to wait as usual.  -EINTR as read would.  The caller holds cancellation off; cancel is what
 * cancel_restore needs to allow it.
 */
int reader_wait(int fd, bool (*has_event)(int fd), const int *cancel) must_check;
/* There is an event that such a thread may be waiting for, or its descriptor has been closed. */
void reader_rouse(void);
/* Some thread of the program was asked to end by pthread_cancel: it may be such a one. */
void reader_cancelled(void);
