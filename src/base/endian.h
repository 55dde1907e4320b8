/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Big-endian storage types.  A be32 cannot be used as a number by accident:
 * it is a struct, and only be32_get() and be32() cross the border.
 */
#pragma once

#include <endian.h>
#include <stdint.h>

typedef struct {
	uint16_t raw;
} be16;

typedef struct {
	uint32_t raw;
} be32;

typedef struct {
	uint64_t raw;
} be64;

static inline uint16_t be16_get(be16 v)
{
	return be16toh(v.raw);
}

static inline uint32_t be32_get(be32 v)
{
	return be32toh(v.raw);
}

static inline uint64_t be64_get(be64 v)
{
	return be64toh(v.raw);
}

/* The 64-bit word whose halves stand in memory in this order. */
static inline uint64_t word_of(be32 first, be32 second)
{
#if __BYTE_ORDER == __LITTLE_ENDIAN
	return first.raw | (uint64_t)second.raw << 32;
#else
	return (uint64_t)first.raw << 32 | second.raw;
#endif
}

static inline be16 be16_of(uint16_t v)
{
	return (be16){htobe16(v)};
}

static inline be32 be32_of(uint32_t v)
{
	return (be32){htobe32(v)};
}

static inline be64 be64_of(uint64_t v)
{
	return (be64){htobe64(v)};
}
