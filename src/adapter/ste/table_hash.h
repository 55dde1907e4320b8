/* SPDX-License-Identifier: BSD-2-Clause */
/* Where in a table an entry with a given tag stands. */
#pragma once

#include <stdint.h>

#include "prm/ste.h"

/* byte_mask: the bytes of the tag that count, first byte in the highest bit; the others count as
 * zero. */
uint32_t ste_table_hash(const uint8_t tag[STE_TAG_BYTES], uint16_t byte_mask);
/* The same for the tag of a definer, all of which counts. */
uint32_t ste_match_hash(const uint8_t tag[STE_MATCH_TAG_BYTES]);
