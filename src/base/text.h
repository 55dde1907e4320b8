/* SPDX-License-Identifier: BSD-2-Clause */
/* Strings in arrays of fixed size. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Copies src into dst[size], cut short if it must be and always with its NUL; did all of it fit? */
static inline bool text_copy(char *dst, size_t size, const char *src)
{
	int n = snprintf(dst, size, "%s", src);

	return n >= 0 && (size_t)n < size;
}
