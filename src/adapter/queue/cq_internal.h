/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a completion queue, for the files that implement it. */
#pragma once

#include "adapter/queue/cq.h"
#include "adapter/queue/cq_bell.h"
#include "prm/cqe.h"
#include "prm/wqe.h"

/*
 * Compressed completions: of completions that differ in little, one is written as it is, the title,
 * and for each of the others eight bytes.  Each still has a place of its own in the ring; the
 * reader has to mark the places into which nothing is written.  A group does not go past the ring's
 * end.
 *
 *   basic     the title says how many completions are with it.  Behind it stands an array of up to
 *             eight; the array for each further eight stands at the place of the first of these
 *   enhanced  the title is the last whole completion before.  Up to seven stand in the place of the
 *             first one, whose last bytes say how many.  Everything that is written carries the
 *             number of the ring's round, by which a reader knows what is new
 *
 * So the queue holds completions back, at most until the outermost call of the device ends.
 * Nothing here locks, because the caller holds the queue's lock.
 */

#define CQ_ZIP_MOST	     64u
#define CQ_ZIP_MOST_ENHANCED 7u

struct cq_zip {
	uint8_t layout; /* enum cq_compression */
	uint8_t format; /* enum cqe_mini_format */
	bool has_title;
	uint8_t wake;	       /* enum cq_wake: the most that a waiting completion wakes */
	uint16_t next_counter; /* for the next completion of a receive queue */
	uint32_t most;	       /* the most that may wait */
	uint32_t waiting;
	struct cqe64 title, last;
	struct cqe_mini mini[CQ_ZIP_MOST];
};

/* Returns NULL if there is no memory. */
struct cq_zip *cq_zip_create(uint8_t layout, uint8_t format, uint32_t entries);
/* Takes the completion if it goes with those that wait. */
bool cq_zip_joins(struct cq_zip *z, const struct cqe64 *cqe, enum cq_wake wake);
/* Called when nothing waits: the completion begins a new group.  True: it waits. */
bool cq_zip_begins(struct cq_zip *z, const struct cqe64 *cqe, enum cq_wake wake);
/* Writes the completions that wait, which then wait no more; false: the ring's memory no longer
 * exists. */
bool cq_zip_write(struct cq_zip *z, const struct cq *cq);
/* Makes the next completion be written whole. */
void cq_zip_forget_title(struct cq_zip *z);

/* How many queue pairs an overrun names. */
#define USERS_NAMED 8u

struct cq {
	struct adapter *adapter;
	struct cq_attr attr;
	uint32_t cqn;
	_Atomic(uint32_t) users;
	struct spin lock;
	/* Where the next completion goes, for cq_own_ahead; it may be out of date. */
	_Atomic(void *) ahead;
	uint32_t pi;	       /* producer index, never masked */
	uint32_t ci;	       /* what the program's record said when we last read it */
	uint32_t solicited_pi; /* pi just after the last solicited CQE */
	uint32_t event_sn;
	uint32_t event_pi; /* pi at the last event, which reported all completions before it */
	uint32_t mask;	   /* turns an index into an entry */
	bool any_wanted;   /* since the last event the arm record has asked for any completion */
	bool overrun;
	bool armed;	  /* the program has armed it by value */
	uint32_t bell_ci; /* of the last bell by value; counts as pi does */
	/*
	 * Resize markers that the program has taken since it wrote resize_ci into its record, the
	 * last of them when the producer index was resize_pi.  See cq_outstanding.
	 */
	uint32_t resizes;
	uint32_t resize_ci;
	uint32_t resize_pi;
	/* Moderation; both 0: there is none. */
	uint32_t event_count;
	uint64_t event_period_ns;
	bool event_newest;  /* the period begins anew with each completion */
	uint32_t period_pi; /* pi when the period began */
	struct timer timer; /* of the moderated event */
	bool timer_used;
	uint32_t named[USERS_NAMED]; /* numbers of queue pairs that complete here; 0: free */
	struct object_row *row;	     /* for people; may be NULL */
	struct cq_bell bell;	     /* in the table if the queue has a region */
	struct cq_entry entry;
	struct cq_waiter *waiters;
	struct cq_zip *zip;   /* NULL: completions are not compressed */
	struct run_entry run; /* writes the completions that wait */
};

static inline be32 *dbrec_of(const struct cq *cq, unsigned word)
{
	return (be32 *)cq->attr.dbrec + word;
}

static inline uint8_t *cq_entry(const struct cq *cq, uint32_t index)
{
	uint8_t *at = (uint8_t *)cq->attr.buf + (size_t)(index & cq->mask) * cq->attr.cqe_bytes;

	return at + (cq->attr.cqe_bytes - CQE_BYTES);
}

/* Completions up to that index have been written. */
static inline void cq_advance(struct cq *cq, uint32_t pi)
{
	cq->pi = pi;
	atomic_store_explicit(&cq->ahead, cq_entry(cq, pi), memory_order_relaxed);
}

static inline uint8_t cq_owner(const struct cq *cq, uint32_t index)
{
	return !!(index & cq->attr.entries);
}

/* Writes what a completion with that index carries in its last two bytes. */
static inline void cq_seal(const struct cq *cq, uint32_t index, struct cqe64 *cqe)
{
	cqe->op_own = (uint8_t)((cqe->op_own & ~1u) | cq_owner(cq, index));
	if (cq->attr.compression == CQ_COMPRESSED_ENHANCED)
		cqe->signature = (uint8_t)(index / cq->attr.entries);
}

static inline bool cq_has_reached(const struct cq *cq, uint32_t index)
{
	return !((cq->pi - index) & 0x800000);
}
