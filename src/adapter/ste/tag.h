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
	/* Where a frame that is changed lies; NULL: bytes may not be changed.  Before the first
	 * change bytes may lie elsewhere. */
	uint8_t *room;
	uint32_t room_bytes;

	uint8_t format; /* of the entries */

	/* What entries set and compare beside the frame. */
	uint32_t flow_tag;
	uint32_t reg_a, reg_b;
	uint32_t reg_c[STE_REGISTERS];
	uint32_t sqn;  /* of the queue that sends it; 0: it was received */
	uint16_t gvmi; /* of the function that sends it; 0: it came from the wire */
	bool local;    /* it has not come from the wire */
};

/* The frame's bytes have changed. */
void ste_frame_parse(struct ste_frame *f);

/* False: nothing is known of this kind of tag (enum ste_lookup). */
bool ste_tag(const struct ste_frame *f, uint32_t lookup, uint8_t tag[STE_TAG_BYTES]) must_check;
