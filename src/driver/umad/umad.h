/* SPDX-License-Identifier: BSD-2-Clause */
/* /dev/infiniband/umad<N> and issm<N> in the program: arguments, copies, blocking.  The files need
 * no slot and no engine, and go on working in a forked child. */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

/* As uverbs_file_open: a descriptor or negative errno. */
int umad_device_open(const char *name, int flags) must_check;
/* Tells whether this is a request of umad files and the descriptor is one of theirs that came by
 * execve or from another process; then the table knows it from now on. */
bool umad_device_adopt(int fd, unsigned long request);
/*
 * The same for issm; it waits until nobody else holds the port's token, and the wait can be
 * interrupted or cancelled.
 */
int issm_device_open(const char *name, int flags) must_check;
