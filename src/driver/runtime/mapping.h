/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds out what a piece of the program's address space holds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/vma.h"

/* Calls look for each mapping of the process, with its flags as smaps has them, until look returns
 * false.  False: the mappings cannot be read.  This reads much. */
bool mappings_each(bool (*look)(const struct vma *v, const char *flags, void *arg), void *arg);

/* Does a userfaultfd serve some of [addr, end)?  True also if that cannot be found out.  This reads
 * much. */
bool mappings_served(uint64_t addr, uint64_t end) must_check;
