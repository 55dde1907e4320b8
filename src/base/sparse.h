/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large mappings of ours, of which threads touch little.  Under mlockall(MCL_FUTURE) the kernel
 * makes each new mapping resident and would allocate pages that nobody uses; and it maps nothing
 * beyond the limit of locked memory.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Maps bytes from offset of the file, shared (fd negative: private memory).  The program's wish to
 * have its memory locked does not cover the mapping, and no core dump holds it.  NULL, with errno:
 * not mapped.
 */
void *sparse_map(size_t bytes, int prot, int fd, uint64_t offset);
