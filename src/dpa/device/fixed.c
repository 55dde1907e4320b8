// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fixed-point functions of dpaintrin.h: numbers of 32 bits with 16 bits of fraction.  They cut
 * results instead of rounding; for a result that is too large they return the largest number.
 */
#include "dpa/device/image.h"

#include <dpaintrin.h>

#define ONE (1u << 16)

/* 2^(1/2), 2^(1/4), ... 2^(1/65536), with 63 bits of fraction: one for each bit of a fraction. */
static const uint64_t fraction_powers[16] = {
	0xb504f333f9de6484ull, 0x9837f0518db8a96full, 0x8b95c1e3ea8bd6e7ull, 0x85aac367cc487b15ull,
	0x82cd8698ac2ba1d7ull, 0x8164d1f3bc030773ull, 0x80b1ed4fd999ab6cull, 0x8058d7d2d5e5f6b1ull,
	0x802c6436d0e04f51ull, 0x8016302f17467628ull, 0x800b179c82028fd1ull, 0x80058baf7fee3b5dull,
	0x8002c5d00fdcfcb7ull, 0x800162e61bed4a49ull, 0x8000b17292f702a4ull, 0x800058b92abbae02ull,
};

uint32_t __dpa_fxp_rcp(uint32_t n)
{
	uint64_t one = (uint64_t)ONE * ONE;

	return n > 1 ? (uint32_t)(one / n) : UINT32_MAX;
}

uint32_t __dpa_fxp_pow2(int32_t n)
{
	int32_t whole = n >> 16;
	uint32_t fraction = (uint32_t)n & (ONE - 1);
	uint64_t power = 1ull << 63;

	if (whole > 15)
		return UINT32_MAX;
	if (whole < -16)
		return 0;
	for (int i = 0; i < 16; i++)
		if (fraction & (1u << (15 - i)))
			power = (uint64_t)(((unsigned __int128)power * fraction_powers[i]) >> 63);
	return (uint32_t)(power >> (63 - 16 - whole));
}

int32_t __dpa_fxp_log2(uint32_t n)
{
	int32_t whole;
	uint64_t x;

	if (!n)
		return INT32_MIN;
	whole = 31 - __builtin_clz(n);
	/* x is n moved into [1, 2), with 31 bits of fraction: squaring it doubles the logarithm,
	 * bit by bit */
	x = (uint64_t)n << (31 - whole);
	whole -= 16;
	for (int i = 0; i < 16; i++) {
		x = (x * x) >> 31;
		whole = (int32_t)((uint32_t)whole << 1);
		if (x >> 32) {
			x >>= 1;
			whole |= 1;
		}
	}
	return whole;
}
