// SPDX-License-Identifier: BSD-2-Clause
/*
 * CRC-64 by folding with carry-less multiplication (Gopal and others, "Fast CRC Computation for
 * Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009).
 *
 * Reflected: bit i of a 128-bit register stands for x^(127 - i), so its low half is the high part
 * of the polynomial, and a product of two halves comes out multiplied by x.  To move a register by
 * d bits, its low half is multiplied by x^(d + 64 - 1) and its high half by x^(d - 1), both modulo
 * the polynomial; the table has these two for each distance in bytes.
 */
#if defined(__x86_64__)

#include "adapter/sig/crc64_xp10.h"

#include <immintrin.h>

#define CLMUL __attribute__((target("pclmul,sse4.1")))
#define WIDE  __attribute__((target("pclmul,sse4.1,avx512f,vpclmulqdq")))

#define BY_16_LOW   0xeadc41fd2ba3d420u
#define BY_16_HIGH  0x21e9761e252621acu
#define BY_32_LOW   0xb0bc2e589204f500u
#define BY_32_HIGH  0xe1e0bb9d45d7a44cu
#define BY_48_LOW   0xbdd7ac0ee1a4a0f0u
#define BY_48_HIGH  0xa3ffdc1fe8e82a8bu
#define BY_64_LOW   0x0c32cdb31e18a84au
#define BY_64_HIGH  0x62242240ace5045au
#define BY_256_LOW  0x37ccd3e14069cabcu
#define BY_256_HIGH 0xa043808c0f782663u
/* floor(x^128 / polynomial) without x^64. */
#define QUOTIENT 0x13f67d194d77cfbbu

typedef long long word2 __attribute__((vector_size(16), may_alias));

CLMUL static inline __m128i pair(uint64_t low, uint64_t high)
{
	return (__m128i)(word2){(long long)low, (long long)high};
}

