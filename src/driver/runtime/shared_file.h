/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the program itself has mapped shared, of a file that a peer may open as well: memfd,
 * POSIX shared memory, files of hugetlbfs, device memory.  The file is laid open as it is
 * (exposure/segment.h), so no page moves, whatever threads run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/vma.h"
#include "exposure/segment.h"

/* The file of a mapping, and where the first byte of a range is there. */
struct shared_range {
	uint64_t id; /* as hidden_id says it */
	uint64_t offset;
	struct vma first; /* the mapping where it begins */
};

/* Does [addr, addr + bytes) lie in one file, mapped shared and in its order?  out->first is there
 * in any case, if anything is. */
bool shared_file_find(uint64_t addr, uint64_t bytes, struct shared_range *out) must_check;
/*
 * A descriptor of that file, which the program need not have any more, and its size.  Negative fd:
 * it cannot be opened, or is none that peers map.
 */
struct hidden shared_file_open(const struct shared_range *r, uint64_t *bytes);
