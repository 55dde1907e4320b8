/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wakes the engine for links that have a descriptor (wire/link.h): those who send there know nothing
 * of the engine's word.  A thread waits for the descriptors; there is none while no link has one.
 *
 * The engine arms the descriptors before it sleeps.  Each reports once, so nobody is disturbed while
 * the engine or a thread of the program looks at the links anyway.  The thread stores nothing but to
 * the word of the slot and to its stack, so it need not pause when the engine does.
 */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

struct feeder;
struct wire_process;

/* kick is called with user, on the thread.  0 or negative errno.  *out is NULL if no link of the
 * process has a descriptor. */
int feeder_start(struct wire_process *h, void (*kick)(void *user), void *user,
		 struct feeder **out) must_check;
/* Waits for the thread's end.  NULL is nothing. */
void feeder_stop(struct feeder *f);
/*
 * From now on a link that has something to drain, or gets it, ends the engine's sleep; the engine
 * stores ASLEEP before.  False: of some link nobody will hear, so look again soon.  NULL: true.
 */
bool feeder_arm(struct feeder *f) must_check;
