/* SPDX-License-Identifier: BSD-2-Clause */
/* Strings in arrays of fixed size. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Copies src into dst[size], cut short if it must be and always with its NUL; did all of it fit? */
static inline bool text_copy(char *dst, size_t size, const char *src)
{
	int n = snprintf(dst, size, "%s", src);

	return n >= 0 && (size_t)n < size;
}

/* A decimal number from 1 to max, which is at most 2^28, and nothing else. */
static inline bool text_number(const char *s, uint32_t max, uint32_t *out)
{
	uint32_t n = 0;

	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9')
			return false;
		n = n * 10 + (uint32_t)(*s - '0');
		if (n > max)
			return false;
	}
	*out = n;
	return n > 0;
}
