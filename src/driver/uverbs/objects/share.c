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
	int64_t offset;

	if (!p || mr->share || mr->dm_handle || !may_be_reached(mr->attr.access))
		return;
	offset = share_begin(p, (uintptr_t)mr->attr.addr, mr->attr.length, &mr->share);
	if (offset >= 0)
		mkey_expose(f->hca->adapter, mr->mkey, (uint64_t)offset);
}
