/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread of the program that rings by a bare store, in the handler of its fault.
 *
 * Such a program looks for completions in memory, so only the engine takes what peers send, and
 * where programs spin on each processor the engine gets none.  The thread is in the device anyway,
 * so it takes the engine's place while it is there: the slot says that somebody looks
 * (SLOT_RINGER), peers wake nobody, and the thread looks before it leaves.
 *
 *   lingers     Where processors are few the thread stays for a moment, because a program that
 *               has sent something often waits for the answer.  Two programs that talk in this way
 *               always find each other in the handler: no engine runs, and nobody wakes a thread.
 *               The more stays are in vain, the more seldom the thread stays.
 *   makes way   Nobody wakes an engine that is awake.  If it has lost its processor to the thread
 *               that rings, nobody gives the processor back before the next tick of the kernel: so
 *               the thread does.
 */
#pragma once

#include <stdbool.h>

/* These are members of struct doorbell_engine; user is the process.  The caller holds signals of
 * the program back from before ringer_enter until after ringer_leave. */
bool ringer_enter(void *user);
unsigned ringer_leave(void *user, bool entered, bool done);
