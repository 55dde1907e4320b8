/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large mappings of ours, of which little is ever touched.  Under mlockall(MCL_FUTURE) the kernel
 * makes each new mapping resident, and would allocate pages for all that nobody uses.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Maps bytes from offset of the file shared (fd negative: private memory), outside of the program's
 * wish to have its memory locked, and of core dumps.  Nobody may touch it before the caller gives
 * it rights by mprotect.  NULL, with errno: not mapped.
 */
void *sparse_map(size_t bytes, int fd, uint64_t offset);
