// SPDX-License-Identifier: BSD-2-Clause
/* See checksum.h. */
#include "adapter/sig/checksum.h"

#include <string.h>

#include "base/endian.h"

#define ODD (1ull << 63)

typedef uint64_t lanes __attribute__((vector_size(32)));

/* Sums 32-bit words into 64-bit lanes, which lose a carry only after 2^32 words. */
static inline __attribute__((always_inline)) uint64_t sum_chunks(const uint8_t **data, size_t *n)
{
	const lanes low = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
	lanes sum[4] = {{0}};
	const uint8_t *p = *data;
	size_t left = *n;

	for (; left >= 2 * sizeof(lanes); p += 2 * sizeof(lanes), left -= 2 * sizeof(lanes)) {
		lanes a;
		lanes b;

		memcpy(&a, p, sizeof(a));
		memcpy(&b, p + sizeof(a), sizeof(b));
		sum[0] += a & low;
		sum[1] += a >> 32;
		sum[2] += b & low;
		sum[3] += b >> 32;
	}
	*data = p;
	*n = left;
	sum[0] += sum[1] + sum[2] + sum[3];
	return sum[0][0] + sum[0][1] + sum[0][2] + sum[0][3];
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint64_t sum_chunks_avx2(const uint8_t **data, size_t *n)
{
	return sum_chunks(data, n);
}
#endif

static uint64_t sum_chunks_best(const uint8_t **data, size_t *n)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		return sum_chunks_avx2(data, n);
#endif
	return sum_chunks(data, n);
}

static uint64_t checksum_fold(uint64_t sum)
{
	sum = (sum & UINT32_MAX) + (sum >> 32);
	return (sum & UINT32_MAX) + (sum >> 32);
}

/* A single byte, at the first or the second place of a 16-bit word of the stream. */
static uint64_t first_byte(uint8_t b)
{
	return be16_of((uint16_t)(b << 8)).raw;
}

static uint64_t second_byte(uint8_t b)
{
	return be16_of(b).raw;
}

uint64_t checksum_update(uint64_t reg, const uint8_t *data, size_t n)
{
	uint64_t odd = reg & ODD;
	uint64_t sum = reg & ~ODD;

	if (odd && n) {
		sum += second_byte(*data++);
		n--;
		odd = 0;
	}
	if (n >= 64)
		sum += checksum_fold(sum_chunks_best(&data, &n));
	for (; n >= 4; data += 4, n -= 4) {
		uint32_t word;

		memcpy(&word, data, sizeof(word));
		sum += word;
	}
	if (n >= 2) {
		uint16_t word;

		memcpy(&word, data, sizeof(word));
		sum += word;
		data += 2;
		n -= 2;
	}
	if (n) {
		sum += first_byte(*data);
		odd = ODD;
	}
	return checksum_fold(sum) | odd;
}

uint16_t checksum_seal(uint64_t reg)
{
	uint64_t sum = checksum_fold(reg & ~ODD);

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~be16_get((be16){(uint16_t)sum});
}
