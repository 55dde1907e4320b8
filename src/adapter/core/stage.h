/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A buffer in which a message is made that goes from there to another process by system calls.
 * Each call costs as much as the copy of some ten kilobytes, so it is large, larger than stacks
 * allow: one for all threads of the adapter.  Who finds it taken does with less.
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "base/spin.h"

/* What one call of the kernel way moves at most (reach/way_call.h). */
#define STAGE_BYTES (256u << 10)
/* Bytes that lie in one line at their destination lie in one line there. */
#define STAGE_ALIGN 64u

struct stage {
	struct spin lock; /* tried, never waited for: whoever has it makes system calls */
	uint8_t *bytes;	  /* NULL: there is none */
};

/* Pages come when they are used first. */
void stage_init(struct stage *s);
void stage_release(struct stage *s);

/* NULL: another thread has it.  stage_give must follow. */
static inline must_check uint8_t *stage_take(struct stage *s)
{
	return s->bytes && spin_try(&s->lock) ? s->bytes : NULL;
}

static inline void stage_give(struct stage *s)
{
	spin_unlock(&s->lock);
}
