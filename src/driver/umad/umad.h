/* SPDX-License-Identifier: BSD-2-Clause */
/* /dev/infiniband/umad<N> and issm<N> in the program: arguments, copies, blocking.  Needs no slot and
 * no engine; a file works on in a forked child. */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

/* As uverbs_file_open: a descriptor or negative errno. */
int umad_device_open(const char *name, int flags) must_check;
/* Is this a request of umad files, and the descriptor one of theirs that came by execve or from another
 * process?  Then it is known from now on. */
bool umad_device_adopt(int fd, unsigned long request);
/* The same; waits until nobody else holds the port's token, and may be interrupted or cancelled then. */
int issm_device_open(const char *name, int flags) must_check;
