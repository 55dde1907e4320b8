/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions, and the memory of the program that objects lie in. */
#pragma once

#include "adapter/adapter.h"
#include "driver/runtime/share.h"
#include "driver/uverbs/objects/pd.h"

struct umr {
	struct uobj uobj;
	struct upd *pd;
	struct mkey *mkey;
	struct mkey_attr attr;
	uint32_t dm_handle;  /* the device memory that it lies on, or 0 */
	struct uobj *icm;    /* the memory of steering that it lies on, or NULL */
	struct share *share; /* its pages in the arena, or NULL */
	/* Among those that peers reach; NULL: it is not (share.c). */
	struct umr *open_next, **open_at;
	/* Those among them that peers have mapped. */
	struct umr *mapped_next, **mapped_at;
};

/*
 * Is the memory of the program there, and writable if asked?  Makes it resident, as pinning would.
 * -EFAULT if not, -EINVAL for an empty or wrapping range.
 */
int umem_populate(uint64_t start, uint64_t length, bool write) must_check;

/* Which rights may be asked for together; -EINVAL. */
int umr_check_access(uint32_t access) must_check;
/* A region with a handle; its rights and memory have been checked. */
int umr_create(struct ufile *f, struct upd *pd, const struct mkey_attr *attr,
	       struct umr **out) must_check;
