/* SPDX-License-Identifier: BSD-2-Clause */
/* Strings in arrays of fixed size. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Copies src into dst[size], always with a NUL, and cuts it short if it is too long.  False: it was
 * cut. */
static inline bool text_copy(char *dst, size_t size, const char *src)
{
	int n = snprintf(dst, size, "%s", src);

	return n >= 0 && (size_t)n < size;
}

/* What stands behind the last slash of a path; the whole path if it has none. */
static inline const char *text_file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The two entries that each directory has for itself and its parent. */
static inline bool text_is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Parses a decimal number from 1 to max (at most 2^28) with nothing around it. */
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
