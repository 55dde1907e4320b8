// SPDX-License-Identifier: BSD-2-Clause
/*
 * The guards, one row each.  The kernels are ISA-L's.  Its crc32_ieee is the unreflected CRC-32 of
 * FC-PH (crc32_gzip_refl is the reflected one of zlib) and inverts its register on both sides;
 * crc32_iscsi does not invert.
 *
 * A copy comes first, and then the sum over the bytes where they arrived, in slices that stay in
 * the first-level cache.  That is one pass over memory, and the signature belongs to the delivered
 * bytes even if the program changes its buffer meanwhile.  Where the processor has carry-less
 * multiplication on whole vectors this is faster than ISA-L's stitched copy; elsewhere the stitched
 * one wins.
 */
#include "adapter/sig/sig.h"

#include <isa-l/crc.h>
#include <string.h>

#include "adapter/sig/checksum.h"
#include "adapter/sig/crc64_xp10.h"

/* ISA-L has no const on pointers that it only reads. */
static unsigned char *guard_unconst(const uint8_t *p)
{
	return (unsigned char *)(uintptr_t)p;
}

/*
 * ISA-L's kernels for wide multiplication return with the upper halves of vector registers in use.
 * An SSE instruction that comes after them, here or in the program, then costs a hundred times what
 * it should (Intel optimization manual, "Mixing AVX code with SSE code").
 */
static inline uint64_t guard_clean(uint64_t reg)
{
#if defined(__x86_64__)
	__asm__ volatile("vzeroupper");
#endif
	return reg;
}

/* A program may use the same memory on both sides; then the outcome is its own business. */
static inline __attribute__((always_inline)) uint64_t
copy_then(uint64_t (*update)(uint64_t reg, const uint8_t *data, size_t n), uint64_t reg,
	  uint8_t *to, const uint8_t *data, size_t n)
{
	while (n > SIG_SLICE) {
		memmove(to, data, SIG_SLICE);
		reg = update(reg, to, SIG_SLICE);
		to += SIG_SLICE;
		data += SIG_SLICE;
		n -= SIG_SLICE;
	}
	memmove(to, data, n);
	return update(reg, to, n);
}

static uint64_t t10dif_update(uint64_t reg, const uint8_t *data, size_t n)
{
	return crc16_t10dif((uint16_t)reg, data, n);
}

static uint64_t t10dif_wide(uint64_t reg, const uint8_t *data, size_t n)
{
	return guard_clean(t10dif_update(reg, data, n));
}

static uint64_t t10dif_wide_copy(uint64_t reg, uint8_t *to, const uint8_t *data, size_t n)
{
	return copy_then(t10dif_wide, reg, to, data, n);
}

static uint64_t t10dif_stitched(uint64_t reg, uint8_t *to, const uint8_t *data, size_t n)
{
	return crc16_t10dif_copy((uint16_t)reg, to, guard_unconst(data), n);
}

static uint64_t t10dif_seal(uint64_t reg)
{
	return reg << 48;
}

static uint64_t csum_copy(uint64_t reg, uint8_t *to, const uint8_t *data, size_t n)
{
	return copy_then(checksum_update, reg, to, data, n);
}

static uint64_t csum_seal(uint64_t reg)
{
	return (uint64_t)checksum_seal(reg) << 48;
}

static uint64_t crc32_update(uint64_t reg, const uint8_t *data, size_t n)
{
	return crc32_ieee((uint32_t)reg, data, n);
}

static uint64_t crc32_copy(uint64_t reg, uint8_t *to, const uint8_t *data, size_t n)
{
	return copy_then(crc32_update, reg, to, data, n);
}

static uint64_t crc32_wide(uint64_t reg, const uint8_t *data, size_t n)
{
	return guard_clean(crc32_update(reg, data, n));
}

static uint64_t crc32_wide_copy(uint64_t reg, uint8_t *to, const uint8_t *data, size_t n)
{
	return copy_then(crc32_wide, reg, to, data, n);
}

static uint64_t crc32_seal(uint64_t reg)
{
	return reg << 32;
}

static uint64_t crc32c_update(uint64_t reg, const uint8_t *data, size_t n)
{
	/* The kernel takes the length as an int. */
	while (n > SIG_BLOCK_MAX) {
		reg = crc32_iscsi(guard_unconst(data), SIG_BLOCK_MAX, (uint32_t)reg);
		data += SIG_BLOCK_MAX;
		n -= SIG_BLOCK_MAX;
	}
	return crc32_iscsi(guard_unconst(data), (int)n, (uint32_t)reg);
}

static uint64_t crc32c_copy(uint64_t reg, uint8_t *to, const uint8_t *data, size_t n)
{
	return copy_then(crc32c_update, reg, to, data, n);
}

static uint64_t crc32c_wide(uint64_t reg, const uint8_t *data, size_t n)
{
	return guard_clean(crc32c_update(reg, data, n));
}

static uint64_t crc32c_wide_copy(uint64_t reg, uint8_t *to, const uint8_t *data, size_t n)
{
	return copy_then(crc32c_wide, reg, to, data, n);
}

