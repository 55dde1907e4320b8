/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory of one uverbs file: a stretch of its memfd, and the book that says who has which
 * pages.
 *
 * Both are shared with the children of a fork, which may allocate and free through the inherited
 * descriptor as they may with a kernel: device memory is the one kind of object that needs nothing
 * of the parent's process.  Hence its handles are not those of the file's table, which each process
 * has for itself, but begin above them.
 *
 * The number of allocations is a handful per program, so a search scans all of them.
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "driver/uverbs/core/object.h"

#define DM_PAGE_BYTES	4096u
#define DM_PAGES	256u /* what the mmap offsets of one command reach without a gap */
#define DM_BYTES	(DM_PAGES * DM_PAGE_BYTES)
#define DM_LOG_ALIGN	12u /* beyond a page the program's mapping decides anyway */
#define DM_HANDLE_FIRST (UOBJ_CHUNKS * UOBJ_CHUNK)

struct dm_shared;

struct dm_pool {
	struct dm_shared *shared;
	uint8_t *memory; /* DM_BYTES */
};

struct dm_info {
	uint32_t handle;
	uint32_t first_page;
	uint64_t length;
};

/* Maps DM_BYTES of fd from offset on.  -ENOMEM and the like. */
int dm_pool_open(struct dm_pool *p, int fd, uint64_t offset) must_check;
void dm_pool_close(struct dm_pool *p);

/* Cleared memory.  -EINVAL for a length of 0 or too large an alignment, -ENOMEM if none is left. */
int dm_alloc(struct dm_pool *p, uint64_t length, uint32_t log_align,
	     struct dm_info *out) must_check;
/* -ENOENT; -EBUSY while held. */
int dm_free(struct dm_pool *p, uint64_t handle) must_check;
int dm_find(struct dm_pool *p, uint64_t handle, struct dm_info *out) must_check;
/* The same, and keeps it from being freed. */
int dm_hold(struct dm_pool *p, uint64_t handle, struct dm_info *out) must_check;
void dm_release(struct dm_pool *p, uint64_t handle);
