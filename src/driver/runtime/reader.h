/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread of the program that is about to sleep in read of a completion channel waits in the engine's
 * place instead: at the word of our slot (registry/registry.h).  Whoever has sent something wakes that
 * thread alone, which takes the packet itself and finds its event, where otherwise the engine would be
 * woken and then wake the thread.
 *
 * The engine sleeps on, or naps if something has come lately.  It is woken, too, or looks within a
 * millisecond, so nothing depends on the thread's coming back: it may be cancelled there, leave by a jump out of a
 * handler, or get no processor.  The thread's signals are held off while it works in the device.
 *
 * One thread does so at a time.  Others, and all who wait by poll, select or epoll, sleep as without this.
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

/* For the engine's end, when process_current() says that there is none. */
void reader_await_none(void);
void reader_fork_child(void);
