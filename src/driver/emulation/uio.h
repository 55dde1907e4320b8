/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /dev/uio<N>: the file by which a driver uses a PCI function that the card emulates, in
 * the shape of the kernel's userspace I/O (Documentation/driver-api/uio-howto.rst): the BAR is
 * mapping 0, and a read of four bytes waits for an interrupt and says how many there were.
 */
#pragma once

#include "base/compiler.h"

/* As uverbs_file_open: a descriptor or negative errno. */
int uio_file_open(const char *name, int flags) must_check;
