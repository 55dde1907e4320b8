/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that a program names in a system call.  Where the kernel answers EFAULT for an address that
 * cannot be read, we must not read it ourselves.  These functions ask the kernel, which needs no
 * signal handler: most processes never open a device and have none of ours.
 */
#pragma once

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/compiler.h"

/* The smallest page: whether a byte can be read is the same for all bytes of a page. */
#define PROGRAM_PAGE 4096u

/* False: some of it cannot be read.  Where process_vm_readv is forbidden (a filter of seccomp), the
 * address is trusted.  Keeps errno. */
static inline bool must_check program_read(void *to, const void *from, size_t n)
{
	struct iovec ours = {to, n}, theirs = {(void *)(uintptr_t)from, n};
	int saved_errno = errno;
	ssize_t moved = process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0);
	bool forbidden = moved < 0 && errno != EFAULT;

	errno = saved_errno;
	if (forbidden)
		memcpy(to, from, n);
	return forbidden || moved == (ssize_t)n;
}

/* Can this be read up to its end, and is it short enough for a path? */
static inline bool must_check program_path_is_valid(const char *path)
{
	size_t len = 0;

	while (len < PATH_MAX) {
		size_t in_page = PROGRAM_PAGE - ((uintptr_t)path + len) % PROGRAM_PAGE, n;
		char first;

		if (!program_read(&first, path + len, 1))
			return false;
		n = strnlen(path + len, in_page);
		len += n;
		if (n < in_page)
			return len < PATH_MAX;
	}
	return false;
}
