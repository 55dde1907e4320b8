/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waking a thread of a peer that waits for descriptors in its engine's place (SLOT_WAITER in registry/registry.h).
 *
 * The kernel lets no thread wait for a word and for descriptors at once.  So such a process has a FIFO
 * without a name, waits for it besides, and says in its slot which descriptor that is; a peer opens it through /proc and
 * writes a byte.  Nobody relies on it: a process whose knock is not heard finds out within a millisecond, as
 * its engine looks now and then, and a peer that cannot knock says so in the slot.
 */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"
#include "base/hidden.h"
#include "registry/registry.h"

/* ---- who is woken ---- */

/* What there is to wait for, until it can be read.  Makes it, if there is none (any more); false: it cannot be made. */
bool knock_ready(struct slot *own, struct hidden *door) must_check;
/* All knocks so far have been heard. */
void knock_heard(const struct hidden *door);
void knock_close(struct slot *own, struct hidden *door);

/* ---- who wakes ---- */

/* From any thread, also in a handler of a signal. */
void knock_at(struct slot *peer);
/* What was opened for it is closed. */
void knock_forget_all(void);
void knock_fork_child(void);
