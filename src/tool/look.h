/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A look at another process: what it exposes, and the figures of its objects (exposure/object.h).
 * It may be stopped, or mean harm: nothing here waits for it for long, and any number may stand
 * where it says something.
 */
#pragma once

#include "exposure/expose.h"

/* The figures of an object, as read. */
struct look_object {
	bool known;
	uint64_t figures[FIGURES];
	uint32_t record[2]; /* the two words of FIGURE_RECORD */
	bool record_known;
};

/* How far the look has come. */
enum look_end {
	LOOK_CLOSED,  /* the process lays nothing open, or it may not be read */
	LOOK_HELD_UP, /* something did not let itself be read in time */
	LOOK_DONE,
};

struct look {
	struct expose_mem mem; /* a copy, */
	bool copied;	       /* if that has come to its end */
	struct look_object objects[OBJECT_ROWS];
	enum look_end end;
	int error; /* errno of why no figures of objects can be read; 0: they can */
};

/* Looks at the process in a slot for so long at most; NULL without memory.  To be given to
 * look_free. */
struct look *look_at(const struct slot *s, int milliseconds);
void look_free(struct look *l);

/* The object in that row; NULL: none, or one of which nothing can be said. */
const struct object_about *look_about(const struct look *l, uint32_t row);
