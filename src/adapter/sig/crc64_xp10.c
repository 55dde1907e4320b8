// SPDX-License-Identifier: BSD-2-Clause
/* The CRC-64 of XP10, without carry-less multiplication and with it. */
#include "adapter/sig/crc64_xp10.h"

#include <endian.h>
#include <string.h>

/*
 * CRC-64 without carry-less multiplication: takes eight bytes at a time, with a look-up for each
 * nibble.  All tables together are 2 KiB, so they do not drive the data out of the first-level
 * cache.
 */

static inline uint64_t byte_of(uint64_t word, unsigned at)
{
	return crc64_xp10_nibbles[2 * at][word >> 8 * at & 15] ^
	       crc64_xp10_nibbles[2 * at + 1][word >> (8 * at + 4) & 15];
}

static uint64_t word_step(uint64_t word)
{
	return byte_of(word, 0) ^ byte_of(word, 1) ^ byte_of(word, 2) ^ byte_of(word, 3) ^
	       byte_of(word, 4) ^ byte_of(word, 5) ^ byte_of(word, 6) ^ byte_of(word, 7);
}

uint64_t crc64_xp10_plain(uint64_t reg, const uint8_t *data, size_t n)
{
	for (; n >= 8; data += 8, n -= 8) {
		uint64_t word;

		memcpy(&word, data, sizeof(word));
		reg = word_step(reg ^ le64toh(word));
	}
	for (; n; data++, n--) {
		reg ^= *data;
		reg = reg >> 8 ^ crc64_xp10_nibbles[14][reg & 15] ^
		      crc64_xp10_nibbles[15][reg >> 4 & 15];
	}
	return reg;
}

