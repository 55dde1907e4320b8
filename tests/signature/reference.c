// SPDX-License-Identifier: BSD-2-Clause
/* See reference.h. */
#include "reference.h"

#include <string.h>

struct crc {
	unsigned width;
	uint64_t polynomial;
	bool reflected; /* and then stored with its lowest byte first */
	bool inverted;
};

static const struct crc crcs[SIGNATURES] = {
	[DIF_CRC] = {16, 0x8bb7, false, false},
	[CRC32] = {32, 0x04c11db7, false, true},
	[CRC32C] = {32, 0x1edc6f41, true, true},
	[CRC64] = {64, 0xad93d23594c93659, true, true},
};

uint32_t reference_block(enum mlx5dv_block_size size)
{
	static const uint32_t bytes[] = {
		[MLX5DV_BLOCK_SIZE_512] = 512,	 [MLX5DV_BLOCK_SIZE_520] = 520,
		[MLX5DV_BLOCK_SIZE_4048] = 4048, [MLX5DV_BLOCK_SIZE_4096] = 4096,
		[MLX5DV_BLOCK_SIZE_4160] = 4160,
	};

	return bytes[size];
}

bool reference_is_dif(enum signature type)
{
	return type == DIF_CRC || type == DIF_CSUM;
}

uint32_t reference_bytes(enum signature type)
{
	static const uint8_t bytes[SIGNATURES] = {
		[DIF_CRC] = 8, [DIF_CSUM] = 8, [CRC32] = 4, [CRC32C] = 4, [CRC64] = 8,
	};

	return bytes[type];
}

uint8_t reference_mask(enum signature type)
{
	return reference_bytes(type) == 4 ? 0xf0 : type == NO_SIGNATURE ? 0 : 0xff;
}

const char *reference_name(enum signature type)
{
	static const char *const names[SIGNATURES] = {
		"none", "T10-DIF CRC", "T10-DIF checksum", "CRC32", "CRC32C", "CRC64",
	};

	return names[type];
}

uint32_t reference_unit(const struct domain *d)
{
	return reference_block(d->size) + reference_bytes(d->type);
}

static uint64_t mirrored_bits(uint64_t value, unsigned width)
{
	uint64_t out = 0;

	for (unsigned i = 0; i < width; i++)
		out = out << 1 | (value >> i & 1);
	return out;
}

static uint64_t crc_number(const struct crc *c, bool ones, const uint8_t *data, size_t bytes)
{
	uint64_t top = 1ull << (c->width - 1);
	uint64_t all = top | (top - 1);
	uint64_t reg = ones ? all : 0;

	for (size_t i = 0; i < bytes; i++) {
		uint64_t byte = c->reflected ? mirrored_bits(data[i], 8) : data[i];

		reg ^= byte << (c->width - 8);
		for (int bit = 0; bit < 8; bit++)
			reg = (reg & top ? reg << 1 ^ c->polynomial : reg << 1) & all;
	}
	if (c->inverted)
		reg ^= all;
	return c->reflected ? mirrored_bits(reg, c->width) : reg;
}

/* RFC 1071, with the seed as what the sum begins with. */
static uint16_t t10dif_checksum(bool ones, const uint8_t *data, size_t bytes)
{
	uint64_t sum = ones ? 0xffff : 0;

	for (size_t i = 0; i < bytes; i += 2)
		sum += (uint64_t)data[i] << 8 | data[i + 1];
	while (sum > 0xffff)
		sum = (sum >> 16) + (sum & 0xffff);
	return (uint16_t)~sum;
}

uint64_t reference_number(enum signature type, bool ones, const uint8_t *data, size_t bytes)
{
	if (type == DIF_CSUM)
		return t10dif_checksum(ones, data, bytes);
	return crc_number(&crcs[type], ones, data, bytes);
}

static void put_big(uint8_t *out, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		out[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

uint32_t reference_signature(const struct domain *d, uint32_t block, const uint8_t *data,
			     uint8_t out[8])
{
	uint32_t bytes = reference_bytes(d->type);
	uint64_t number = reference_number(d->type, d->ones, data, reference_block(d->size));

	if (reference_is_dif(d->type)) {
		put_big(out, number, 2);
		put_big(out + 2, d->app, 2);
		put_big(out + 4, d->ref + (d->flags & MLX5DV_SIG_T10DIF_FLAG_REF_REMAP ? block : 0),
			4);
	} else if (crcs[d->type].reflected) {
		for (unsigned i = 0; i < bytes; i++)
			out[i] = (uint8_t)(number >> 8 * i);
	} else {
		put_big(out, number, bytes);
	}
	return bytes;
}

size_t reference_length(const struct domain *d, size_t data)
{
	if (d->type == NO_SIGNATURE)
		return data;
	return data + data / reference_block(d->size) * reference_bytes(d->type);
}

size_t reference_stream(const struct domain *d, const uint8_t *data, size_t bytes, uint8_t *out)
{
	uint32_t block = reference_block(d->size);
	size_t put = 0;
	size_t at = 0;

	if (d->type == NO_SIGNATURE) {
		memcpy(out, data, bytes);
		return bytes;
	}
	for (; bytes - at >= block; at += block) {
		memcpy(out + put, data + at, block);
		put += block;
		put += reference_signature(d, (uint32_t)(at / block), data + at, out + put);
	}
	memcpy(out + put, data + at, bytes - at);
	return put + (bytes - at);
}
