/* SPDX-License-Identifier: BSD-2-Clause */
/* A live attribute of the device tree as an open file: see cdev_open_attr. */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

/* A descriptor, or negative errno: -ENOENT if the plain file serves. */
int attr_file_open(const char *path, int flags, bool tracked) must_check;
/*
 * Opens it for writing.  The daemon takes the records of the stream, so any process that gets the
 * descriptor can write too.
 */
int attr_file_create(const char *path, int flags) must_check;
