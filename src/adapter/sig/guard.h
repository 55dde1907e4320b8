/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guards: the part of a signature that the device computes from the data.
 *
 * A guard runs in a 64-bit register: start, any number of updates cut at any byte, seal.  The
 * sealed guard is a signature word: the bytes of the signature in stream order as a big-endian
 * number; a 4-byte signature is in the upper half.  So one mask of eight bytes and one comparison
 * serve all types, and the tags of T10-DIF are or'ed into a word whose guard is at the top.
 */
#pragma once

#include "adapter/sig/domain.h"

struct sig_guard {
	uint32_t bytes;	   /* of the whole signature */
	uint64_t bits;	   /* the bits of the word that the guard takes */
	uint64_t start[2]; /* register for seed zero, seed ones */
	uint64_t (*update)(uint64_t reg, const uint8_t *data, size_t n);
	/* The same, and copies the data. */
	uint64_t (*copy)(uint64_t reg, uint8_t *to, const uint8_t *data, size_t n);
	uint64_t (*seal)(uint64_t reg);
};

/* The best guard that this processor can execute; NULL for SIG_NONE. */
const struct sig_guard *sig_guard(enum sig_type t);
/* All guards that this processor can execute, with the best one as number 0; NULL after the last.
 * For tests. */
const struct sig_guard *sig_guard_variant(enum sig_type t, unsigned which);

/* The slice is large enough to hide a call, and small enough that source and destination stay in
 * the first-level cache between two passes. */
#define SIG_SLICE 8192u
