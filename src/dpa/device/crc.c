// SPDX-License-Identifier: BSD-2-Clause
/* Checksums of inline assembly: instructions of RISC-V's draft Zbr. */
#include <stdint.h>

/* Divides by the polynomial, whose lowest bit comes first, as many times as there are bits. */
uint64_t __dpa_crc32(uint64_t value, uint64_t bits, uint64_t polynomial);
uint64_t __dpa_crc32(uint64_t value, uint64_t bits, uint64_t polynomial)
{
	for (uint64_t i = 0; i < bits; i++)
		value = value >> 1 ^ (value & 1 ? polynomial : 0);
	return value;
}
