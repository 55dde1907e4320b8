/* SPDX-License-Identifier: BSD-2-Clause */
/* Other pages in the place of the program's, at the same addresses and with the same content. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/*
 * Copies [addr, addr + bytes) to the file, from offset on, and maps that there; or to private memory,
 * if fd is negative.  The caller sees to it that nobody else writes there meanwhile; signals of the
 * program wait.  False: all is as it was.
 */
bool pages_replace(uint64_t addr, uint64_t bytes, int fd, uint64_t offset) must_check;
