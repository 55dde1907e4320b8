/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Internet checksum (RFC 1071), resumable at any byte.  The register is the one's-complement
 * sum of 16-bit words in the machine's byte order (RFC 1071 2(B): the order does not matter until
 * the end), and in bit 63 whether an odd number of bytes went in.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t checksum_update(uint64_t reg, const uint8_t *data, size_t n);
/* The complement of the sum, as the big-endian number that the two bytes in the stream are. */
uint16_t checksum_seal(uint64_t reg);
