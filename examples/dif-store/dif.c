/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection information in software; see dif.h. */
#include "dif.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x8bb7u

struct dif_field {
	uint16_t guard, app_tag;
	uint32_t ref_tag;
};
_Static_assert(sizeof(struct dif_field) == DIF_BYTES, "the field has no holes");

static uint16_t crc_of_byte[256];
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

static void crc_prepare(void)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		unsigned crc = byte << 8;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 0x8000 ? crc << 1 ^ POLYNOMIAL : crc << 1;
		crc_of_byte[byte] = (uint16_t)crc;
	}
}

uint16_t dif_guard(const uint8_t *data, size_t bytes)
{
	uint16_t crc = 0;

	pthread_once(&crc_once, crc_prepare);
	for (size_t i = 0; i < bytes; i++)
		crc = (uint16_t)(crc << 8 ^ crc_of_byte[crc >> 8 ^ data[i]]);
	return crc;
}

const char *dif_part_name(enum dif_part part)
{
	static const char *const names[DIF_PARTS] = {
		[DIF_NO_ERROR] = "no error",
		[DIF_GUARD] = "guard",
		[DIF_APP_TAG] = "application tag",
		[DIF_REF_TAG] = "reference tag",
	};

	return (unsigned)part < DIF_PARTS ? names[part] : "unknown part";
}

void dif_protect(const struct dif_format *f, uint8_t *unit, uint64_t block)
{
	struct dif_field field = {
		.guard = htobe16(dif_guard(unit, f->block_size)),
		.app_tag = htobe16(f->app_tag),
		.ref_tag = htobe32((uint32_t)block),
	};

	memcpy(unit + f->block_size, &field, sizeof(field));
}

static struct dif_error check_unit(const struct dif_format *f, const uint8_t *unit, uint64_t block)
{
	struct dif_error error = {.part = DIF_NO_ERROR, .block = block};
	struct dif_field found;

	memcpy(&found, unit + f->block_size, sizeof(found));
	const struct {
		enum dif_part part;
		uint32_t expected, actual;
	} parts[] = {
		{DIF_GUARD, dif_guard(unit, f->block_size), be16toh(found.guard)},
		{DIF_APP_TAG, f->app_tag, be16toh(found.app_tag)},
		{DIF_REF_TAG, (uint32_t)block, be32toh(found.ref_tag)},
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i].expected == parts[i].actual)
			continue;
		error.part = parts[i].part;
		error.expected = parts[i].expected;
		error.actual = parts[i].actual;
		break;
	}
	return error;
}

struct dif_error dif_check(const struct dif_format *f, const uint8_t *units, uint64_t block,
			   uint64_t count)
{
	struct dif_error error = {.part = DIF_NO_ERROR};

	for (uint64_t i = 0; i < count && error.part == DIF_NO_ERROR; i++)
		error = check_unit(f, units + i * dif_unit(f), block + i);
	return error;
}

void dif_fill(const struct dif_format *f, uint8_t *data, uint64_t seed, uint64_t block)
{
	/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014) */
	uint64_t state = seed * 0x2545f4914f6cdd1dULL + block * 0x100000001b3ULL;

	for (uint32_t at = 0; at < f->block_size; at += sizeof(state)) {
		uint64_t z = state += 0x9e3779b97f4a7c15ULL;

		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
		z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
		z = htole64(z ^ z >> 31);
		memcpy(data + at, &z, sizeof(z));
	}
}

bool dif_part_parse(const char *name, enum dif_part *part)
{
	static const char *const names[DIF_PARTS] = {
		[DIF_NO_ERROR] = "data",
		[DIF_GUARD] = "guard",
		[DIF_APP_TAG] = "app",
		[DIF_REF_TAG] = "ref",
	};

	for (unsigned i = 0; i < DIF_PARTS; i++) {
		if (strcmp(name, names[i]) == 0) {
			*part = (enum dif_part)i;
			return true;
		}
	}
	return false;
}

bool dif_flip(const struct dif_format *f, uint8_t *unit, enum dif_part part, uint64_t bit)
{
	const struct {
		uint32_t at, bytes;
	} extents[DIF_PARTS] = {
		[DIF_NO_ERROR] = {0, f->block_size},
		[DIF_GUARD] = {f->block_size + offsetof(struct dif_field, guard), 2},
		[DIF_APP_TAG] = {f->block_size + offsetof(struct dif_field, app_tag), 2},
		[DIF_REF_TAG] = {f->block_size + offsetof(struct dif_field, ref_tag), 4},
	};

	if (bit / 8 >= extents[part].bytes)
		return false;
	unit[extents[part].at + bit / 8] ^= (uint8_t)(1u << bit % 8);
	return true;
}
