/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that several parts of the daemon use at once; the last user closes them.  A message
 * that waits in a queue holds its descriptors in this way.  Duplicates would need more numbers,
 * just when the daemon has none left.
 */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

/* Adds a user.  False: no memory. */
bool descriptor_hold(int fd) must_check;
/* Takes a user away; after the last it closes fd. */
void descriptor_put(int fd);
