/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread of the program that is about to wait for descriptors (poll, select, epoll), among them a
 * completion channel, takes the engine's place meanwhile (stand_in.h).  It waits for one further
 * descriptor, at which a peer that has sent something knocks (wire/knock.h).  Then the thread takes
 * the packet itself and finds its event.  Otherwise the peer would wake the engine, and the engine
 * would wake the thread.
 *
 * The thread holds nothing while it waits, so it may be cancelled there, or a handler of a signal
 * may jump away.  A thread that takes the place away need not wake it: events reach its descriptors
 * whoever makes them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define WAITER_ASK (-2)
/*
 * Returns the further descriptor for which the thread has to wait until it is readable, or -1: the
 * thread has to wait as it would without us; or WAITER_ASK: there is an event of some channel, so
 * the thread asks the kernel first, and calls this again with a deadline of 0 if there is nothing
 * for it.  The wait ends at deadline_ns of CLOCK_MONOTONIC;
 * UINT64_MAX: it may last for ever.  'events' is how many events of all channels there had been
 * before the thread asked the kernel (stand_in_events).  The call leaves the caller's state of cancellation as it was.
 * In both calls the caller has signals held back (signals.h), because a handler that jumps away
 * must not leave locks of the device behind.
 */
int waiter_begin(uint64_t deadline_ns, uint32_t events) must_check;
/* The thread has waited; knocked: that descriptor is readable.  The call does the work that has
 * come. */
void waiter_end(bool knocked);
/* waiter_waits: did the calling thread wait in this way when it waited last?  waiter_was_told: and
 * is this the first time that the thread asks since then? */
bool waiter_waits(void);
bool waiter_was_told(void);
