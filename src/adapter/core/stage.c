// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/core/stage.h"

#include <sys/mman.h>

#include "base/sparse.h"

void stage_init(struct stage *s)
{
	*s = (struct stage){.bytes = sparse_map(STAGE_BYTES, PROT_READ | PROT_WRITE, -1, 0)};
}

void stage_release(struct stage *s)
{
	if (s->bytes)
		munmap(s->bytes, STAGE_BYTES);
}
