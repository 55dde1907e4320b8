// SPDX-License-Identifier: BSD-2-Clause
/* The CRC-32 of IEEE 802.3 without its inversions, with the last byte first. */
#include "adapter/ste/table_hash.h"

#include "base/endian.h"

/* The CRC of each nibble; the polynomial is 0xedb88320, bit-reflected. */
static const uint32_t crc_of_nibble[16] = {
	0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
	0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
	0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

static uint32_t hash_byte(uint32_t crc, uint8_t byte)
{
	crc ^= byte;
	crc = crc >> 4 ^ crc_of_nibble[crc & 0xf];
	return crc >> 4 ^ crc_of_nibble[crc & 0xf];
}

uint32_t ste_match_hash(const uint8_t tag[STE_MATCH_TAG_BYTES])
{
	uint32_t crc = 0;

	for (unsigned i = 0; i < STE_MATCH_TAG_BYTES; i++)
		crc = hash_byte(crc, tag[i]);
	return __builtin_bswap32(crc);
}

uint32_t ste_table_hash(const uint8_t tag[STE_TAG_BYTES], uint16_t byte_mask)
{
	uint32_t crc = 0;

	for (unsigned i = 0; i < STE_TAG_BYTES; i++)
		crc = hash_byte(crc, byte_mask >> (STE_TAG_BYTES - 1 - i) & 1 ? tag[i] : 0);
	return __builtin_bswap32(crc);
}
