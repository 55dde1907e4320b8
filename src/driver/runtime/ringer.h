/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread of the program that rings by a bare store, in the handler of its fault.
 *
 * Such a program looks for completions in memory, so nobody but the engine takes what peers send, and where programs spin on
 * each processor the engine has none.  The thread is in the device anyway, so it takes the engine's place for as long: the
 * slot says that somebody looks (SLOT_RINGER), peers wake nobody, and the thread looks before it leaves.
 *
 *   lingers     Where processors are few it stays for a moment, as the program that has sent something often
 *               waits for the answer.  Two that talk so find each other in the handler always: no engine runs, no
 *               thread is woken.  The more stays are in vain, the more seldom they are.
 *   makes way   An engine that is awake is not woken.  If its processor was taken away from it, and is the one on which the
 *               thread rings, nobody gives it back before the next tick of the kernel: so the thread does.
 */
#pragma once

#include <stdbool.h>

/*
 * The members of struct doorbell_engine; user is the process.  Signals of the program are held back from before the
 * one until after the other.
 */
bool ringer_enter(void *user);
unsigned ringer_leave(void *user, bool entered, bool done);
