/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wakes the thread of a peer that is registered in its slot (enum slot_driver in
 * registry/registry.h), because that thread drives the peer's device.
 *
 * The kernel lets no thread wait for a word and for descriptors at once.  So such a process has a
 * FIFO without a name, waits for it as well, and says in its slot which descriptor that is.  A peer
 * opens the FIFO through /proc and writes a byte.  Nobody relies on the knock: a process that does
 * not hear one finds out within a millisecond, because its engine looks now and then, and a peer
 * that cannot knock says so in the slot.
 */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"
#include "base/hidden.h"
#include "registry/registry.h"

/* ---- who is woken ---- */

/* Makes *door, which the thread waits to read from, unless it is there already.  False: that is not
 * possible. */
bool knock_ready(struct slot *own, struct hidden *door) must_check;
/* The thread has heard all knocks so far: empties the FIFO. */
void knock_heard(const struct hidden *door);
void knock_close(struct slot *own, struct hidden *door);

/* ---- who wakes ---- */

/* Wakes the thread, if one is registered.  Any thread may call this, also in a handler of a signal. */
void knock_waiter(struct slot *peer);
/* Closes all FIFOs that knock_waiter has opened. */
void knock_forget_all(void);
void knock_fork_child(void);
