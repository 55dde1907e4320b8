/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread of the program that is about to wait for descriptors (poll, select, epoll), among them a completion
 * channel, takes the engine's place meanwhile (stand_in.h): it waits for one descriptor more, at which whoever has
 * sent something knocks (wire/knock.h), takes the packet itself and finds its event, where otherwise the engine would
 * be woken and then wake the thread.
 *
 * It holds nothing while it waits, so it may be cancelled there, or a handler of a signal jump away.  Who takes
 * its place away need not wake it: events come to its descriptors whoever makes them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/*
 * Returns the descriptor to wait for besides, until it can be read, or -1: the thread is to wait as
 * without us.  The wait ends at deadline_ns of CLOCK_MONOTONIC; UINT64_MAX: it may last for ever.  The
 * caller's state of cancellation is as it was.  In both calls the caller has signals held back
 * (signals.h): a handler that jumps away must not leave locks of the device behind.
 */
int waiter_begin(uint64_t deadline_ns) must_check;
/* It has waited; knocked: that descriptor can be read.  What has come is done. */
void waiter_end(bool knocked);
/* Did the calling thread wait so when it waited last?  And this is the first it asks since? */
bool waiter_waits(void);
bool waiter_was_told(void);
