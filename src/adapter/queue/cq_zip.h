/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compressed completions: of completions that differ in little, one is written as it is, the title, and of
 * the others eight bytes each.  Each takes a place of its own in the ring all the same; the places that
 * nothing is written to are the reader's to mark.  What stands together does not go past the ring's end.
 *
 *   basic     the title says how many there are with it.  Behind it stands an array of up to eight; the
 *	       array for each eighth one stands at that one's own place
 *   enhanced  the title is the last whole completion before.  Up to seven stand in the place of their first
 *	       one, whose last bytes say how many.  All that is written carries the number of the ring's
 *	       round, by which a reader knows what is new
 *
 * So completions are held back, at most until the outermost call of the device ends.  Nothing here
 * locks: the queue's lock is held.
 */
#pragma once

#include "adapter/queue/cq.h"
#include "prm/cqe.h"

#define CQ_ZIP_MOST	     64u
#define CQ_ZIP_MOST_ENHANCED 7u

struct cq_zip {
	uint8_t layout; /* enum cq_compression */
	uint8_t format; /* enum cqe_mini_format */
	bool has_title;
	bool solicited;	       /* one that waits is */
	uint16_t next_counter; /* of the next one of a receive queue */
	uint32_t most;	       /* that may wait */
	uint32_t waiting;
	struct cqe64 title, last;
	struct cqe_mini mini[CQ_ZIP_MOST];
};

/* NULL: no memory. */
struct cq_zip *cq_zip_create(uint8_t layout, uint8_t format, uint32_t entries);
/* Takes it, if it goes with what waits. */
bool cq_zip_joins(struct cq_zip *z, const struct cqe64 *cqe, bool solicited);
/* Nothing waits.  It begins something new; true: by waiting. */
bool cq_zip_begins(struct cq_zip *z, const struct cqe64 *cqe, bool solicited);
/* Writes what waits, which then waits no more; false: the ring has gone. */
bool cq_zip_write(struct cq_zip *z, const struct cq *cq);
/* The next one is written whole. */
void cq_zip_forget_title(struct cq_zip *z);
