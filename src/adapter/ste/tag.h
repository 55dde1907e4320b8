/* SPDX-License-Identifier: BSD-2-Clause */
/* A frame on its way through steering entries, and the tags that they compare. */
#pragma once

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
