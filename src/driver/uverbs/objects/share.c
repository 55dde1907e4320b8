// SPDX-License-Identifier: BSD-2-Clause
#include "driver/uverbs/objects/share.h"

#include "base/trace.h"
#include "driver/runtime/mapping.h"
#include "driver/runtime/process.h"
#include "driver/runtime/share.h"
#include "driver/uverbs/objects/mr.h"

static bool may_be_reached(uint32_t access)
{
	return !(access & IB_ACCESS_ON_DEMAND) &&
	       access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ);
}

/* The memory in a file that peers map. */
static bool place_mapped(struct process *p, struct umr *mr, struct key_place *place)
{
	struct shared_at at;

	if (p->memory == MEMORY_KERNEL ||
	    !share_begin(p, (uintptr_t)mr->attr.addr, mr->attr.length, &at))
		return false;
	mr->share = at.share;
	*place = (struct key_place){.way = KEY_MAPPED, .segment = at.segment, .offset = at.offset};
	return true;
}

/* The memory where it is. */
static bool place_kernel(const struct umr *mr, struct key_place *place)
{
	uint64_t addr = (uintptr_t)mr->attr.addr;

	if (!mappings_prompt(addr, addr + mr->attr.length)) {
		trace(share, refused, addr, mr->attr.length, "file-may-wait");
		return false;
	}
	*place = (struct key_place){.way = KEY_KERNEL, .addr = addr};
	return true;
}

void ushare_region(const struct ufile *f, struct umr *mr)
{
	struct process *p = process_current();
	struct key_place place;

	if (!p || p->memory == MEMORY_PACKETS || mr->share || !may_be_reached(mr->attr.access))
		return;
	if (place_mapped(p, mr, &place) || place_kernel(mr, &place))
		mkey_expose(f->hca->adapter, mr->mkey, &place);
}
