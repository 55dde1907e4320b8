/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the doorbells, shared by doorbell.c (pages, and what is looked at) and arm.c (what
 * is protected while the engine sleeps) of this folder.
 *
 * Locks, in this order:
 *   doorbell_set.lock  the lists of pages and queues; held while registers are looked at and queues
 *                      served, so never wait for it on the data path
 *   the lock of the mappings, in doorbell/arm.c; held for a few system calls at most
 */
#pragma once

#include "base/spin.h"
#include "driver/doorbell/doorbell.h"

enum doorbell_state { DOORBELL_UNKNOWN, DOORBELL_HOOKED, DOORBELL_DIRECT };

/* The live queues of one kind on a page. */
struct doorbell_group {
	struct doorbell_user *next; /* the one to serve next, in a circular list */
	uint32_t count;
	uint32_t left; /* how many are still to be served */
};

struct doorbell_mapping;

struct doorbell_page {
	struct doorbell_page_attr attr;
	struct doorbell_page *next;	    /* list of all pages */
	struct doorbell_page *next_watched; /* if listed */
	bool listed;
	bool gone; /* its owner has destroyed it, but some queues have not noticed */
	uint32_t refs;
	_Atomic(uint32_t) announced; /* live queues that were taken over */
	uint32_t stores;	     /* how many stores came while UNKNOWN */
	_Atomic(uint32_t) state;
	_Atomic(bool) stale; /* became HOOKED since its registers were cleared */
	struct doorbell_group group[DOORBELL_KINDS];
	uint32_t eq_value[2]; /* values from the registers of EQs; the second arms */

	/* When a store was held up and let go that nobody has seen yet; 0: there is none. */
	_Atomic(uint64_t) fault_ns;
	uint64_t taken_ns; /* when we took one for executed; under the mappings' lock */
	struct doorbell_mapping *mappings; /* under the mappings' lock */
	uint64_t search_ns;		   /* no search for mappings before this time */
};

struct doorbell_set {
	struct spin lock;
	struct doorbell_page *pages;
	struct doorbell_page *watched;
	/* the engine */
	const struct doorbell_engine *_Atomic engine;
	_Atomic(uint32_t) telling; /* how many threads may be in a function of the engine */
};

extern struct doorbell_set doorbell_set;

/* Wakes the engine, if there is one.  Any thread and any signal handler may call this. */
void doorbell_tell_engine(void);

/* Set lock held: looks at every watched page. */
bool doorbell_look_locked(enum doorbell_scope scope);
/* Set lock held: has all queues of the page served, whether or not there is a value. */
void doorbell_serve_all(struct doorbell_page *page);

/* Set lock held: serves the queue that the value of a register of send queues names. */
void doorbell_serve_named(struct doorbell_page *page, uint64_t value);
/* Set lock held: serves some queues at once.  False: it leaves others to the next look. */
bool doorbell_serve_now(struct doorbell_page *page);

/* Set lock held: a page joins or leaves the set, so mappings of its registers get or lose it. */
void doorbell_mappings_join(struct doorbell_page *page);
void doorbell_mappings_leave(struct doorbell_page *page);
/* No lock held: calls 'found' for each other mapping of the registers.  Slow. */
typedef void doorbell_found(const uint8_t *regs, uintptr_t addr);
void doorbell_find(const uint8_t *regs, doorbell_found *found);
/* Any lock held. */
bool doorbell_is_direct(const struct doorbell_page *page);
