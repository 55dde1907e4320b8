/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wakes a thread of a peer that waits for descriptors in its engine's place (SLOT_WAITER in
 * registry/registry.h).
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

/* Knocks.  Any thread may call this, also in a handler of a signal. */
void knock_at(struct slot *peer);
/* Closes all FIFOs that knock_at has opened. */
void knock_forget_all(void);
void knock_fork_child(void);
