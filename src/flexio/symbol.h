/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of a device program, from the symbols in its ELF file, which may be spoiled. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Tells whether the file has a function of that name that other files could call, too. */
bool flx_symbol_is_function(const void *file, size_t bytes, const char *name);
