/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wakes the engine for links that have a descriptor (wire/link.h), because those who send there
 * know nothing of the engine's word.  A thread waits for the descriptors; there is no such thread
 * while no link has one.
 *
 * The engine arms the descriptors before it sleeps.  Each reports once, so it disturbs nobody while
 * the engine or a thread of the program looks at the links anyway.
 */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

struct feeder;
struct wire_process;

/* The thread calls kick(user).  Returns 0 or a negative errno.  *out is NULL if no link of the
 * process has a descriptor. */
int feeder_start(struct wire_process *h, void (*kick)(void *user), void *user,
		 struct feeder **out) must_check;
/* Waits for the thread's end.  Does nothing for NULL. */
void feeder_stop(struct feeder *f);
/*
 * From now on a link that has something to drain, or gets it, ends the engine's sleep; so the
 * engine stores SLOT_NOBODY before it calls this.  False: nobody can hear of some link, so the engine
 * must look again soon.  For NULL the answer is true.
 */
bool feeder_arm(struct feeder *f) must_check;
