/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of a completion queue, for the files that implement it. */
#pragma once

#include "adapter/queue/cq.h"
#include "adapter/queue/cq_bell.h"
#include "adapter/queue/cq_wait.h"
#include "adapter/queue/cq_zip.h"
#include "prm/wqe.h"

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

/* Raises an event that nobody has to have asked for.  Call it with the lock held. */
void cq_report_unasked(struct cq *cq) __attribute__((cold));
/* Raises the event if the program has asked for what the queue now holds.  Call it only if somebody
 * wants to know, with the lock held. */
void cq_notify(struct cq *cq);
/* Runs when the period of a moderated event is over. */
void cq_event_due(struct timer *timer);
/* True if the program has asked for an event.  The caller holds the lock. */
bool cq_is_armed(const struct cq *cq);
