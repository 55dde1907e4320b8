/* SPDX-License-Identifier: BSD-2-Clause */
/* A frame on its way through steering entries, and the tags that they compare. */
#pragma once

#include <stdint.h>

#include "adapter/frame/frame.h"
#include "prm/ste.h"

#define STE_REGISTERS 8u

struct ste_frame {
	const uint8_t *bytes;
	uint32_t len;
	struct flow_key key;
	struct frame_layout at;
	/* Where a changed frame lies; NULL: nobody may change its bytes.  Before the first change
	 * the bytes may lie elsewhere. */
	uint8_t *room;
	uint32_t room_bytes;

	uint8_t format; /* the entries' format */

	/* What entries set and compare besides the frame. */
	uint32_t flow_tag;
	uint32_t reg_a, reg_b;
	uint32_t reg_c[STE_REGISTERS];
	uint32_t sqn;  /* number of the queue that sends it; 0: it was received */
	uint16_t gvmi; /* number of the function that sends it; 0: it came from the wire */
	bool local;    /* it does not come from the wire */
};

/* Parses the frame again after its bytes have changed. */
void ste_frame_parse(struct ste_frame *f);

/* Makes the tag.  False: this kind of tag (enum ste_lookup) is unknown. */
bool ste_tag(const struct ste_frame *f, uint32_t lookup, uint8_t tag[STE_TAG_BYTES]) must_check;

/*
 * Definers: kinds of tags that programs make.  A tag has 32 bytes of fields in the order of a
 * format, and a mask says which of them count.  An entry that names a definer holds the masked tag
 * and no mask of its own.
 */

struct ste_definer {
	uint32_t format;
	uint8_t mask[STE_MATCH_TAG_BYTES];
};

bool ste_definer_known(uint32_t format) must_check;
/* Makes the masked tag; the format must be a known one. */
void ste_definer_tag(const struct ste_frame *f, const struct ste_definer *d,
		     uint8_t tag[STE_MATCH_TAG_BYTES]);

/* Where in a table an entry with a given tag stands. */

/* byte_mask: the bytes of the tag that count, first byte in the highest bit; the others count as
 * zero. */
uint32_t ste_table_hash(const uint8_t tag[STE_TAG_BYTES], uint16_t byte_mask);
/* The same for the tag of a definer, all of which counts. */
uint32_t ste_match_hash(const uint8_t tag[STE_MATCH_TAG_BYTES]);
