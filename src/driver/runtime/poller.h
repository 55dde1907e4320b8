/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread of the program that polls, as its engine sees it.  Where more threads want a processor
 * than there are processors, this thread does not poll while it waits for one, but it will: so the
 * engine need not poll, which would take the processor from the others.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct poller {
	_Atomic(int32_t) who; /* the thread's clock; 0: nobody yet */
	/* The engine's own: which thread it has marked, and for how long that thread had run by
	 * then. */
	int32_t marked;
	uint64_t ran_ns;
	uint32_t polls; /* the count of polls at the mark */
};

/* The calling thread polls; it says so now and then. */
void poller_note(struct poller *p);
/* Marks the present poller: poller_goes_on measures from here on.  Returns for how long it has run
 * since the mark before; UINT64_MAX: that mark was another thread's. */
uint64_t poller_mark(struct poller *p, uint32_t polls);
/* Does the poller run or wait for a processor, and has it run for at most most_ns since the mark?
 * False: it sleeps, has been busy with something else, or is not known. */
bool poller_goes_on(const struct poller *p, uint64_t most_ns);
/* Is there a poller other than the calling thread that runs or waits for a processor? */
bool poller_is_another(const struct poller *p);
