/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /dev/infiniband/uio<N>: a driver's file of a PCI function that the card emulates, as the kernel's userspace I/O has
 * them (Documentation/driver-api/uio-howto.rst): the BAR is mapping 0, a read of four bytes waits for an interrupt and says
 * how many there were.
 */
#pragma once

#include "base/compiler.h"

/* As uverbs_file_open: a descriptor or negative errno. */
int uio_file_open(const char *name, int flags) must_check;
