/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How code copies memory that a program looks at meanwhile: aligned words of 2, 4 and 8 bytes
 * change at once, and the last of them changes last.  Code that copies takes the memory in these
 * pieces, and touches each with the alignment that it has.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define WORD_BYTES 8u

/* How many bytes in front of that address lie in the aligned word that it ends or lies in. */
static inline size_t word_tail(uintptr_t end)
{
	return (size_t)((end - 1) % WORD_BYTES) + 1;
}

/*
 * How many of the n bytes from that address on form the next piece: 1, 2 or 4 bytes in front of the
 * first aligned word and behind the last; in between all whole words.  last_apart: the last word is
 * a piece of its own, because it has to change last.
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
 * True if a string instruction ("rep movsb") could cut words.  If the destination lies a few bytes
 * behind the source, it overlaps what the instruction has still to read, so the processor copies
 * byte by byte.  Processors compare only the lowest twelve bits of the addresses.  AMD's family 25
 * does so up to 15 bytes; others may up to a cache line.  The kernel's copies use other addresses
 * of the same memory, with the same lowest bits.
 */
static inline bool words_alias(const void *dst, const void *src)
{
	return ((uintptr_t)dst - (uintptr_t)src - 1) % 4096 < 63;
}
