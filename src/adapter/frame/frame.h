/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet frames: what their headers say, in a form that steering compares and RSS hashes, and
 * their checksums.  All functions are pure functions on bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapter/steering.h"
#include "base/compiler.h"

#define FRAME_MIN	  14u	/* two addresses and a type */
#define FRAME_MAX	  9216u /* jumbo frames */
#define FRAME_TYPE_AT	  12u	/* the type's offset, and also a tag's */
#define FRAME_VLAN_BYTES  4u
#define FRAME_HEADERS_MAX 192u /* frame_parse looks no further than this */

/* 16-bit numbers, as they stand in headers. */
static inline uint32_t frame_get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static inline void frame_put16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

struct frame_layout {
	uint32_t l3; /* offset of the IP header, 0: none */
	/* Offset of the TCP or UDP header; 0: none, or the frame is a later fragment. */
	uint32_t l4;
	uint32_t l3_end; /* end of the IP datagram by its own length field */
};

/*
 * Reads the headers of a frame, of which the first 'headed' bytes are at hand.  False if it is no
 * frame.  Headers that are cut off or malformed count as absent.
 */
bool frame_parse(const uint8_t *head, uint32_t headed, uint32_t bytes, struct flow_key *key,
		 struct frame_layout *at) must_check;

/*
 * The same for what begins at byte start, such as the frame within a tunnel: an Ethernet header or,
 * if type is not 0, a datagram of that type (false if it is none).  Offsets count in the whole
 * frame.
 */
bool frame_parse_from(const uint8_t *head, uint32_t headed, uint32_t bytes, uint32_t start,
		      uint32_t type, struct flow_key *key, struct frame_layout *at) must_check;

/* Fills in the checksums that the layout allows. */
void frame_fill_l3_checksum(uint8_t *frame, const struct frame_layout *at);
void frame_fill_l4_checksum(uint8_t *frame, uint32_t bytes, const struct flow_key *key,
			    const struct frame_layout *at);
/* True if the checksum is right.  False also if there is nothing to check. */
bool frame_l3_checksum_ok(const uint8_t *frame, const struct frame_layout *at) must_check;
bool frame_l4_checksum_ok(const uint8_t *frame, uint32_t bytes, const struct flow_key *key,
			  const struct frame_layout *at) must_check;

/*
 * TCP segmentation: adapts the headers at the start of frame, which are a copy of the whole's, to
 * the segment that begins at payload byte offset. bytes: the frame's length.  False if they are not
 * the headers of a TCP segment.
 */
bool frame_segment(uint8_t *frame, uint32_t bytes, uint32_t header, uint32_t index, uint32_t offset,
		   bool last) must_check;
