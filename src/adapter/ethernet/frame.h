/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet frames: what their headers say, in a form that steering compares and RSS hashes, and
 * their checksums.  Pure functions on bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define FRAME_MIN	  14u	/* two addresses and a type */
#define FRAME_MAX	  9216u /* jumbo frames */
#define FRAME_VLAN_BYTES  4u
#define FRAME_HEADERS_MAX 192u /* as far as frame_parse looks */

enum { FRAME_TYPE_IPV4 = 0x0800, FRAME_TYPE_VLAN = 0x8100, FRAME_TYPE_IPV6 = 0x86dd };
enum { IP_PROTO_TCP = 6, IP_PROTO_UDP = 17 };

/*
 * The fields by which frames are told apart.  Numbers are in network order, absent fields zero; an
 * IPv4 address takes the first 4 bytes.  All bytes belong to fields, so that masked comparison
 * works on words.
 */
struct flow_key {
	union {
		struct {
			uint8_t dst_mac[6];
			uint8_t src_mac[6];
			uint8_t ether_type[2]; /* of what follows a VLAN tag */
			uint8_t vlan_tag[2];
			uint8_t src_ip[16];
			uint8_t dst_ip[16];
			uint8_t flow_label[4];
			uint8_t ip_proto; /* IPv6: next header */
			uint8_t ip_tos;	  /* IPv6: traffic class */
			uint8_t ip_ttl;
			uint8_t ip_flags; /* IPv4: more fragments 0, don't fragment 1 */
			uint8_t src_port[2];
			uint8_t dst_port[2];
			uint8_t ip_version; /* 4, 6 or 0 */
			uint8_t l4_proto;   /* of the ports: TCP, UDP or 0 */
			uint8_t vlan;	    /* 1: tagged */
			uint8_t reserved;
		};
		uint64_t word[8];
	};
};

#define FLOW_KEY_WORDS 8u

struct frame_layout {
	uint32_t l3;	 /* offset of the IP header, 0: none */
	uint32_t l4;	 /* offset of the TCP or UDP header, 0: none, or a later fragment */
	uint32_t l3_end; /* end of the IP datagram by its own length field */
};

/*
 * Reads the headers of a frame of which head (headed bytes, at most the frame) is at hand; false if
 * it is no frame.  Headers that are cut off or malformed count as absent.
 */
bool frame_parse(const uint8_t *head, uint32_t headed, uint32_t bytes, struct flow_key *key,
		 struct frame_layout *at) must_check;

/* Fills in the checksums that the layout allows. */
void frame_fill_l3_checksum(uint8_t *frame, const struct frame_layout *at);
void frame_fill_l4_checksum(uint8_t *frame, uint32_t bytes, const struct flow_key *key,
			    const struct frame_layout *at);
/* Are they right?  False too where there is nothing to check. */
bool frame_l3_checksum_ok(const uint8_t *frame, const struct frame_layout *at) must_check;
bool frame_l4_checksum_ok(const uint8_t *frame, uint32_t bytes, const struct flow_key *key,
			  const struct frame_layout *at) must_check;

/*
 * TCP segmentation: adapts the headers at the start of frame, copied from those of the whole, to
 * the segment that begins at payload byte offset.  bytes: of the frame.  False if they are not
 * those of a TCP segment.
 */
bool frame_segment(uint8_t *frame, uint32_t bytes, uint32_t header, uint32_t index, uint32_t offset,
		   bool last) must_check;
