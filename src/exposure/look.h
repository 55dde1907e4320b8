/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A look at another process: what it exposes, and the figures of its objects (exposure/object.h).
 * That process may be stopped, or mean harm: nothing here waits for it for long, and any number may
 * be in what it says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exposure/expose.h"

/* The figures of an object, as read. */
struct look_object {
	bool known;
	uint64_t figures[FIGURES];
	uint32_t record[2]; /* both words of FIGURE_RECORD */
	bool record_known;
};

/* How far the look got. */
enum look_end {
	LOOK_CLOSED,  /* the process lays nothing open, or it may not be read */
	LOOK_HELD_UP, /* something could not be read in time */
	LOOK_DONE,
};

struct look {
	struct expose_mem mem; /* a copy, */
	bool copied;	       /* whether the copy is complete */
	struct look_object objects[OBJECT_ROWS];
	enum look_end end;
	int error; /* errno that says why no figures can be read; 0: they can */
};

/* Looks at the process in a slot for at most 'milliseconds'; NULL: no memory.  look_free frees the
 * result. */
struct look *look_at(const struct slot *s, int milliseconds);
void look_free(struct look *l);

/* Returns the object in that row; NULL: there is none, or nothing can be said of it. */
const struct object_about *look_about(const struct look *l, uint32_t row);

/* ---- what a copy of an exposure says ---- */

#define LOOK_KEYS (2 * EXPOSE_BLOCKS)

/* Returns the key in a block; NULL: there is none, or it is changing. */
const struct key_block *look_key_block(const struct expose_mem *m, uint32_t i);
/* Gives key i, below LOOK_KEYS, with way and reason; false: there is none. */
bool look_key(const struct expose_mem *m, uint32_t i, struct key_block *out);
/* Returns the block of a queue pair; NULL: it has none. */
const struct qp_block *look_qp_block(const struct expose_mem *m, uint32_t qpn);
/*
 * Gives the PSN that a queue pair expects next, if its peer counts it, too; false: only the queue
 * pair knows.
 */
bool look_expected_psn(const struct expose_mem *m, uint32_t qpn, uint32_t *psn);
