/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * T10 protection information, type 1 (SBC-3 4.22): what stands behind each block of data, on the
 *disk and on the wire, and the same check in software that the adapter makes.
 *
 *	| data, block_size bytes | guard BE16 | application tag BE16 | reference tag BE32 |
 *
 * guard is a CRC of the data, the application tag is the store's, and the reference tag is the low
 * half of the block's number, so that a good block in the wrong place is found as well.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIF_BYTES 8u

/* What all blocks of a store have in common. */
struct dif_format {
	uint32_t block_size; /* 512 or 4096 bytes of data */
	uint16_t app_tag;
};

/* The parts in the order in which they are checked; also sent over the network. */
enum dif_part { DIF_NO_ERROR, DIF_GUARD, DIF_APP_TAG, DIF_REF_TAG, DIF_PARTS };

/* The first difference found. */
struct dif_error {
	enum dif_part part;
	uint64_t block;	   /* number of the block */
	uint64_t expected; /* computed from the data, or configured */
	uint64_t actual;   /* found behind the block */
};

/* A block and what protects it. */
static inline uint32_t dif_unit(const struct dif_format *f)
{
	return f->block_size + DIF_BYTES;
}

const char *dif_part_name(enum dif_part part);
/* CRC-16/T10-DIF: polynomial 8bb7, start value 0, not reflected. */
uint16_t dif_guard(const uint8_t *data, size_t bytes);
/* Writes the protection information of block behind the data of unit. */
void dif_protect(const struct dif_format *f, uint8_t *unit, uint64_t block);
/* Checks count units, the first of which is block. */
struct dif_error dif_check(const struct dif_format *f, const uint8_t *units, uint64_t block,
			   uint64_t count);
/* Fills the data of a block with content that depends on seed and block alone. */
void dif_fill(const struct dif_format *f, uint8_t *data, uint64_t seed, uint64_t block);

/* Damage on purpose.  The part's short name is guard, app, ref, or data for DIF_NO_ERROR. */
bool dif_part_parse(const char *name, enum dif_part *part);
/* Flips a bit of the part of a unit; false if the part has fewer bits. */
bool dif_flip(const struct dif_format *f, uint8_t *unit, enum dif_part part, uint64_t bit);
