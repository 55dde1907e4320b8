/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CRC-64 of Microsoft's XP10 and of NVMe, which the installed ISA-L lacks: polynomial
 * ad93d23594c93659, reflected.  The register is bare: the caller presets and inverts it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The polynomial without x^64, bits reversed. */
#define CRC64_XP10_REFLECTED 0x9a6c9329ac4bc9b5u

/* What a 64-bit word adds to the register 64 steps later, by nibble, lowest first. */
extern const uint64_t crc64_xp10_nibbles[16][16];

uint64_t crc64_xp10_plain(uint64_t reg, const uint8_t *data, size_t n);
#if defined(__x86_64__)
/* Both need pclmul and sse4.1; crc64_xp10_wide needs avx512f and vpclmulqdq as well. */
uint64_t crc64_xp10_clmul(uint64_t start, const uint8_t *data, size_t n);
uint64_t crc64_xp10_wide(uint64_t start, const uint8_t *data, size_t n);
#endif
