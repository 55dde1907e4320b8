/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's place, for threads of the program that are about to sleep: readers of a completion channel
 * (reader.h) and those who wait for descriptors (waiter.h).
 *
 * The engine sleeps on, or naps if something has come lately.  It is woken, too, or looks within a
 * millisecond, so nothing depends on the thread's coming back: it may be cancelled there, leave by a jump out of a
 * handler, or get no processor.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct process;

/* Who has an event that need not be waited for. */
struct stand_in {
	uint32_t word; /* what the slot says as long as it sleeps there */
	/* NULL: the sleep will say. */
	bool (*has_event)(int fd);
	int fd;
	uint64_t deadline_ns; /* it does not wait for longer; UINT64_MAX: for ever */
};

enum stand_in_next {
	STAND_IN_DECLINES, /* it is to wait as without us */
	STAND_IN_SLEEPS,   /* the place is its own */
	STAND_IN_EVENT,	   /* as without us, and that does not take long */
};

/* The process, which stays until stand_in_leave; or NULL. */
struct process *stand_in_enter(void);
void stand_in_leave(void);
/* Does what a sender has left. */
void stand_in_works(struct process *p);
/* The calling thread is about to sleep; its signals are held off.  Work that is there is done first. */
enum stand_in_next stand_in_begin(struct process *p, const struct stand_in *s) must_check;
/* It sleeps there no more, and nobody has taken the place from it.  True: the engine naps, and knows of nobody. */
bool stand_in_give_back(struct process *p, uint32_t word);
/* Some thread has made an event. */
void stand_in_note_event(void);
/* Does this thread see by itself what events its work makes? */
bool stand_in_looks(void);

/* For the engine's end, when process_current() says that there is none. */
void stand_in_await_none(void);
void stand_in_fork_child(void);
