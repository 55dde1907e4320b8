// SPDX-License-Identifier: BSD-2-Clause
#include "driver/uverbs/objects/share.h"

#include "base/trace.h"
#include "driver/runtime/mapping.h"
#include "driver/runtime/process.h"
#include "driver/runtime/share.h"
#include "driver/uverbs/objects/mr.h"

static bool may_be_reached(uint32_t access)
{
	return access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ);
}

/* The memory in a file that peers map. */
static bool place_mapped(struct process *p, struct umr *mr, struct key_place *place)
{
	struct shared_at at;

	if (p->memory == MEMORY_KERNEL ||
	    !share_begin(p, (uintptr_t)mr->attr.addr, mr->attr.length, &at))
		return false;
	mr->share = at.share;
	*place = (struct key_place){.way = KEY_MAPPED,
				    .why = at.moved ? KEY_WHY_MOVED : KEY_WHY_SHARED,
				    .segment = at.segment,
				    .offset = at.offset};
	return true;
}

/* The memory where it is; else the place says why not. */
static void place_kernel(const struct umr *mr, struct key_place *place)
{
	uint64_t addr = (uintptr_t)mr->attr.addr;

	if (mappings_prompt(addr, addr + mr->attr.length)) {
		*place =
			(struct key_place){.way = KEY_KERNEL, .why = KEY_WHY_PRIVATE, .addr = addr};
		return;
	}
	trace(share, refused, addr, mr->attr.length, "file-may-wait");
	place->why = KEY_WHY_MAY_WAIT;
}

void ushare_region(const struct ufile *f, struct umr *mr)
{
	struct process *p = process_current();
	struct key_place place = {.way = KEY_PACKETS, .why = KEY_WHY_ON_DEMAND};

	if (!p || p->memory == MEMORY_PACKETS || mr->share || !may_be_reached(mr->attr.access))
		return;
	if (!(mr->attr.access & IB_ACCESS_ON_DEMAND) && !place_mapped(p, mr, &place))
		place_kernel(mr, &place);
	mkey_expose(f->hca->adapter, mr->mkey, &place);
}
