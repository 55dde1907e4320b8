// SPDX-License-Identifier: BSD-2-Clause
/*
 * The memory functions.  The compiler calls them, too: for copies of structures, and in checked
 * mode for every copy and every clearing.  Each checks its whole range once and then moves words
 * without further checks.
 */
#include "dpa/device/image.h"

#include <libflexio-libc/string.h>

/* Words at any address.  may_alias: they may be parts of objects of other types. */
typedef uint64_t word8 __attribute__((aligned(1), may_alias));
typedef uint32_t word4 __attribute__((aligned(1), may_alias));
typedef uint16_t word2 __attribute__((aligned(1), may_alias));
/* two registers of x86-64 or of aarch64 hold it: written as 64-bit words, moved as vectors */
typedef uint64_t word32 __attribute__((vector_size(32), aligned(1), may_alias));
typedef uint64_t word16 __attribute__((vector_size(16), aligned(1), may_alias));

/*
 * Moves up to 32 bytes: the first and the last word of the largest size that fits.  It reads both
 * before it writes one, so source and destination may overlap.
 */
static void bytes_move_short(uint8_t *d, const uint8_t *s, size_t n)
{
	if (n >= 16) {
		word16 first = *(const word16 *)s;
		word16 last = *(const word16 *)(s + n - 16);

		*(word16 *)d = first;
		*(word16 *)(d + n - 16) = last;
	} else if (n >= 8) {
		uint64_t first = *(const word8 *)s;
		uint64_t last = *(const word8 *)(s + n - 8);

		*(word8 *)d = first;
		*(word8 *)(d + n - 8) = last;
	} else if (n >= 4) {
		uint32_t first = *(const word4 *)s;
		uint32_t last = *(const word4 *)(s + n - 4);

		*(word4 *)d = first;
		*(word4 *)(d + n - 4) = last;
	} else if (n >= 2) {
		uint16_t first = *(const word2 *)s;
		uint16_t last = *(const word2 *)(s + n - 2);

		*(word2 *)d = first;
		*(word2 *)(d + n - 2) = last;
	} else if (n) {
		*d = *s;
	}
}

/* Moves more than 32 bytes to a lower address, or without overlap: it reads the tail first. */
static void bytes_move_up(uint8_t *d, const uint8_t *s, size_t n)
{
	word32 tail = *(const word32 *)(s + n - 32);
	uint8_t *end = d + n - 32;

	for (; d < end; d += 32, s += 32)
		*(word32 *)d = *(const word32 *)s;
	*(word32 *)end = tail;
}

/*
 * Moves more than 32 bytes to a higher address that overlaps, from the end; reads the head first.
 */
static void bytes_move_down(uint8_t *d, const uint8_t *s, size_t n)
{
	word32 head = *(const word32 *)s;

	for (; n > 32; n -= 32)
		*(word32 *)(d + n - 32) = *(const word32 *)(s + n - 32);
	*(word32 *)d = head;
}

static void bytes_move(uint8_t *d, const uint8_t *s, size_t n)
{
	if (n <= 32)
		bytes_move_short(d, s, n);
	else if ((uintptr_t)d - (uintptr_t)s >= n)
		bytes_move_up(d, s, n);
	else
		bytes_move_down(d, s, n);
}

void *memmove(void *dest, const void *src, size_t size)
{
	dpa_check_read(src, size);
	dpa_check_write(dest, size);
	bytes_move(dest, src, size);
	return dest;
}

/* Programs do call memcpy where they mean memmove; one compare is enough to do what they mean. */
void *memcpy(void *restrict dest, const void *restrict src, size_t size)
{
	dpa_check_read(src, size);
	dpa_check_write(dest, size);
	bytes_move(dest, src, size);
	return dest;
}

void *memset(void *mem, int c, size_t size)
{
	uint64_t word = (uint8_t)c * 0x0101010101010101ull;
	uint8_t *d = mem;

	dpa_check_write(mem, size);
	if (size < 8) {
		for (size_t i = 0; i < size; i++)
			d[i] = (uint8_t)c;
		return mem;
	}
	for (size_t left = size; left > 32; left -= 32, d += 32)
		*(word32 *)d = (word32){word, word, word, word};
	for (size_t left = (size_t)((uint8_t *)mem + size - d); left > 8; left -= 8, d += 8)
		*(word8 *)d = word;
	*(word8 *)((uint8_t *)mem + size - 8) = word;
	return mem;
}

int memcmp(const void *a, const void *b, size_t size)
{
	const uint8_t *x = a;
	const uint8_t *y = b;

	dpa_check_read(a, size);
	dpa_check_read(b, size);
	for (; size >= 8 && *(const word8 *)x == *(const word8 *)y; size -= 8) {
		x += 8;
		y += 8;
	}
	for (; size; size--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

/* The compiler calls this for memcmp() == 0. */
int bcmp(const void *a, const void *b, size_t n);
int bcmp(const void *a, const void *b, size_t n)
{
	return memcmp(a, b, n);
}
