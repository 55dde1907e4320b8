/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What Ethernet queues add to WQEs and CQEs: the segment in front of a frame's data, and the bits
 * of a receive CQE that describe the frame.
 */
#pragma once

#include <assert.h>
#include <stddef.h>

#include "base/endian.h"

/*
 * Follows the control segment.  The segment itself holds the first inline_hdr_sz bytes of the
 * frame, from inline_hdr_start on.  They may go on beyond the struct, padded to whole units.
 */
struct wqe_eth {
	be32 reserved0;
	uint8_t cs_flags;
	uint8_t swp_flags; /* which kinds the headers are whose offsets the program gives */
	be16 mss;	   /* TSO: payload bytes of each frame */
	be32 reserved2;
	be16 inline_hdr_sz;
	uint8_t inline_hdr_start[2];
};

#define WQE_ETH_L3_CSUM 0x40u /* fill in the IPv4 header checksum */
#define WQE_ETH_L4_CSUM 0x80u /* fill in the TCP or UDP checksum */
/* The same for what is in a tunnel. */
#define WQE_ETH_L3_INNER_CSUM 0x10u
#define WQE_ETH_L4_INNER_CSUM 0x20u
#define WQE_ETH_CSUM	      0xf0u /* any of them */
#define WQE_ETH_TRAILER_ALIGN 0x02u /* ignored */

static_assert(sizeof(struct wqe_eth) == 16, "Ethernet segment");
static_assert(offsetof(struct wqe_eth, inline_hdr_start) == 14, "inline header");

/* hds_ip_ext of a receive CQE: the headers that are present and sound. */
#define CQE_ETH_L2_OK 0x01u
#define CQE_ETH_L3_OK 0x02u
#define CQE_ETH_L4_OK 0x04u

/* l4_hdr_type_etc: VLAN tag stripped 0, L3 type 3:2, L4 type 6:4. */
#define CQE_ETH_CVLAN_STRIPPED 0x01u
#define CQE_ETH_L3_SHIFT       2
#define CQE_ETH_L4_SHIFT       4
enum cqe_eth_l3 { CQE_ETH_L3_NONE, CQE_ETH_L3_IPV6, CQE_ETH_L3_IPV4 };
enum cqe_eth_l4 { CQE_ETH_L4_NONE, CQE_ETH_L4_TCP, CQE_ETH_L4_UDP };

/* rss_hash_type: what the device hashed.  Zero: it hashed nothing, and there is no hash result. */
#define CQE_RSS_IPV4	 0x01u
#define CQE_RSS_IPV6	 0x02u
#define CQE_RSS_L4_SHIFT 4
enum cqe_rss_l4 { CQE_RSS_L4_NONE, CQE_RSS_L4_TCP, CQE_RSS_L4_UDP };

#define FLOW_TAG_MASK 0xffffffu /* in sop_drop_qpn of a receive CQE */
