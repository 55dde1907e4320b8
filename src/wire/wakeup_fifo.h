/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wakes the thread of a peer that is registered in its slot (enum slot_driver in
 * registry/registry.h), because that thread drives the peer's device.
 *
 * The kernel lets no thread wait for a word and for descriptors at once.  So such a process has a
 * FIFO without a name, waits for it as well, and says in its slot which descriptor that is.  A peer
 * opens the FIFO through /proc and writes a byte.  Nobody relies on the byte: a process that does
 * not hear one finds out within a millisecond, because its engine looks now and then, and a peer
 * that cannot write says so in the slot.
 */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"
#include "base/descriptor.h"
#include "registry/registry.h"

/* ---- who is woken ---- */

/* Makes *fifo, which the thread waits to read from, unless it is there already.  False: that is not
 * possible. */
bool wakeup_fifo_open(struct slot *own, struct hidden *fifo) must_check;
/* Takes out all that peers have written so far. */
void wakeup_fifo_drain(const struct hidden *fifo);
void wakeup_fifo_close(struct slot *own, struct hidden *fifo);

/* ---- who wakes ---- */

/* Wakes the thread, if one is registered.  Any thread may call this, also in a handler of a signal. */
void waiter_wake(struct slot *peer);
/* Closes all FIFOs that waiter_wake has opened. */
void wakeup_fifos_close(void);
void wakeup_fifo_fork_child(void);
