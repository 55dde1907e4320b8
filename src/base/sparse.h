/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large mappings of ours, of which little is ever touched.  Under mlockall(MCL_FUTURE) the kernel
 * makes each new mapping resident, and would allocate pages for all that nobody uses; and it maps
 * nothing beyond the limit of locked memory.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Maps bytes from offset of the file shared (fd negative: private memory), outside of the program's
 * wish to have its memory locked, and of core dumps.  NULL, with errno: not mapped.
 */
void *sparse_map(size_t bytes, int prot, int fd, uint64_t offset);
