// SPDX-License-Identifier: BSD-2-Clause
#include "driver/uverbs/objects/share.h"

#include "driver/runtime/process.h"
#include "driver/runtime/share.h"
#include "driver/uverbs/objects/mr.h"

static bool may_be_reached(uint32_t access)
{
	return !(access & IB_ACCESS_ON_DEMAND) &&
	       access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ);
}

void ushare_region(const struct ufile *f, struct umr *mr)
{
	struct process *p = process_current();
	struct shared_at at;

	if (!p || mr->share || !may_be_reached(mr->attr.access))
		return;
	if (!share_begin(p, (uintptr_t)mr->attr.addr, mr->attr.length, &at))
		return;
	mr->share = at.share;
	mkey_expose(f->hca->adapter, mr->mkey, &at.segment, at.offset);
}
