/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that the program does not know of.  It may close whatever it does not know, as
 * daemons do, and open files of its own, which then get these numbers.  So
 *
 *   - they have high numbers, out of the way of programs that count on low ones,
 *   - close(2) and its relatives do not find them (preload/fd.c asks hidden_is),
 *   - whoever uses one asks hidden_ours first: system calls that pass the C library by do close it,
 *     and then it is gone, but nothing is done to the file that has its number.
 *
 * Between hidden_ours and the use another thread may close it as it may close any descriptor that
 * a library is just using.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct hidden {
	int fd;		 /* -1: none */
	uint64_t id;	 /* of the file behind it */
	int64_t eventfd; /* which one, for all of them are one file; -1: no such, or cannot be told
			  */
};

#define HIDDEN_NONE ((struct hidden){-1, 0, -1})

/* Which file a descriptor is, the same in all processes of this system; 0: none. */
uint64_t hidden_id(int fd);
/* Takes fd over, CLOEXEC; its number may change.  Negative: none. */
struct hidden hidden_keep(int fd);
/* Is it still what it was? */
bool hidden_ours(const struct hidden *h) must_check;
/* Closes it if it is ours, and makes it none. */
void hidden_close(struct hidden *h);
/* In a forked child, which has no use for those of its parent. */
void hidden_fork_child(void);

/* ---- for those who close by number ---- */

#define HIDDEN_MAX_FDS 65536u

extern _Atomic(uint64_t) hidden_ids[HIDDEN_MAX_FDS];

bool hidden_is_slow(int fd);

static inline bool hidden_is(int fd)
{
	return fd >= 0 && (unsigned)fd < HIDDEN_MAX_FDS &&
	       unlikely(atomic_load_explicit(&hidden_ids[fd], memory_order_relaxed) != 0) &&
	       hidden_is_slow(fd);
}

/* The first from 'first' to 'last', or -1. */
int hidden_next(unsigned first, unsigned last);
