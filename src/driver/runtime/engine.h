/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: one thread per process that drives the device whenever no thread of the program does.
 * Asleep on its slot's futex when there is nothing to do; see enum slot_wake for the protocol with
 * peers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct process;

/* Makes the thread; 0, or negative errno of what there is not enough of.  Returns whether it runs
 * yet or not. */
int engine_start(struct process *p);
/* Waits for the thread's end. */
void engine_stop(struct process *p);
/* In between the engine touches no memory at all; engine_pause waits until that is so.  One pause
 * at a time. */
void engine_pause(struct process *p);
void engine_resume(struct process *p);
/* There is (or will be at some deadline) work, and maybe nobody polls.  Cheap when the engine is
 * awake. */
void engine_kick(struct process *p);
/* A thread of the program polls and found nothing: drive the device in this thread. True if
 * anything was done. */
bool engine_poll(struct process *p);
/*
 * Is a thread that is not the program's to do that, as nobody else has done it since it last asked or did?  *polls: its own,
 * 0 at first.
 */
bool engine_wants_poller(struct process *p, uint32_t *polls);
bool engine_poll_for_it(struct process *p, uint32_t *polls);
/* A thread of the program is about to wait for an event, so do not count on its polling. */
void engine_yield(struct process *p);
/* May that be left out, if the thread is to wait as a reader (reader.h)? */
bool engine_relies_on_readers(struct process *p);
