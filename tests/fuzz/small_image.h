/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device image of some hundred bytes with one of everything that the loader and the line tables look at:
 * segments, relocations, protected data, symbols, and functions that return, say something, or fault.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SMALL_IMAGE_BYTES 2048u
#define SMALL_CODE	  0x1000u /* address of the first function; code up to the end of its page */

/* Its functions, by name and by distance from SMALL_CODE. */
#define SMALL_FUNCTIONS 5u
extern const char *const small_names[SMALL_FUNCTIONS];
extern const uint32_t small_offsets[SMALL_FUNCTIONS];

void small_image_make(uint8_t file[SMALL_IMAGE_BYTES]);
