/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a frame through steering entries, from one to the next until an address stands for an
 * object.
 *
 * Programs write entries as they like.  So a walk reads nothing but ICM, and ends after STE_HOPS
 * entries.  What it does not understand ends it, too, and then the caller drops the frame.
 */
#pragma once

#include "adapter/ste/tag.h"
#include "adapter/ste/icm.h"

/* A chain of collisions may be long; a frame that takes this many steps goes round in circles. */
#define STE_HOPS 4096u

enum ste_verdict {
	STE_ARRIVED,
	STE_ENDLESS,
	STE_NO_ENTRY,	    /* the address has no entry */
	STE_UNKNOWN_FORMAT, /* an entry has an unknown format */
	STE_UNKNOWN_LOOKUP,
	STE_UNKNOWN_ACTION,
	/* The frame does not allow the action, which would leave no frame or one that is too
	 * large. */
	STE_BAD_ACTION,
	STE_VERDICTS,
};

/* Words for the log. */
const char *ste_verdict_words(enum ste_verdict v);

struct ste_walk {
	const struct icm *icm;
	struct ste_frame *frame;
	/* Called when a frame of that length has hit an entry with a counter.  May be NULL. */
	void (*count)(void *user, uint32_t counter, uint32_t bytes);
	/* Returns the headers that entries name by a number, to be put in front of frames; NULL:
	 * none has that number.  May be NULL. */
	const uint8_t *(*headers)(void *user, uint32_t number, uint32_t *bytes);
	/* Returns the definer with that number, or NULL.  May be NULL. */
	const struct ste_definer *(*definer)(void *user, uint32_t number);
	void *user;
	uint32_t what; /* the number of the unknown format, lookup or action */
};

/* Begins at the entry with that address.  *end: the object at the end, which is no entry. */
enum ste_verdict ste_walk(struct ste_walk *w, uint64_t address, struct steer_target *end);
