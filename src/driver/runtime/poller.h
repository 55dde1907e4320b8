/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread of the program that polls, as its engine sees it.  Where more threads want a processor than there are, it does not
 * poll while it waits for one, but will: the engine need not do it, and would take the processor from the others.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct poller {
	_Atomic(uint64_t) who; /* its number and its clock; 0: nobody yet */
	/* the engine's: whom it has marked, and for how long that one had run then */
	uint64_t marked;
	uint64_t ran_ns;
	uint32_t polls; /* what the engine has counted by then */
};

/* The calling thread polls; to be said now and then. */
void poller_note(struct poller *p);
/* The time that counts below begins. */
void poller_mark(struct poller *p, uint32_t polls);
/* Does it run or wait for a processor, and has had one for so long at most since the mark?  False: it sleeps, was
 * busy with something else, or is not known. */
bool poller_goes_on(const struct poller *p, uint64_t most_ns);
/* Is there one that is not the calling thread, and runs or waits for a processor? */
bool poller_is_another(const struct poller *p);
