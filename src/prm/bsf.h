/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The byte stream format (BSF): 16, 32, 64 or 128 bytes of a UMR work request that say which
 * signature the data of a memory key carries in memory and on the wire.  It consists of a basic
 * part, an extension for transaction signatures, and an inline part for each domain.
 */
#pragma once

#include <stdint.h>

#define BSF_BYTES 64u

enum bsf_field {
	BSF_SIZE, /* of the whole BSF, enum bsf_size */
	BSF_SAME_STRUCTURE,
	BSF_TYPE, /* enum bsf_type */
	BSF_CHECK_MASK,
	BSF_COPY_MASK,	    /* if both domains have the same structure; else BSF_WIRE_BLOCK */
	BSF_WIRE_BLOCK,	    /* enum bsf_block */
	BSF_MEMORY_BLOCK,   /* of both domains, if they have the same structure */
	BSF_RAW_DATA_BYTES, /* bytes of data without signatures */
	BSF_EXT_FLAGS,	    /* in the extension, which is zero for block signatures */
	BSF_EXT_EPILOGUE,   /* bytes behind the data that the signature does not cover */
	BSF_FIELDS
};

/* Fields that each domain has once. */
enum bsf_domain_field {
	BSF_FORMAT, /* a CRC as BSF_FORMAT_*, or 0: see the inline part */
	BSF_PSV,
	BSF_TRANSACTION_INIT,	   /* the signature begins with its seed */
	BSF_TRANSACTION_CHECK_GEN, /* the signature follows on the data */
	BSF_TRANSACTION_FORMAT,	   /* BSF_FORMAT_CRC32C, perhaps with BSF_FORMAT_SEED_ZERO */
	BSF_TRANSACTION_PSV,
	BSF_INL_VALID,
	BSF_INL_REFRESH,
	BSF_INL_APP_TAG,
	BSF_INL_REF_TAG,
	BSF_INL_GUARD, /* enum bsf_guard */
	BSF_INL_REPEAT,
	BSF_INL_INVERT,
	BSF_INL_SEED_ONES,
	BSF_INL_REF_INCREMENT,
	BSF_INL_APP_REF_ESCAPE,
	BSF_INL_APP_ESCAPE,
	BSF_INL_APP_MASK,
	BSF_DOMAIN_FIELDS
};

enum bsf_domain { BSF_WIRE, BSF_MEMORY };
enum bsf_size { BSF_SIZE_BASIC, BSF_SIZE_EXTENDED, BSF_SIZE_INLINE, BSF_SIZE_WITH_CRYPTO };
enum bsf_type { BSF_TYPE_SIGNATURE, BSF_TYPE_CRYPTO };
enum bsf_guard { BSF_GUARD_CRC = 1, BSF_GUARD_CSUM = 2 };
enum bsf_block {
	BSF_BLOCK_NONE,
	BSF_BLOCK_512,
	BSF_BLOCK_520,
	BSF_BLOCK_4096,
	BSF_BLOCK_4160,
	BSF_BLOCK_1M,
	BSF_BLOCK_4048,
};

/* BSF_FORMAT holds one of the three, the repeat bit, and the bit that says that the seed is
 * zero. */
#define BSF_FORMAT_CRC32      0x20u
#define BSF_FORMAT_CRC32C     0x40u
#define BSF_FORMAT_CRC64_XP10 0x50u
#define BSF_FORMAT_REPEAT     0x02u
#define BSF_FORMAT_SEED_ZERO  0x01u

/* The bits of BSF_EXT_FLAGS that BSF_TRANSACTION_INIT and BSF_TRANSACTION_CHECK_GEN name; bits 23:0
 * count the bytes of a prologue. */
#define BSF_EXT_INIT_CHECK_GEN 0x33000000u

uint32_t bsf_get(const uint8_t bsf[BSF_BYTES], enum bsf_field f);
uint32_t bsf_domain_get(const uint8_t bsf[BSF_BYTES], enum bsf_domain d, enum bsf_domain_field f);
/* For code that writes a BSF.  They drop bits above the field's width. */
void bsf_set(uint8_t bsf[BSF_BYTES], enum bsf_field f, uint32_t value);
void bsf_domain_set(uint8_t bsf[BSF_BYTES], enum bsf_domain d, enum bsf_domain_field f,
		    uint32_t value);
