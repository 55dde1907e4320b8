/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A buffer in which a message is made that goes from there to another process.  Each part costs
 * something by itself, a system call as much as the copy of some ten kilobytes, so it is large,
 * larger than stacks allow: one for all threads of the adapter.  Who finds it taken does with less.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/spin.h"

/* What one call of the kernel way moves at most (reach/way_call.h). */
#define STAGE_BYTES (256u << 10)
/* On the stack; it stays in the first cache. */
#define STAGE_SMALL_BYTES 16384u
/* Bytes that lie in one line at their destination lie in one line there. */
#define STAGE_ALIGN 64u

struct stage {
	struct spin lock; /* tried, never waited for: whoever has it may make system calls */
	uint8_t *bytes;	  /* NULL: there is none */
};

/* Pages come when they are used first. */
void stage_init(struct stage *s);
void stage_release(struct stage *s);

typedef bool stage_fn(void *user, uint8_t *stage, uint64_t bytes);
/* Has fn work with the buffer; if it is not there, or another thread has it, with one on the stack. */
bool stage_work(struct stage *s, stage_fn *fn, void *user);
/* With the one on the stack. */
bool stage_work_small(stage_fn *fn, void *user);
