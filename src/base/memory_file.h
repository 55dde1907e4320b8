/* SPDX-License-Identifier: BSD-2-Clause */
/* Our own files in memory, and large mappings of ours. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/*
 * Sets the size of our own files in memory.  They belong to the device and not to the program, so
 * the program's limit of file sizes (RLIMIT_FSIZE) must not hold for them, and they must never
 * raise its signal, which ends a process.
 */

/*
 * Gives a file its size.  Returns 0 or -errno: -EFBIG if it cannot lift the limit for the file;
 * then the log names the limit.  The process's own limit stays as it is.
 */
int memory_file_resize(int fd, uint64_t bytes) must_check;

/* Makes this text the whole content of a file.  Returns 0 or -errno. */
int memory_file_store(int fd, const char *text, size_t n) must_check;

/*
 * Makes a new file of this name, closed in exec, that holds 'n' bytes and that nobody can change
 * any more.  Returns its descriptor, -EFAULT if it cannot read the bytes, or -ENOMEM, whatever the
 * system lacks: a sender of such a message wants memory for a copy.
 */
int memory_file_message(const char *name, const void *bytes, size_t n) must_check;
/* The same for two pieces; the first may have no bytes. */
int memory_file_pieces(const char *name, const void *head, size_t nhead, const void *bytes,
		       size_t n) must_check;

/*
 * Large mappings of ours, of which threads touch little.  Under mlockall(MCL_FUTURE) the kernel
 * makes each new mapping resident and would allocate pages that nobody uses; and it maps nothing
 * beyond the limit of locked memory.
 */

/*
 * Maps bytes from offset of the file, shared (fd negative: private memory).  The program's wish to
 * have its memory locked does not cover the mapping, and no core dump holds it.  NULL, with errno:
 * not mapped.
 */
void *sparse_map(size_t bytes, int prot, int fd, uint64_t offset);
