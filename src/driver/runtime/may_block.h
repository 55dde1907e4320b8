/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that keeps whoever touches it waiting for another program, as long as that likes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/*
 * May a fault in [addr, addr + bytes) wait for a program?  The memory is of a file of FUSE or of
 * the network, or of one whose file system is not known; or the program serves its faults itself
 * (userfault.h); or a part of it is not there.
 */
bool memory_may_block(uint64_t addr, uint64_t bytes) must_check;

/* May files of this file system, named by its type in mountinfo, that has a device or not? */
bool file_system_may_block(const char *type, bool has_device) must_check;
