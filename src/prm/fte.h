/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What entries of flow tables match on. struct fte_match_param begins with the headers of the frame
 * itself; further groups may follow (virtual port, headers inside a tunnel, ...).
 * match_criteria_enable, beside it, says which groups count.
 */
#pragma once

#include <assert.h>
#include <stddef.h>

#include "base/endian.h"

#define FTE_MATCH_PARAM_BYTES 512u

/* match_criteria_enable */
#define FTE_MATCH_OUTER_HEADERS (1u << 0)

/* Outer headers: fte_match_set_lyr_2_4. */
struct fte_headers {
	uint8_t smac[6];
	be16 ethertype;
	uint8_t dmac[6];
	be16 first_tag; /* prio 15:13, cfi 12, vid 11:0 */
	uint8_t ip_protocol;
	uint8_t ip_dscp_ecn;
	be16 flags;	     /* FTE_FLAG_*, ip_version 12:9, tcp_flags 8:0 */
	be16 tcp_port[2];    /* of the source, of the destination */
	uint8_t ipv4_ihl[3]; /* 3:0 of the last byte; the rest is reserved */
	uint8_t ttl_hoplimit;
	be16 udp_port[2];
	uint8_t src_ip[16]; /* IPv4: the last 4 bytes */
	uint8_t dst_ip[16];
};

#define FTE_FLAG_CVLAN	     0x8000u
#define FTE_FLAG_SVLAN	     0x4000u
#define FTE_FLAG_FRAG	     0x2000u
#define FTE_TCP_FLAGS	     0x01ffu
#define FTE_IP_VERSION_SHIFT 9
#define FTE_IP_VERSION_MASK  0xfu
#define FTE_IPV4_AT	     12u

static_assert(sizeof(struct fte_headers) == 64, "outer headers");
static_assert(offsetof(struct fte_headers, ip_protocol) == 0x10, "ip_protocol");
static_assert(offsetof(struct fte_headers, ttl_hoplimit) == 0x1b, "ttl_hoplimit");
static_assert(offsetof(struct fte_headers, src_ip) == 0x20, "src_ip");