static uint64_t crc32c_seal(uint64_t reg)
{
	return (uint64_t)__builtin_bswap32(~(uint32_t)reg) << 32;
}

static uint64_t xp10_copy(uint64_t reg, uint8_t *to, const uint8_t *data, size_t n)
{
	return copy_then(crc64_xp10_plain, reg, to, data, n);
}

static uint64_t xp10_seal(uint64_t reg)
{
	return __builtin_bswap64(~reg);
}

#if defined(__x86_64__)
static uint64_t xp10_clmul_copy(uint64_t reg, uint8_t *to, const uint8_t *data, size_t n)
{
	return copy_then(crc64_xp10_clmul, reg, to, data, n);
}

static uint64_t xp10_wide_copy(uint64_t reg, uint8_t *to, const uint8_t *data, size_t n)
{
	return copy_then(crc64_xp10_wide, reg, to, data, n);
}
#endif

/* What carry-less multiplication the processor has. */
enum cpu { CPU_PLAIN, CPU_CLMUL, CPU_WIDE };

static enum cpu cpu_level(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq"))
		return CPU_WIDE;
	if (__builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1"))
		return CPU_CLMUL;
#endif
	return CPU_PLAIN;
}

#define T10DIF_BITS 0xffff000000000000u
#define CRC32_BITS  0xffffffff00000000u

/* Registers at the start of a block, for seed zero and seed ones: ISA-L's CRC32 is inverted. */
#define SEED_16           \
	{                 \
		0, 0xffff \
	}
#define SEED_32               \
	{                     \
		0, UINT32_MAX \
	}
#define SEED_32_INVERSE       \
	{                     \
		UINT32_MAX, 0 \
	}
#define SEED_64               \
	{                     \
		0, UINT64_MAX \
	}

/* The best row is the first of its type that the processor can execute. */
static const struct row {
	enum sig_type type;
	enum cpu needs;
	struct sig_guard guard;
} rows[] = {
	/* clang-format off */
	{SIG_T10DIF_CRC, CPU_WIDE,
	 {8, T10DIF_BITS, SEED_16, t10dif_wide, t10dif_wide_copy, t10dif_seal}},
	{SIG_T10DIF_CRC, CPU_PLAIN,
	 {8, T10DIF_BITS, SEED_16, t10dif_update, t10dif_stitched, t10dif_seal}},
	{SIG_T10DIF_CSUM, CPU_PLAIN,
	 {8, T10DIF_BITS, SEED_16, checksum_update, csum_copy, csum_seal}},
	{SIG_CRC32, CPU_WIDE,
	 {4, CRC32_BITS, SEED_32_INVERSE, crc32_wide, crc32_wide_copy, crc32_seal}},
	{SIG_CRC32, CPU_PLAIN,
	 {4, CRC32_BITS, SEED_32_INVERSE, crc32_update, crc32_copy, crc32_seal}},
	{SIG_CRC32C, CPU_WIDE,
	 {4, CRC32_BITS, SEED_32, crc32c_wide, crc32c_wide_copy, crc32c_seal}},
	{SIG_CRC32C, CPU_PLAIN,
	 {4, CRC32_BITS, SEED_32, crc32c_update, crc32c_copy, crc32c_seal}},
#if defined(__x86_64__)
	{SIG_CRC64_XP10, CPU_WIDE,
	 {8, UINT64_MAX, SEED_64, crc64_xp10_wide, xp10_wide_copy, xp10_seal}},
	{SIG_CRC64_XP10, CPU_CLMUL,
	 {8, UINT64_MAX, SEED_64, crc64_xp10_clmul, xp10_clmul_copy, xp10_seal}},
#endif
	{SIG_CRC64_XP10, CPU_PLAIN,
	 {8, UINT64_MAX, SEED_64, crc64_xp10_plain, xp10_copy, xp10_seal}},
	/* clang-format on */
};

const struct sig_guard *sig_guard_variant(enum sig_type t, unsigned which)
{
	enum cpu cpu = cpu_level();

	for (size_t i = 0; i < array_size(rows); i++)
		if (rows[i].type == t && rows[i].needs <= cpu && !which--)
			return &rows[i].guard;
	return NULL;
}

const struct sig_guard *sig_guard(enum sig_type t)
{
	return sig_guard_variant(t, 0);
}

static const struct {
	const char *name;
	uint32_t bytes;
} types[SIG_TYPES] = {
	[SIG_NONE] = {"none", 0},
	[SIG_T10DIF_CRC] = {"T10-DIF", 8},
	[SIG_T10DIF_CSUM] = {"T10-DIF with checksum", 8},
	[SIG_CRC32] = {"CRC32", 4},
	[SIG_CRC32C] = {"CRC32C", 4},
	[SIG_CRC64_XP10] = {"CRC64 XP10", 8},
};

const char *sig_type_name(enum sig_type t)
{
	return (unsigned)t < SIG_TYPES ? types[t].name : "?";
}

uint32_t sig_bytes(enum sig_type t)
{
	return (unsigned)t < SIG_TYPES ? types[t].bytes : 0;
}
