/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces pages of the program by others, at the same addresses and with the same content. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/*
 * Copies [addr, addr + bytes) to the file, from offset on, or to private memory if fd is negative,
 * and maps the copy in place of the original.  The caller makes sure that nobody else writes there
 * meanwhile; signals of the program wait.  False: nothing has changed.
 */
bool pages_replace(uint64_t addr, uint64_t bytes, int fd, uint64_t offset) must_check;
