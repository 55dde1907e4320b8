// SPDX-License-Identifier: BSD-2-Clause
/* See bsf.h.  Places are bit offsets from the start, most significant bit first. */
#include "prm/bsf.h"

#include <assert.h>

#include "base/compiler.h"
#include "prm/field.h"

static const struct prm_field fields[] = {
	[BSF_SIZE] = {0, 2},	      [BSF_SAME_STRUCTURE] = {3, 1},
	[BSF_TYPE] = {6, 2},	      [BSF_CHECK_MASK] = {8, 8},
	[BSF_COPY_MASK] = {16, 8},    [BSF_WIRE_BLOCK] = {16, 8},
	[BSF_MEMORY_BLOCK] = {24, 8}, [BSF_RAW_DATA_BYTES] = {32, 32},
	[BSF_EXT_FLAGS] = {128, 32},  [BSF_EXT_EPILOGUE] = {160, 32},
};

enum {
	WIRE_INLINE = 256,
	INLINE_BITS = 128,
	WIRE_SELECTOR = 64,
	SELECTOR_BITS = 32,
	WIRE_FLAGS = 130,
	FLAGS_BITS = 4,
	WIRE_TRANSACTION = 192,
};

/* Bit places in the wire domain; those in the memory domain lie 'stride' bits further on. */
static const struct {
	struct prm_field place;
	uint8_t stride;
} domain_fields[] = {
	[BSF_FORMAT] = {{WIRE_SELECTOR, 8}, SELECTOR_BITS},
	[BSF_PSV] = {{WIRE_SELECTOR + 8, 24}, SELECTOR_BITS},
	[BSF_TRANSACTION_INIT] = {{WIRE_FLAGS, 1}, FLAGS_BITS},
	[BSF_TRANSACTION_CHECK_GEN] = {{WIRE_FLAGS + 1, 1}, FLAGS_BITS},
	[BSF_TRANSACTION_FORMAT] = {{WIRE_TRANSACTION, 8}, SELECTOR_BITS},
	[BSF_TRANSACTION_PSV] = {{WIRE_TRANSACTION + 8, 24}, SELECTOR_BITS},
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

static struct prm_field domain_place(enum bsf_domain d, enum bsf_domain_field f)
{
	struct prm_field p = domain_fields[f].place;

	p.bit = (uint16_t)(p.bit + (d == BSF_MEMORY ? domain_fields[f].stride : 0));
	return p;
}

uint32_t bsf_get(const uint8_t bsf[BSF_BYTES], enum bsf_field f)
{
	return prm_get32(bsf, fields[f]);
}

uint32_t bsf_domain_get(const uint8_t bsf[BSF_BYTES], enum bsf_domain d, enum bsf_domain_field f)
{
	return prm_get32(bsf, domain_place(d, f));
}

void bsf_set(uint8_t bsf[BSF_BYTES], enum bsf_field f, uint32_t value)
{
	prm_set(bsf, fields[f], value);
}

void bsf_domain_set(uint8_t bsf[BSF_BYTES], enum bsf_domain d, enum bsf_domain_field f,
		    uint32_t value)
{
	prm_set(bsf, domain_place(d, f), value);
}
