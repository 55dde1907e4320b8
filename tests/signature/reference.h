/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Block signatures by the book, slow and plain: CRCs bit by bit, streams as whole arrays
 * (mlx5dv_wr_set_mkey_sig_block(3); SBC-3 4.22 for T10-DIF; FC-PH, RFC 3720 and XP10 for the CRCs).
 */
#pragma once

#include "order.h"

#define REFERENCE_LONGEST 4160u

uint32_t reference_block(enum mlx5dv_block_size size);
/* Bytes of a signature. */
uint32_t reference_bytes(enum signature type);
uint32_t reference_unit(const struct domain *d);
bool reference_is_dif(enum signature type);
/* The mask of all bytes of a signature. */
uint8_t reference_mask(enum signature type);
const char *reference_name(enum signature type);

/* The number that protects these bytes: guard or CRC. */
uint64_t reference_number(enum signature type, bool ones, const uint8_t *data, size_t bytes);
/* The signature of a block in the order of the stream; block counts from the key's first. */
uint32_t reference_signature(const struct domain *d, uint32_t block, const uint8_t *data,
			     uint8_t out[8]);
/* Data of so many bytes with a signature after each whole block; the length of it all. */
size_t reference_stream(const struct domain *d, const uint8_t *data, size_t bytes, uint8_t *out);
/* How long that is. */
size_t reference_length(const struct domain *d, size_t data);
