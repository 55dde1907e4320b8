/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file behind a descriptor, as /proc shows it.  These are bare system calls: neither points where
 * a thread can be cancelled nor calls that the preload library takes for the program's.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/compiler.h"

/*
 * Opens the file of a descriptor of a process, or of this thread if pid is 0, once more, closed in exec.
 * Returns the new descriptor, or -1 with errno set.
 */
int descriptor_reopen(pid_t pid, int fd, int flags) must_check;
/* Gives the name of the file as readlink(2) does; fd may be AT_FDCWD. */
ssize_t descriptor_name(int fd, char *buf, size_t size) must_check;
