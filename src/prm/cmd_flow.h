/* SPDX-License-Identifier: BSD-2-Clause */
/* Steering commands: tables, groups of entries, entries, counters; and the ports of the switch. */
#pragma once

#include <assert.h>
#include <stddef.h>

#include "base/endian.h"
#include "prm/cmd.h"

enum flow_table_type { FLOW_TABLE_NIC_RX = 0x0, FLOW_TABLE_NIC_TX = 0x1, FLOW_TABLE_FDB = 0x4 };

/* All commands of tables have these. */
#define FLOW_IN_TYPE  PRM_FIELD(0x80, 8)
#define FLOW_IN_TABLE PRM_FIELD(0xa8, 24)

/* ---- tables: CREATE and the answer of QUERY hold the context ---- */

#define FLOW_TABLE_BYTES       0x40u
#define FLOW_TABLE_CONTEXT     0x18u /* byte */
#define FLOW_TABLE_REFORMAT    PRM_FIELD(0x00, 1)
#define FLOW_TABLE_DECAP       PRM_FIELD(0x01, 1)
#define FLOW_TABLE_SW_OWNER    PRM_FIELD(0x02, 1)
#define FLOW_TABLE_TERMINATION PRM_FIELD(0x03, 1)
#define FLOW_TABLE_MISS_ACTION PRM_FIELD(0x04, 4)
#define FLOW_TABLE_LEVEL       PRM_FIELD(0x08, 8)
#define FLOW_TABLE_ICM_ROOT_1  PRM_FIELD(0xc0, 64)
#define FLOW_TABLE_ICM_ROOT_0  PRM_FIELD(0x100, 64)

/* ---- groups ---- */

#define FLOW_GROUP_BYTES    0x400u
#define FLOW_GROUP_CRITERIA PRM_FIELD(0x1f8, 8)

/* ---- entries ---- */

#define FLOW_ENTRY_BYTES      0x340u /* the destinations and counters follow */
#define FLOW_ENTRY_CHANGES    PRM_FIELD(0xd8, 8)
#define FLOW_ENTRY_INDEX      PRM_FIELD(0x100, 32)
#define FLOW_ENTRY_CONTEXT    0x40u /* byte */
#define FLOW_CONTEXT_GROUP    PRM_FIELD(0x20, 32)
#define FLOW_CONTEXT_TAG      PRM_FIELD(0x48, 24)
#define FLOW_CONTEXT_ACTION   PRM_FIELD(0x70, 16)
#define FLOW_CONTEXT_EXTENDED PRM_FIELD(0x80, 1)
#define FLOW_CONTEXT_DESTS    PRM_FIELD(0x88, 24)
#define FLOW_CONTEXT_COUNTERS PRM_FIELD(0xa8, 24)
#define FLOW_DEST_BYTES	      8u
#define FLOW_DEST_TYPE	      PRM_FIELD(0x00, 8)
#define FLOW_DEST_NUMBER      PRM_FIELD(0x08, 24)
#define FLOW_DEST_COUNTER     PRM_FIELD(0x00, 32)

enum flow_entry_action {
	FLOW_ENTRY_ALLOW = 0x1,
	FLOW_ENTRY_DROP = 0x2,
	FLOW_ENTRY_FORWARD = 0x4,
	FLOW_ENTRY_COUNT = 0x8,
};

/* Which parts of an entry a command changes; a list goes with its size. */
enum flow_entry_change {
	FLOW_CHANGE_ACTION = 0x1,
	FLOW_CHANGE_TAG = 0x2,
	FLOW_CHANGE_DESTS = 0x4,
	FLOW_CHANGE_COUNTERS = 0x8,
	FLOW_CHANGE_ALL = 0xf,
};

enum flow_dest_type { FLOW_DEST_VPORT = 0x0, FLOW_DEST_TABLE = 0x1, FLOW_DEST_TIR = 0x2 };

/* ---- counters ---- */

#define FLOW_COUNTER_BULK	 PRM_FIELD(0x78, 8)
#define FLOW_COUNTER_OUT_NUMBER	 PRM_FIELD(0x40, 32)
#define FLOW_COUNTER_QUERY_BYTES 0x20u
#define FLOW_COUNTER_CLEAR	 PRM_FIELD(0xc0, 1)
#define FLOW_COUNTER_TO_MEMORY	 PRM_FIELD(0xc1, 1)
#define FLOW_COUNTER_IN_NUMBER	 PRM_FIELD(0xe0, 32)
#define FLOW_COUNTER_OUT_BYTES	 0x20u
#define FLOW_COUNTER_PACKETS	 PRM_FIELD(0x80, 64)
#define FLOW_COUNTER_OCTETS	 PRM_FIELD(0xc0, 64)

/* ---- headers of tunnels ---- */

#define REFORMAT_IN_BYTES   0x24u /* with room for two bytes of data; the others follow */
#define REFORMAT_TYPE	    PRM_FIELD(0xe5, 3)
#define REFORMAT_SIZE	    PRM_FIELD(0xf6, 10)
#define REFORMAT_DATA	    0x22u /* byte */
#define REFORMAT_OUT_NUMBER PRM_FIELD(0x40, 32)

enum reformat_type {
	REFORMAT_L2_TO_VXLAN = 0x0,
	REFORMAT_L2_TO_NVGRE = 0x1,
	REFORMAT_L2_TO_L2_TUNNEL = 0x2,
	REFORMAT_L3_TUNNEL_TO_L2 = 0x3,
	REFORMAT_L2_TO_L3_TUNNEL = 0x4,
};

/* ---- samplers: general objects ---- */

#define FLOW_SAMPLER_BYTES   0x38u
#define FLOW_SAMPLER_CONTEXT 0x10u /* byte */
#define FLOW_SAMPLER_TYPE    PRM_FIELD(0x40, 8)
#define FLOW_SAMPLER_RATIO   PRM_FIELD(0x60, 32)
#define FLOW_SAMPLER_SAMPLE  PRM_FIELD(0x88, 24)
#define FLOW_SAMPLER_DEFAULT PRM_FIELD(0xa8, 24)
#define FLOW_SAMPLER_ICM_RX  PRM_FIELD(0xc0, 64)
#define FLOW_SAMPLER_ICM_TX  PRM_FIELD(0x100, 64)

/* ---- definers: general objects ---- */

#define MATCH_DEFINER_BYTES   0x90u
#define MATCH_DEFINER_CONTEXT 0x10u /* byte */
#define MATCH_DEFINER_FORMAT  PRM_FIELD(0x90, 16)
#define MATCH_DEFINER_MASK    0x60u /* byte; the mask has 32 bytes */

/* ---- device memory of steering ---- */

#define SYNC_STEERING_BYTES 0x20u

/* ---- ports ---- */

#define VPORT_IN_OTHER	    PRM_FIELD(0x40, 1)
#define VPORT_IN_NUMBER	    PRM_FIELD(0x50, 16)
#define NIC_VPORT_BYTES	    0x110u
#define NIC_VPORT_ROCE	    PRM_FIELD(0x9f, 1)
#define ESW_VPORT_BYTES	    0x110u
#define ESW_VPORT_ICM_RX    PRM_FIELD(0x800, 64)
#define ESW_VPORT_ICM_TX    PRM_FIELD(0x840, 64)
#define ESW_FUNCTIONS_BYTES 0x80u

/*
 * What entries of flow tables match on. struct fte_match_param begins with the headers of the frame
 * itself; further groups may follow (virtual port, headers inside a tunnel, ...).
 * match_criteria_enable, beside it, says which groups count.
 */

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
