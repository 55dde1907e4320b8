/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owner's word of a slot (access.h) names the thread so that the target can look it up in
 * /proc:
 *
 *     bits  0..21  number of the thread
 *          22..43  number of its process
 *          44..55  when the process began, so that another one with that number is told apart
 *          56..62  counts the thread's claims, so that a claim is told from the one before
 *              63  the thread is in an access; only a home (access.h) has words without
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "reach/task_state.h"

#define OWNER_IN	  (1ull << 63)
#define OWNER_TASK_BITS	  22u
#define OWNER_BEGAN_SHIFT (2 * OWNER_TASK_BITS)
#define OWNER_BEGAN_BITS  12u
#define OWNER_BEGAN_MASK  ((1ull << OWNER_BEGAN_BITS) - 1)
#define OWNER_COUNT_SHIFT (OWNER_BEGAN_SHIFT + OWNER_BEGAN_BITS)
#define OWNER_COUNT_MASK  127u

static inline uint64_t owner_field(uint64_t owner, unsigned shift, unsigned bits)
{
	return owner >> shift & ((1ull << bits) - 1);
}

static inline pid_t owner_pid(uint64_t owner)
{
	return (pid_t)owner_field(owner, OWNER_TASK_BITS, OWNER_TASK_BITS);
}

static inline pid_t owner_tid(uint64_t owner)
{
	return (pid_t)owner_field(owner, 0, OWNER_TASK_BITS);
}

/* The word's process, and when it began. */
static inline uint64_t owner_process(uint64_t owner)
{
	return owner_field(owner, OWNER_TASK_BITS, OWNER_TASK_BITS + OWNER_BEGAN_BITS);
}

/* What the word's thread does.  Every word names a thread: a word of nonsense names one that has
 * ended.  Opens files.  For a thread that runs, *ran_ms says how long, see task_look. */
static inline enum task_state owner_look(uint64_t owner, uint64_t *ran_ms)
{
	return task_look(owner_pid(owner), owner_tid(owner),
			 owner_field(owner, OWNER_BEGAN_SHIFT, OWNER_BEGAN_BITS), OWNER_BEGAN_MASK,
			 ran_ms);
}
