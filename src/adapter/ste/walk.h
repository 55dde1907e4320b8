/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a frame through steering entries, from one to the next until an address stands for an
 * object.
 *
 * Programs write entries as they like.  So a walk reads nothing but ICM, and ends after STE_HOPS
 * entries; what it does not understand ends it, and the caller drops the frame.
 */
#pragma once

#include "adapter/ste/definer.h"
#include "adapter/ste/icm.h"
#include "adapter/ste/tag.h"

/* A chain of collisions may be long; a frame that takes this many steps goes round in circles. */
#define STE_HOPS 4096u

enum ste_verdict {
	STE_ARRIVED,
	STE_ENDLESS,
	STE_NO_ENTRY,	    /* an address at which there is none */
	STE_UNKNOWN_FORMAT, /* of an entry */
	STE_UNKNOWN_LOOKUP,
	STE_UNKNOWN_ACTION,
	STE_BAD_ACTION, /* one that the frame does not allow: it would leave no frame, or too large a one */
	STE_VERDICTS,
};

/* For the log. */
const char *ste_verdict_words(enum ste_verdict v);

struct ste_walk {
	const struct icm *icm;
	struct ste_frame *frame;
	/* An entry with a counter was hit by a frame of that length.  May be NULL. */
	void (*count)(void *user, uint32_t counter, uint32_t bytes);
	/* Headers that entries name by a number, to be put in front of frames; NULL: none has it.  May
	 * be NULL. */
	const uint8_t *(*headers)(void *user, uint32_t number, uint32_t *bytes);
	/* The definer of that number, or NULL.  May be NULL. */
	const struct ste_definer *(*definer)(void *user, uint32_t number);
	void *user;
	uint32_t what; /* of an unknown format, lookup or action: its number */
};

/* Begins at the entry of that address.  *end: the object, which is no entry. */
enum ste_verdict ste_walk(struct ste_walk *w, uint64_t address, struct steer_target *end);
