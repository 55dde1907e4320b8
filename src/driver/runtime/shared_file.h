/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that the program itself has mapped shared, from a file that a peer may open as well:
 * memfd, POSIX shared memory, files of hugetlbfs, device memory.  The file is opened to peers as it is
 * (exposure/segment.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/vma.h"
#include "exposure/segment.h"

/* The file of a mapping, and where a range begins and ends in the file. */
struct shared_range {
	uint64_t id; /* the value of hidden_id for the file */
	uint64_t offset, end;
	struct vma first; /* the mapping where it begins */
};

/* Does [addr, addr + bytes) lie in one file that is mapped shared, in the file's order?  out->first
 * is set in any case, if there is a mapping at addr. */
bool shared_file_find(uint64_t addr, uint64_t bytes, struct shared_range *out) must_check;
/* Returns a descriptor of that file, and its size; the program need not have the file open any
 * more.  Negative fd: the file cannot be opened, is one that peers do not map, or does not hold the
 * whole range. */
struct hidden shared_file_open(const struct shared_range *r, uint64_t *bytes);
