/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Definers: kinds of tags that programs make.  A tag has 32 bytes of fields in the order of a
 * format, and a mask says which of them count.  An entry that names a definer holds the masked tag
 * and no mask of its own.
 */
#pragma once

#include "adapter/ste/tag.h"

struct ste_definer {
	uint32_t format;
	uint8_t mask[STE_MATCH_TAG_BYTES];
};

bool ste_definer_known(uint32_t format) must_check;
/* Makes the masked tag; the format must be a known one. */
void ste_definer_tag(const struct ste_frame *f, const struct ste_definer *d,
		     uint8_t tag[STE_MATCH_TAG_BYTES]);
