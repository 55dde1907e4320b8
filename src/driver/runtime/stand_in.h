/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lets threads of the program that are about to sleep take the engine's place: readers of a
 * completion channel (reader.h) and threads that wait for descriptors (waiter.h).
 *
 * The engine sleeps on meanwhile, or naps if something has come lately.  Either the sender wakes
 * the engine, too, or the engine looks within a millisecond.  So nothing depends on the thread's
 * coming back: it may be cancelled there, jump out of a handler, or get no processor.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct process;

#define STAND_IN_ALL_CHANNELS 0u

/* The events that a thread knows of.  The row is STAND_IN_ALL_CHANNELS, or counts those of a few
 * channels together. */
struct stand_in_mark {
	unsigned row;
	uint32_t events;
};

/* A thread that is about to sleep, and how it finds out that its event is there already. */
struct stand_in {
	uint32_t word; /* what the slot's word is while the thread sleeps there */
	/* NULL: the sleep itself finds out. */
	bool (*has_event)(int fd);
	int fd;
	uint64_t deadline_ns; /* when its wait ends at the latest; UINT64_MAX: never */
	/* Made before the thread found that there is no event.  So it does not look for one that
	 * came in between. */
	struct stand_in_mark mark;
};

enum stand_in_next {
	STAND_IN_DECLINES, /* the thread has to wait as it would without us */
	STAND_IN_SLEEPS,   /* the thread has the place */
	STAND_IN_EVENT,	   /* there is an event, so the usual call returns soon */
};

/* Returns the process, which stays until stand_in_leave; or NULL. */
struct process *stand_in_enter(void);
void stand_in_leave(void);
/* Does the work that a sender has left for the thread. */
void stand_in_works(struct process *p);
/* The wait ended without a sender, so it says nothing of how soon the next one ends. */
void stand_in_forget(struct process *p);
/* The calling thread is about to sleep, with its signals held off.  It does the work that is there
 * first. */
enum stand_in_next stand_in_begin(struct process *p, const struct stand_in *s) must_check;
/* The thread sleeps there no more, and gives the place back if nobody has taken it away.  True: the
 * engine naps and does not know that the place is empty. */
bool stand_in_give_back(struct process *p, uint32_t word);
/* Returns how many events have been counted in a mark's row. */
uint32_t stand_in_events(unsigned row);
/* Marks how many events the channel has had. */
struct stand_in_mark stand_in_mark(const void *channel);
/* A thread has made an event of the channel. */
void stand_in_note_event(const void *channel);
/* Does the calling thread itself see the events that its work makes, because it is looking just
 * now? */
bool stand_in_looks(void);

/* The engine's end waits here until no thread is left inside; process_current() is NULL by then. */
void stand_in_await_none(void);
void stand_in_fork_child(void);
