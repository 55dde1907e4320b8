/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds memory at which a thread that touches it waits for another program, for as long as that
 * program likes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/*
 * May a fault in [addr, addr + bytes) wait for a program?  It may if the memory belongs to a file
 * of FUSE or of the network, or to a file on an unknown file system; if the program serves its
 * faults itself (userfault.h); or if a part of it is not there.
 */
bool memory_may_block(uint64_t addr, uint64_t bytes) must_check;

/* May a fault in a file of this file system do so?  type: its type in mountinfo; has_device: it
 * lies on a device. */
bool file_system_may_block(const char *type, bool has_device) must_check;
