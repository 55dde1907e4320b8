/* SPDX-License-Identifier: BSD-2-Clause */
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
#pragma once

#include "adapter/queue/cq.h"
#include "prm/cqe.h"

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
