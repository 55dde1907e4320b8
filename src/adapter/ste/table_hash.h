/* SPDX-License-Identifier: BSD-2-Clause */
/* Where in a table an entry with that tag stands. */
#pragma once

#include <stdint.h>

#include "prm/ste.h"

/* byte_mask: bytes of the tag that count, the first in the highest bit; others count as zero. */
uint32_t ste_table_hash(const uint8_t tag[STE_TAG_BYTES], uint16_t byte_mask);
/* Of a tag of a definer, all of which counts. */
uint32_t ste_match_hash(const uint8_t tag[STE_MATCH_TAG_BYTES]);
