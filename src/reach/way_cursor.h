/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks the two lists of an access together, ours and the target's, as each way has to. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/run.h"

/* A position in a list of runs. */
struct way_cursor {
	const struct run *run;
	size_t off;
};

static inline char *way_cursor_at(const struct way_cursor *c)
{
	/* The target's address is a number that may be nonsense, which a pointer must not become. */
	return (char *)((uintptr_t)c->run->addr + c->off);
}

/* n: at most what is left of the run. */
static inline void way_cursor_advance(struct way_cursor *c, size_t n)
{
	c->off += n;
	if (c->off == c->run->len) {
		c->run++;
		c->off = 0;
	}
}

/* How many bytes from here on lie in one run of either list; 0 where a run is empty. */
static inline size_t way_cursors_part(const struct way_cursor *a, const struct way_cursor *b)
{
	return min_u64(a->run->len - a->off, b->run->len - b->off);
}

static inline void way_cursors_advance(struct way_cursor *a, struct way_cursor *b, size_t n)
{
	way_cursor_advance(a, n);
	way_cursor_advance(b, n);
}
