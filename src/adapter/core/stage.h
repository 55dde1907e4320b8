/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A buffer in which code makes a message that goes straight to another process.  Each part of a
 * message has a cost of its own, such as a system call, which costs as much as a copy of some ten
 * kilobytes.  So the buffer is large, larger than stacks allow, and all threads of the adapter
 * share one.  A thread that finds it taken uses a smaller one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/spin.h"

/* Less than one call of the kernel way moves (reach/way_internal.h), so that it stays in the second-level cache. */
#define STAGE_BYTES (256u << 10)
/* The size of the buffer on the stack, which stays in the first-level cache. */
#define STAGE_SMALL_BYTES 16384u
/* Bytes that lie in one cache line at their destination lie in one line of the buffer, too. */
#define STAGE_ALIGN 64u

struct stage {
	struct spin lock; /* tried, never waited for: its holder may make system calls */
	uint8_t *bytes;	  /* NULL: there is no buffer */
};

/* Reserves the buffer, whose pages come when they are first used. */
void stage_init(struct stage *s);
void stage_release(struct stage *s);

typedef bool stage_fn(void *user, uint8_t *stage, uint64_t bytes);
/* Calls fn with the buffer; if there is none, or another thread has it, with one on the stack. */
bool stage_work(struct stage *s, stage_fn *fn, void *user);
/* Calls fn with a buffer on the stack. */
bool stage_work_small(stage_fn *fn, void *user);
