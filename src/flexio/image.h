/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of a device program, from the symbols in its ELF file, which may be spoiled. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* Tells whether the file has a function of that name that other files could call, too. */
bool flx_symbol_is_function(const void *file, size_t bytes, const char *name);
/*
 * Finds what a variable begins with: its bytes in the file, or NULL if all of them are 0.  False:
 * the file has no such variable.
 */
bool flx_symbol_data(const void *file, size_t bytes, const char *name, const void **data,
		     size_t *n) must_check;

/* Returns the name of the function at that address, which lies in the file; NULL: there is none. */
const char *flx_symbol_at(const void *file, size_t bytes, uint64_t addr);