const uint64_t crc64_xp10_nibbles[16][16] = {
	{
		0x0000000000000000,
		0x21e9761e252621ac,
		0x43d2ec3c4a4c4358,
		0x623b9a226f6a62f4,
		0x87a5d878949886b0,
		0xa64cae66b1bea71c,
		0xc4773444ded4c5e8,
		0xe59e425afbf2e444,
		0x3b9296a271a69e0b,
		0x1a7be0bc5480bfa7,
		0x78407a9e3beadd53,
		0x59a90c801eccfcff,
		0xbc374edae53e18bb,
		0x9dde38c4c0183917,
		0xffe5a2e6af725be3,
		0xde0cd4f88a547a4f,
	},
	{
		0x0000000000000000,
		0x77252d44e34d3c16,
		0xee4a5a89c69a782c,
		0x996f77cd25d7443a,
		0xe84d9340d5a36333,
		0x9f68be0436ee5f25,
		0x0607c9c913391b1f,
		0x7122e48df0742709,
		0xe44200d2f3d1550d,
		0x93672d96109c691b,
		0x0a085a5b354b2d21,
		0x7d2d771fd6061137,
		0x0c0f93922672363e,
		0x7b2abed6c53f0a28,
		0xe245c91be0e84e12,
		0x9560e45f03a57204,
	},
	{
		0x0000000000000000,
		0xfc5d27f6bf353971,
		0xcc6369be26fde189,
		0x303e4e4899c8d8f8,
		0xac1ff52f156c5079,
		0x5042d2d9aa596908,
		0x607c9c913391b1f0,
		0x9c21bb678ca48881,
		0x6ce6cc0d724f3399,
		0x90bbebfbcd7a0ae8,
		0xa085a5b354b2d210,
		0x5cd88245eb87eb61,
		0xc0f93922672363e0,
		0x3ca41ed4d8165a91,
		0x0c9a509c41de8269,
		0xf0c7776afeebbb18,
	},
	{
		0x0000000000000000,
		0xd9cd981ae49e6732,
		0x8742166691ab5d0f,
		0x5e8f8e7c75353a3d,
		0x3a5d0a9e7bc12975,
		0xe39092849f5f4e47,
		0xbd1f1cf8ea6a747a,
		0x64d284e20ef41348,
		0x74ba153cf78252ea,
		0xad778d26131c35d8,
		0xf3f8035a66290fe5,
		0x2a359b4082b768d7,
		0x4ee71fa28c437b9f,
		0x972a87b868dd1cad,
		0xc9a509c41de82690,
		0x106891def97641a2,
	},
	{
		0x0000000000000000,
		0xe9742a79ef04a5d4,
		0xe63172a0869ed8c3,
		0x0f4558d9699a7d17,
		0xf8bbc31255aa22ed,
		0x11cfe96bbaae8739,
		0x1e8ab1b2d334fa2e,
		0xf7fe9bcb3c305ffa,
		0xc5aea077f3c3d6b1,
		0x2cda8a0e1cc77365,
		0x239fd2d7755d0e72,
		0xcaebf8ae9a59aba6,
		0x3d156365a669f45c,
		0xd461491c496d5188,
		0xdb2411c520f72c9f,
		0x32503bbccff3894b,
	},
	{
		0x0000000000000000,
		0xbf8466bcbf103e09,
		0x4bd1eb2a26b7ef79,
		0xf4558d9699a7d170,
		0x97a3d6544d6fdef2,
		0x2827b0e8f27fe0fb,
		0xdc723d7e6bd8318b,
		0x63f65bc2d4c80f82,
		0x1b9e8afbc2482e8f,
		0xa41aec477d581086,
		0x504f61d1e4ffc1f6,
		0xefcb076d5befffff,
		0x8c3d5caf8f27f07d,
		0x33b93a133037ce74,
		0xc7ecb785a9901f04,
		0x7868d1391680210d,
	},
	{
		0x0000000000000000,
		0x373d15f784905d1e,
		0x6e7a2bef0920ba3c,
		0x59473e188db0e722,
		0xdcf457de12417478,
		0xebc9422996d12966,
		0xb28e7c311b61ce44,
		0x85b369c69ff1935a,
		0x8d3189ef7c157b9b,
		0xba0c9c18f8852685,
		0xe34ba2007535c1a7,
		0xd476b7f7f1a59cb9,
		0x51c5de316e540fe3,
		0x66f8cbc6eac452fd,
		0x3fbff5de6774b5df,
		0x0882e029e3e4e8c1,
	},
	{
		0x0000000000000000,
		0x2eba358da0bd645d,
		0x5d746b1b417ac8ba,
		0x73ce5e96e1c7ace7,
		0xbae8d63682f59174,
		0x9452e3bb2248f529,
		0xe79cbd2dc38f59ce,
		0xc92688a063323d93,
		0x41088a3e5d7cb183,
		0x6fb2bfb3fdc1d5de,
		0x1c7ce1251c067939,
		0x32c6d4a8bcbb1d64,
		0xfbe05c08df8920f7,
		0xd55a69857f3444aa,
		0xa69437139ef3e84d,
		0x882e029e3e4e8c10,
	},
	{
		0x0000000000000000,
		0x8211147cbaf96306,
		0x30fb0eaa2d655567,
		0xb2ea1ad6979c3661,
		0x61f61d545acaaace,
		0xe3e70928e033c9c8,
		0x510d13fe77afffa9,
		0xd31c0782cd569caf,
		0xc3ec3aa8b595559c,
		0x41fd2ed40f6c369a,
		0xf317340298f000fb,
		0x7106207e220963fd,
		0xa21a27fcef5fff52,
		0x200b338055a69c54,
		0x92e12956c23aaa35,
		0x10f03d2a78c3c933,
	},
	{
		0x0000000000000000,
		0xb301530233bd3853,
		0x52db80573fede3cd,
		0xe1dad3550c50db9e,
		0xa5b700ae7fdbc79a,
		0x16b653ac4c66ffc9,
		0xf76c80f940362457,
		0x446dd3fb738b1c04,
		0x7fb7270fa7201c5f,
		0xccb6740d949d240c,
		0x2d6ca75898cdff92,
		0x9e6df45aab70c7c1,
		0xda0027a1d8fbdbc5,
		0x690174a3eb46e396,
		0x88dba7f6e7163808,
		0x3bdaf4f4d4ab005b,
	},
	{
		0x0000000000000000,
		0xff6e4e1f4e4038be,
		0xca05ba6dc417e217,
		0x356bf4728a57daa9,
		0xa0d25288d0b85745,
		0x5fbc1c979ef86ffb,
		0x6ad7e8e514afb552,
		0x95b9a6fa5aef8dec,
		0x757d8342f9e73de1,
		0x8a13cd5db7a7055f,
		0xbf78392f3df0dff6,
		0x4016773073b0e748,
		0xd5afd1ca295f6aa4,
		0x2ac19fd5671f521a,
		0x1faa6ba7ed4888b3,
		0xe0c425b8a308b00d,
	},
	{
		0x0000000000000000,
		0xeafb0685f3ce7bc2,
		0xe12f2b58bf0b64ef,
		0x0bd42ddd4cc51f2d,
		0xf68770e226815ab5,
		0x1c7c7667d54f2177,
		0x17a85bba998a3e5a,
		0xfd535d3f6a444598,
		0xd9d7c79715952601,
		0x332cc112e65b5dc3,
		0x38f8eccfaa9e42ee,
		0xd203ea4a5950392c,
		0x2f50b77533147cb4,
		0xc5abb1f0c0da0776,
		0xce7f9c2d8c1f185b,
		0x24849aa87fd16399,
	},
	{
		0x0000000000000000,
		0x8776a97d73bddf69,
		0x3a3474a9bfec2db9,
		0xbd42ddd4cc51f2d0,
		0x7468e9537fd85b72,
		0xf31e402e0c65841b,
		0x4e5c9dfac03476cb,
		0xc92a3487b389a9a2,
		0xe8d1d2a6ffb0b6e4,
		0x6fa77bdb8c0d698d,
		0xd2e5a60f405c9b5d,
		0x55930f7233e14434,
		0x9cb93bf58068ed96,
		0x1bcf9288f3d532ff,
		0xa68d4f5c3f84c02f,
		0x21fbe6214c391f46,
	},
	{
		0x0000000000000000,
		0xe57a831ea7f6fea3,
		0xfe2c206e177a6e2d,
		0x1b56a370b08c908e,
		0xc881668f76634f31,
		0x2dfbe591d195b192,
		0x36ad46e16119211c,
		0xd3d7c5ffc6efdfbf,
		0xa5dbeb4db4510d09,
		0x40a1685313a7f3aa,
		0x5bf7cb23a32b6324,
		0xbe8d483d04dd9d87,
		0x6d5a8dc2c2324238,
		0x88200edc65c4bc9b,
		0x9376adacd5482c15,
		0x760c2eb272bed2b6,
	},
	{
		0x0000000000000000,
		0x7f6ef0c830358979,
		0xfedde190606b12f2,
		0x81b31158505e9b8b,
		0xc962e5739841b68f,
		0xb60c15bba8743ff6,
		0x37bf04e3f82aa47d,
		0x48d1f42bc81f2d04,
		0xa61cecb46814fe75,
		0xd9721c7c5821770c,
		0x58c10d24087fec87,
		0x27affdec384a65fe,
		0x6f7e09c7f05548fa,
		0x1010f90fc060c183,
		0x91a3e857903e5a08,
		0xeecd189fa00bd371,
	},
	{
		0x0000000000000000,
		0x78e0ff3b88be6f81,
		0xf1c1fe77117cdf02,
		0x8921014c99c2b083,
		0xd75adabd7a6e2d6f,
		0xafba2586f2d042ee,
		0x269b24ca6b12f26d,
		0x5e7bdbf1e3ac9dec,
		0x9a6c9329ac4bc9b5,
		0xe28c6c1224f5a634,
		0x6bad6d5ebd3716b7,
		0x134d926535897936,
		0x4d364994d625e4da,
		0x35d6b6af5e9b8b5b,
		0xbcf7b7e3c7593bd8,
		0xc41748d84fe75459,
	},
};

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
