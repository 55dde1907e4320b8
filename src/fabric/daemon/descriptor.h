/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that several parts of the daemon use at once: whoever is last closes.  A message that
 * waits in a queue holds those that go with it so; duplicates would need a number each just when
 * the daemon has none left.
 */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

/* One more user.  False: no memory. */
bool descriptor_hold(int fd) must_check;
/* One user less; without others it closes fd. */
void descriptor_put(int fd);
