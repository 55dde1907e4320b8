/* SPDX-License-Identifier: BSD-2-Clause */
/* A live attribute of the device tree as an open file: see cdev_open_attr. */
#pragma once

#include <sys/stat.h>

#include "base/compiler.h"

/* A descriptor, of which a read may fail, or negative errno: -ENOENT if the plain file serves.  look: see cdev_open_attr; NULL:
 * it is not tracked. */
int attr_file_open(const char *path, int flags, const struct stat *look) must_check;
/*
 * Opens it for writing.  The daemon takes the records of the stream, so any process that gets the
 * descriptor can write too.
 */
int attr_file_create(const char *path, int flags, const struct stat *look) must_check;
