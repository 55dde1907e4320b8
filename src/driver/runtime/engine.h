/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine is one thread per process that drives the device whenever no thread of the program
 * does.  When there is nothing to do it sleeps on the futex of its slot; enum slot_wake has the
 * protocol with peers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct process;

/* Starts the thread.  Returns 0 once it is ready to serve peers, or a negative errno if a resource
 * is missing. */
int engine_start(struct process *p);
/* Waits for the thread's end. */
void engine_stop(struct process *p);
/* The caller has made work, or a deadline for work, and perhaps no thread polls, so the engine has
 * to look.  The call is cheap when the engine is awake. */
void engine_kick(struct process *p);
/* Does the same, and makes an engine that naps look within a millisecond. */
void engine_look_soon(struct process *p);
/* A thread of the program polls and has found nothing, so it drives the device itself.  Returns
 * true if it has done anything. */
bool engine_poll(struct process *p);
/* A thread that is not the program's asks whether it has to poll, because no others have polled
 * since it last asked or polled.  *polls belongs to that thread, and is 0 at first. */
bool engine_wants_poller(struct process *p, uint32_t *polls);
bool engine_poll_for_it(struct process *p, uint32_t *polls);
/* A thread of the program is about to wait for an event, so the engine must not count on its
 * polling. */
void engine_yield(struct process *p);
/* May the caller leave out engine_yield, if the thread waits as a reader (reader.h)? */
bool engine_relies_on_readers(struct process *p);
