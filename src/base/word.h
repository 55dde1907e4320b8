/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How memory is copied that a program looks at meanwhile: aligned words of 2, 4 and 8 bytes change
 * at once, and the last of them last.  Whoever copies it, takes it in these pieces, each by touches
 * that are aligned as it is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define WORD_BYTES 8u

/* How many bytes in front of that address lie in the aligned word that ends there or goes on. */
static inline size_t word_tail(uintptr_t end)
{
	return (size_t)((end - 1) % WORD_BYTES) + 1;
}

/*
 * How many of the n bytes from that address on are the next piece: 1, 2 or 4 in front of the first
 * aligned word and behind the last, in between whole words in one piece.  last_apart: the last word
 * is a piece of its own, because it has to change last.
 */
static inline size_t word_piece(uintptr_t at, size_t n, bool last_apart)
{
	size_t part = (size_t)(at & -at & (WORD_BYTES - 1));

	if (likely(!part && n >= WORD_BYTES)) {
		if (last_apart && n > WORD_BYTES)
			return n - word_tail(n);
		return n - n % WORD_BYTES;
	}
	if (!part)
		part = WORD_BYTES / 2;
	while (part > n)
		part /= 2;
	return part;
}

/*
 * Would a string instruction ("rep movsb") cut words?  If the destination lies a few bytes behind
 * the source it overlaps what is still to be read, so it copies byte by byte.  Processors compare the
 * lowest twelve bits of the addresses alone: AMD's family 25 does so up to 15 bytes; a cache line is
 * what others may.  The kernel's copies have its own addresses, with the same lowest bits.
 */
static inline bool words_alias(const void *dst, const void *src)
{
	return ((uintptr_t)dst - (uintptr_t)src - 1) % 4096 < 63;
}
