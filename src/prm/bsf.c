// SPDX-License-Identifier: BSD-2-Clause
/* See bsf.h.  Places are bit offsets from the start, most significant bit first. */
#include "prm/bsf.h"

#include <assert.h>

#include "base/compiler.h"

struct place {
	uint16_t bit;
	uint8_t width; /* up to 32 */
};

static const struct place fields[] = {
	[BSF_SIZE] = {0, 2},	      [BSF_SAME_STRUCTURE] = {3, 1},
	[BSF_TYPE] = {6, 2},	      [BSF_CHECK_MASK] = {8, 8},
	[BSF_COPY_MASK] = {16, 8},    [BSF_WIRE_BLOCK] = {16, 8},
	[BSF_MEMORY_BLOCK] = {24, 8}, [BSF_RAW_DATA_BYTES] = {32, 32},
	[BSF_EXT_INIT] = {128, 32},   [BSF_EXT_EPILOGUE] = {160, 32},
	[BSF_EXT_WIRE] = {192, 32},   [BSF_EXT_MEMORY] = {224, 32},
};

enum { WIRE_INLINE = 256, INLINE_BITS = 128, WIRE_SELECTOR = 64, SELECTOR_BITS = 32 };

/* Of the wire; the memory domain's lies further on by stride. */
static const struct {
	struct place place;
	uint8_t stride;
} domain_fields[] = {
	[BSF_FORMAT] = {{WIRE_SELECTOR, 8}, SELECTOR_BITS},
	[BSF_PSV] = {{WIRE_SELECTOR + 8, 24}, SELECTOR_BITS},
	[BSF_INL_VALID] = {{WIRE_INLINE, 1}, INLINE_BITS},
	[BSF_INL_REFRESH] = {{WIRE_INLINE + 1, 1}, INLINE_BITS},
	[BSF_INL_APP_TAG] = {{WIRE_INLINE + 16, 16}, INLINE_BITS},
	[BSF_INL_REF_TAG] = {{WIRE_INLINE + 32, 32}, INLINE_BITS},
	[BSF_INL_GUARD] = {{WIRE_INLINE + 64, 8}, INLINE_BITS},
	[BSF_INL_REPEAT] = {{WIRE_INLINE + 72, 1}, INLINE_BITS},
	[BSF_INL_INVERT] = {{WIRE_INLINE + 73, 3}, INLINE_BITS},
	[BSF_INL_SEED_ONES] = {{WIRE_INLINE + 76, 1}, INLINE_BITS},
	[BSF_INL_REF_INCREMENT] = {{WIRE_INLINE + 105, 1}, INLINE_BITS},
	[BSF_INL_APP_REF_ESCAPE] = {{WIRE_INLINE + 110, 1}, INLINE_BITS},
	[BSF_INL_APP_ESCAPE] = {{WIRE_INLINE + 111, 1}, INLINE_BITS},
	[BSF_INL_APP_MASK] = {{WIRE_INLINE + 112, 16}, INLINE_BITS},
};

static_assert(array_size(fields) == BSF_FIELDS, "a place for each field");
static_assert(array_size(domain_fields) == BSF_DOMAIN_FIELDS, "a place for each field");

static struct place domain_place(enum bsf_domain d, enum bsf_domain_field f)
{
	struct place p = domain_fields[f].place;

	p.bit = (uint16_t)(p.bit + (d == BSF_MEMORY ? domain_fields[f].stride : 0));
	return p;
}

static uint32_t get(const uint8_t *bsf, struct place p)
{
	uint32_t value = 0;

	for (unsigned at = p.bit; at < p.bit + (unsigned)p.width; at++)
		value = value << 1 | (bsf[at / 8] >> (7 - at % 8) & 1u);
	return value;
}

static void set(uint8_t *bsf, struct place p, uint32_t value)
{
	for (unsigned i = 0; i < p.width; i++) {
		unsigned at = p.bit + p.width - 1u - i;
		uint8_t bit = (uint8_t)(0x80u >> at % 8);

		bsf[at / 8] = (uint8_t)(value >> i & 1 ? bsf[at / 8] | bit : bsf[at / 8] & ~bit);
	}
}

uint32_t bsf_get(const uint8_t bsf[BSF_BYTES], enum bsf_field f)
{
	return get(bsf, fields[f]);
}

uint32_t bsf_domain_get(const uint8_t bsf[BSF_BYTES], enum bsf_domain d, enum bsf_domain_field f)
{
	return get(bsf, domain_place(d, f));
}

void bsf_set(uint8_t bsf[BSF_BYTES], enum bsf_field f, uint32_t value)
{
	set(bsf, fields[f], value);
}

void bsf_domain_set(uint8_t bsf[BSF_BYTES], enum bsf_domain d, enum bsf_domain_field f,
		    uint32_t value)
{
	set(bsf, domain_place(d, f), value);
}
