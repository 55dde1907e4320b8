/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A run: contiguous bytes of memory.  Keys resolve addresses into lists of runs, and all code that
 * moves data takes such lists.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct run {
	void *addr;
	size_t len;
};

/* The most runs of a list that is copied as one. */
#define RUNS_MAX 64

/* A destination that drops the bytes copied to it. */
#define RUN_DISCARD ((void *)UINTPTR_MAX)

/* Walks a list of runs, some of which may be empty. */

/* A position in a run list. */
struct run_cursor {
	const struct run *run;
	uint32_t left; /* runs left, with this one */
	size_t off;    /* in the first of these */
};

/* Moves past n bytes, which the list must have, and over empty runs. */
static inline void run_cursor_advance(struct run_cursor *c, size_t n)
{
	while (c->left && n >= c->run->len - c->off) {
		n -= c->run->len - c->off;
		c->run++;
		c->left--;
		c->off = 0;
	}
	c->off += n;
}

/* How many bytes of the cursor's run are left; the list must not be at its end. */
static inline size_t run_cursor_left(const struct run_cursor *c)
{
	return c->run->len - c->off;
}

static inline void *run_cursor_at(const struct run_cursor *c)
{
	/* Discarded bytes have no address, and theirs may go past the last address. */
	return (void *)((uintptr_t)c->run->addr + c->off);
}

static inline struct run_cursor run_cursor_start(const struct run *runs, uint32_t n)
{
	struct run_cursor c = {.run = runs, .left = n};

	run_cursor_advance(&c, 0);
	return c;
}

/* How many bytes, from both positions on, lie in one run of each list. */
static inline size_t run_cursors_part(const struct run_cursor *a, const struct run_cursor *b)
{
	size_t in_a = run_cursor_left(a), in_b = run_cursor_left(b);

	return in_a < in_b ? in_a : in_b;
}
