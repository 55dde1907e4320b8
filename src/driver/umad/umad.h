/* SPDX-License-Identifier: BSD-2-Clause */
/* /dev/infiniband/umad<N> and issm<N> in the program: arguments, copies, blocking.  Needs no slot and
 * no engine; a file works on in a forked child. */
#pragma once

#include "base/compiler.h"

/* As uverbs_file_open: a descriptor or negative errno. */
int umad_device_open(const char *name, int flags) must_check;
/* The same; waits until nobody else holds the port's token, and may be interrupted or cancelled then. */
int issm_device_open(const char *name, int flags) must_check;
