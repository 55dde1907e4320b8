/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions, and the memory of the program that objects lie in. */
#pragma once

#include "adapter/adapter.h"
#include "driver/uverbs/objects/pd.h"
#include "exposure/segment.h"

struct umr {
	struct uobj uobj;
	struct upd *pd;
	struct mkey *mkey;
	struct mkey_attr attr;
	uint32_t dm_handle; /* the device memory under it, or 0 */
	struct uobj *icm;   /* the steering memory under it, or NULL */
	/* The file under it that peers may map; generation 0: none. */
	struct segment_ref segment;
	/* List of the regions that peers reach; NULL: it is not in the list (share.c). */
	struct umr *open_next, **open_at;
	/* List of those that peers have mapped. */
	struct umr *mapped_next, **mapped_at;
};

/*
 * Checks that the memory of the program is there, and writable if asked, and makes it resident, as
 * pinning would.  -EFAULT if it is not there, -EINVAL for an empty or wrapping range.
 */
int umem_populate(uint64_t start, uint64_t length, bool write) must_check;

/* Checks which rights may be asked for together; -EINVAL. */
int umr_check_access(uint32_t access) must_check;
/* Makes a region with a handle; the caller has checked rights and memory. */
int umr_create(struct ufile *f, struct upd *pd, const struct mkey_attr *attr,
	       struct umr **out) must_check;
