/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A field of a PRM structure: its place and width in bits, counted from the start of the structure,
 * most significant bit first, as the PRM draws them.  A structure is a list of such places; no
 * other code shifts bits.
 *
 * The functions take one bit at a time, except for fields of whole bytes.  Commands and capability
 * pages are not on the data path, but calls into a DPA are commands.  Places are constants nearly
 * everywhere, so the compiler makes that choice.
 */
#pragma once

#include <stdint.h>

struct prm_field {
	uint16_t bit;
	uint8_t width; /* up to 64 */
};

#define PRM_FIELD(at, bits) ((struct prm_field){(at), (bits)})

static inline int prm_is_bytes(struct prm_field f)
{
	return f.bit % 8 == 0 && f.width % 8 == 0;
}

static inline uint64_t prm_get(const void *structure, struct prm_field f)
{
	const uint8_t *bytes = structure;
	uint64_t value = 0;

	if (prm_is_bytes(f)) {
		for (uint32_t i = 0; i < f.width / 8u; i++)
			value = value << 8 | bytes[f.bit / 8 + i];
		return value;
	}
	for (uint32_t at = f.bit; at < (uint32_t)f.bit + f.width; at++)
		value = value << 1 | (bytes[at / 8] >> (7 - at % 8) & 1u);
	return value;
}

static inline uint32_t prm_get32(const void *structure, struct prm_field f)
{
	return (uint32_t)prm_get(structure, f);
}

/* Stores a value, and drops its bits above the field's width. */
static inline void prm_set(void *structure, struct prm_field f, uint64_t value)
{
	uint8_t *bytes = structure;

	if (prm_is_bytes(f)) {
		for (uint32_t i = f.width / 8u; i--; value >>= 8)
			bytes[f.bit / 8 + i] = (uint8_t)value;
		return;
	}
	for (uint32_t i = 0; i < f.width; i++) {
		uint32_t at = (uint32_t)f.bit + f.width - 1u - i;
		uint8_t bit = (uint8_t)(0x80u >> at % 8);

		bytes[at / 8] =
			(uint8_t)(value >> i & 1 ? bytes[at / 8] | bit : bytes[at / 8] & ~bit);
	}
}
