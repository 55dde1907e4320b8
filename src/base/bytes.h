/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads bytes that may be spoiled.  A read beyond the end returns zero or NULL, and so do all reads
 * after it, until somebody looks at `bad`.  Numbers are little-endian.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
	const uint8_t *at;
	size_t left;
	bool bad; /* a read went beyond the end */
};

static inline const uint8_t *bytes_take(struct bytes *b, uint64_t n)
{
	const uint8_t *at = b->at;

	/* A read beyond the end takes nothing.  A part of no bytes would have no place. */
	if (b->bad || !b->at || n > b->left) {
		b->bad = true;
		return NULL;
	}
	b->at += n;
	b->left -= n;
	return at;
}

/* The next n bytes as a reader of their own; empty and bad if there are not that many. */
static inline struct bytes bytes_part(struct bytes *b, uint64_t n)
{
	const uint8_t *at = bytes_take(b, n);

	return at ? (struct bytes){at, n, false} : (struct bytes){NULL, 0, true};
}

static inline uint64_t bytes_number(struct bytes *b, unsigned width)
{
	const uint8_t *at = bytes_take(b, width);
	uint64_t value = 0;

	for (unsigned i = width; at && i; i--)
		value = value << 8 | at[i - 1];
	return value;
}

/* Reads a LEB128 number, which has seven bits in each byte. */
static inline uint64_t bytes_leb(struct bytes *b, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)bytes_number(b, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !b->bad);
	if (is_signed && byte & 0x40 && shift < 64)
		value |= UINT64_MAX << shift;
	return value;
}

static inline const char *bytes_string(struct bytes *b)
{
	const uint8_t *end = b->bad || !b->left ? NULL : memchr(b->at, 0, b->left);

	if (!end) {
		b->bad = true;
		return NULL;
	}
	return (const char *)bytes_take(b, (uint64_t)(end - b->at) + 1);
}

static inline const char *bytes_string_at(struct bytes table, uint64_t offset)
{
	return bytes_take(&table, offset) ? bytes_string(&table) : NULL;
}
