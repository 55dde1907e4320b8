/* SPDX-License-Identifier: BSD-2-Clause */
/* Constraints and clobbers of inline assembly that name RISC-V's registers. */
#pragma once

#include <stdbool.h>

/*
 * Rewrites preprocessed C so that the compiler of this machine takes what it says of RISC-V.  All stays
 * where it is in its line.  Returns whether there was anything to rewrite.
 */
bool constraints_rewrite(const char *path);
