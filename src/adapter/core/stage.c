// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/core/device.h"

#include <sys/mman.h>

#include "base/memory_file.h"

void stage_init(struct stage *s)
{
	*s = (struct stage){.bytes = sparse_map(STAGE_BYTES, PROT_READ | PROT_WRITE, -1, 0)};
}

void stage_release(struct stage *s)
{
	if (s->bytes)
		munmap(s->bytes, STAGE_BYTES);
}

/* Has a stack frame of its own, so that only its callers have the buffer on their stack. */
__attribute__((noinline)) bool stage_work_small(stage_fn *fn, void *user)
{
	_Alignas(STAGE_ALIGN) uint8_t stage[STAGE_SMALL_BYTES];

	return fn(user, stage, sizeof(stage));
}

bool stage_work(struct stage *s, stage_fn *fn, void *user)
{
	bool done;

	if (!s->bytes || !spin_try(&s->lock))
		return stage_work_small(fn, user);
	done = fn(user, s->bytes, STAGE_BYTES);
	spin_unlock(&s->lock);
	return done;
}
