/* SPDX-License-Identifier: BSD-2-Clause */
/* What a piece of the program's address space holds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/vma.h"

/* All mappings that overlap [addr, end) satisfy ok, and they leave no gap. */
bool mappings_all(uint64_t addr, uint64_t end, bool (*ok)(const struct vma *v, const void *arg),
		  const void *arg) must_check;

/*
 * All of [addr, end) is memory as mmap or the heap gives it: private, of no file, and nothing else
 * is asked of it.  Locks (mlock), advice (madvise), policies (mbind) and protection keys belong to
 * the mapping and would not come along if other pages were put in its place.  Reads much.
 */
bool mappings_plain(uint64_t addr, uint64_t end) must_check;

/* Calls look for each mapping of the process, with its flags as smaps has them, until it says no.
 * False: they cannot be read.  Reads much. */
bool mappings_each(bool (*look)(const struct vma *v, const char *flags, void *arg), void *arg);

/* Some of [addr, end) is served by a userfaultfd, or that cannot be found out.  Reads much. */
bool mappings_served(uint64_t addr, uint64_t end) must_check;