CLMUL static inline __m128i load(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

CLMUL static inline __m128i fold(__m128i reg, __m128i by, __m128i next)
{
	__m128i low = _mm_clmulepi64_si128(reg, by, 0x00);
	__m128i high = _mm_clmulepi64_si128(reg, by, 0x11);

	return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* word * x^64 modulo the polynomial (Barrett). */
CLMUL static inline uint64_t reduce(uint64_t word)
{
	__m128i by = pair(QUOTIENT, CRC64_XP10_REFLECTED);
	__m128i product = _mm_clmulepi64_si128(pair(word, 0), by, 0x00);
	uint64_t quotient = word ^ (uint64_t)_mm_cvtsi128_si64(product) << 1;

	product = _mm_clmulepi64_si128(pair(quotient, 0), by, 0x10);
	return (uint64_t)_mm_extract_epi64(product, 1) << 1 |
	       (uint64_t)_mm_cvtsi128_si64(product) >> 63;
}

/* reg * x^64 modulo the polynomial, which is the register after these 16 bytes. */
CLMUL static inline uint64_t finish(__m128i reg)
{
	__m128i high = _mm_clmulepi64_si128(reg, pair(BY_16_HIGH, 0), 0x00);
	uint64_t word = (uint64_t)_mm_cvtsi128_si64(high) ^ (uint64_t)_mm_extract_epi64(reg, 1);

	return reduce(word) ^ (uint64_t)_mm_extract_epi64(high, 1);
}

/* Takes the rest: folds whole 16 bytes into reg, reduces 8 bytes at once, and takes bytes by
 * table. */
CLMUL static inline uint64_t finish_with(__m128i reg, const uint8_t *data, size_t n)
{
	const __m128i by_16 = pair(BY_16_LOW, BY_16_HIGH);
	uint64_t out;

	for (; n >= 16; data += 16, n -= 16)
		reg = fold(reg, by_16, load(data));
	out = finish(reg);
	if (n >= 8) {
		out = reduce(out ^ (uint64_t)_mm_cvtsi128_si64(
					   _mm_loadl_epi64((const __m128i *)(const void *)data)));
		data += 8;
		n -= 8;
	}
	return n ? crc64_xp10_plain(out, data, n) : out;
}

CLMUL uint64_t crc64_xp10_clmul(uint64_t start, const uint8_t *data, size_t n)
{
	__m128i reg;

	if (n < 16)
		return crc64_xp10_plain(start, data, n);
	reg = _mm_xor_si128(load(data), pair(start, 0));
	data += 16;
	n -= 16;
	if (n >= 112) {
		const __m128i by_64 = pair(BY_64_LOW, BY_64_HIGH);
		__m128i second = load(data);
		__m128i third = load(data + 16);
		__m128i fourth = load(data + 32);

		data += 48;
		n -= 48;
		for (; n >= 64; data += 64, n -= 64) {
			reg = fold(reg, by_64, load(data));
			second = fold(second, by_64, load(data + 16));
			third = fold(third, by_64, load(data + 32));
			fourth = fold(fourth, by_64, load(data + 48));
		}
		fourth = fold(reg, pair(BY_48_LOW, BY_48_HIGH), fourth);
		fourth = fold(second, pair(BY_32_LOW, BY_32_HIGH), fourth);
		reg = fold(third, pair(BY_16_LOW, BY_16_HIGH), fourth);
	}
	return finish_with(reg, data, n);
}

WIDE static inline __m512i wide_load(const uint8_t *p)
{
	return _mm512_loadu_si512(p);
}

WIDE static inline __m512i wide_fold(__m512i reg, __m512i by, __m512i next)
{
	__m512i low = _mm512_clmulepi64_epi128(reg, by, 0x00);
	__m512i high = _mm512_clmulepi64_epi128(reg, by, 0x11);

	return _mm512_ternarylogic_epi64(low, high, next, 0x96); /* exclusive or of the three */
}

WIDE uint64_t crc64_xp10_wide(uint64_t start, const uint8_t *data, size_t n)
{
	const __m512i by_64 = _mm512_broadcast_i32x4(pair(BY_64_LOW, BY_64_HIGH));
	/* Moves each quarter to the place of the last one, which itself stays. */
	const __m512i together = _mm512_set_epi64(0, 0, (long long)BY_16_HIGH, (long long)BY_16_LOW,
						  (long long)BY_32_HIGH, (long long)BY_32_LOW,
						  (long long)BY_48_HIGH, (long long)BY_48_LOW);
	__m512i last;
	__m512i reg;
	__m512i sum;
	__m128i out;

	if (n < 128)
		return crc64_xp10_clmul(start, data, n);
	reg = _mm512_xor_si512(wide_load(data), _mm512_zextsi128_si512(pair(start, 0)));
	data += 64;
	n -= 64;
	if (n >= 448) {
		const __m512i by_256 = _mm512_broadcast_i32x4(pair(BY_256_LOW, BY_256_HIGH));
		__m512i second = wide_load(data);
		__m512i third = wide_load(data + 64);
		__m512i fourth = wide_load(data + 128);

		data += 192;
		n -= 192;
		for (; n >= 256; data += 256, n -= 256) {
			reg = wide_fold(reg, by_256, wide_load(data));
			second = wide_fold(second, by_256, wide_load(data + 64));
			third = wide_fold(third, by_256, wide_load(data + 128));
			fourth = wide_fold(fourth, by_256, wide_load(data + 192));
		}
		reg = wide_fold(reg, by_64, second);
		reg = wide_fold(reg, by_64, third);
		reg = wide_fold(reg, by_64, fourth);
	}
	for (; n >= 64; data += 64, n -= 64)
		reg = wide_fold(reg, by_64, wide_load(data));
	last = _mm512_maskz_mov_epi64(0xc0, reg);
	sum = wide_fold(reg, together, last);
	out = _mm_xor_si128(_mm_xor_si128(_mm512_extracti32x4_epi32(sum, 0),
					  _mm512_extracti32x4_epi32(sum, 1)),
			    _mm_xor_si128(_mm512_extracti32x4_epi32(sum, 2),
					  _mm512_extracti32x4_epi32(sum, 3)));
	return finish_with(out, data, n);
}

#endif
