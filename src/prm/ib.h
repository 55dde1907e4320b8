/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of the InfiniBand architecture that the verbs ABI and the wire share.  Values are those
 * of the kernel's uverbs ABI (rdma/ib_user_verbs.h and enum ib_qp_attr_mask), so callers pass them
 * through unchanged.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

enum ib_qp_type {
	IB_QPT_RC = 2,
	IB_QPT_UC = 3,
	IB_QPT_UD = 4,
	IB_QPT_RAW_PACKET = 8,
	IB_QPT_XRC_INI = 9,
	IB_QPT_XRC_TGT = 10,
	/* Dynamically connected types; the ABI calls both "driver". */
	IB_QPT_DCI = 32,
	IB_QPT_DCT = 33,
};

/* Which parts a type of QP has. */
static inline bool ib_qp_type_sends(uint64_t type)
{
	return type != IB_QPT_XRC_TGT && type != IB_QPT_DCT;
}

static inline bool ib_qp_type_receives(uint64_t type)
{
	return type != IB_QPT_XRC_INI && type != IB_QPT_XRC_TGT && type != IB_QPT_DCI;
}

enum ib_qp_state {
	IB_QPS_RESET,
	IB_QPS_INIT,
	IB_QPS_RTR,
	IB_QPS_RTS,
	IB_QPS_SQD,
	IB_QPS_SQE,
	IB_QPS_ERR,
	IB_QPS_COUNT,
};

enum ib_qp_attr_mask {
	IB_QP_STATE = 1 << 0,
	IB_QP_CUR_STATE = 1 << 1,
	IB_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	IB_QP_ACCESS_FLAGS = 1 << 3,
	IB_QP_PKEY_INDEX = 1 << 4,
	IB_QP_PORT = 1 << 5,
	IB_QP_QKEY = 1 << 6,
	IB_QP_AV = 1 << 7,
	IB_QP_PATH_MTU = 1 << 8,
	IB_QP_TIMEOUT = 1 << 9,
	IB_QP_RETRY_CNT = 1 << 10,
	IB_QP_RNR_RETRY = 1 << 11,
	IB_QP_RQ_PSN = 1 << 12,
	IB_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	IB_QP_ALT_PATH = 1 << 14,
	IB_QP_MIN_RNR_TIMER = 1 << 15,
	IB_QP_SQ_PSN = 1 << 16,
	IB_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	IB_QP_PATH_MIG_STATE = 1 << 18,
	IB_QP_CAP = 1 << 19,
	IB_QP_DEST_QPN = 1 << 20,
	IB_QP_RATE_LIMIT = 1 << 25,
};

/* States of path migration (IBTA 17.2.8), numbered as in the verbs ABI. */
enum ib_mig_state { IB_MIG_MIGRATED, IB_MIG_REARM, IB_MIG_ARMED };

enum ib_wq_state { IB_WQS_RESET, IB_WQS_RDY, IB_WQS_ERR };

enum ib_access {
	IB_ACCESS_LOCAL_WRITE = 1 << 0,
	IB_ACCESS_REMOTE_WRITE = 1 << 1,
	IB_ACCESS_REMOTE_READ = 1 << 2,
	IB_ACCESS_REMOTE_ATOMIC = 1 << 3,
	IB_ACCESS_MW_BIND = 1 << 4,
	IB_ACCESS_ZERO_BASED = 1 << 5,
	IB_ACCESS_ON_DEMAND = 1 << 6,
	IB_ACCESS_HUGETLB = 1 << 7,
	IB_ACCESS_RELAXED_ORDERING = 1 << 20,
};

enum ib_mtu { IB_MTU_256 = 1, IB_MTU_512, IB_MTU_1024, IB_MTU_2048, IB_MTU_4096 };

enum ib_port_state { IB_PORT_NOP, IB_PORT_DOWN, IB_PORT_INIT, IB_PORT_ARMED, IB_PORT_ACTIVE };

/* Asynchronous events, numbered as in the uverbs ABI. */
enum ib_event {
	IB_EVENT_CQ_ERR,
	IB_EVENT_QP_FATAL,
	IB_EVENT_QP_REQ_ERR,
	IB_EVENT_QP_ACCESS_ERR,
	IB_EVENT_COMM_EST,
	IB_EVENT_SQ_DRAINED,
	IB_EVENT_PATH_MIG,
	IB_EVENT_PATH_MIG_ERR,
	IB_EVENT_DEVICE_FATAL,
	IB_EVENT_PORT_ACTIVE,
	IB_EVENT_PORT_ERR,
	IB_EVENT_LID_CHANGE,
	IB_EVENT_PKEY_CHANGE,
	IB_EVENT_SM_CHANGE,
	IB_EVENT_SRQ_ERR,
	IB_EVENT_SRQ_LIMIT_REACHED,
	IB_EVENT_QP_LAST_WQE_REACHED,
	IB_EVENT_CLIENT_REREGISTER,
	IB_EVENT_GID_CHANGE,
	IB_EVENT_WQ_FATAL,
};

/* The name for traces. */
static inline const char *ib_event_name(enum ib_event event)
{
	static const char *const names[] = {
		[IB_EVENT_CQ_ERR] = "CQ_ERR",
		[IB_EVENT_QP_FATAL] = "QP_FATAL",
		[IB_EVENT_QP_REQ_ERR] = "QP_REQ_ERR",
		[IB_EVENT_QP_ACCESS_ERR] = "QP_ACCESS_ERR",
		[IB_EVENT_COMM_EST] = "COMM_EST",
		[IB_EVENT_SQ_DRAINED] = "SQ_DRAINED",
		[IB_EVENT_PATH_MIG] = "PATH_MIG",
		[IB_EVENT_PATH_MIG_ERR] = "PATH_MIG_ERR",
		[IB_EVENT_DEVICE_FATAL] = "DEVICE_FATAL",
		[IB_EVENT_PORT_ACTIVE] = "PORT_ACTIVE",
		[IB_EVENT_PORT_ERR] = "PORT_ERR",
		[IB_EVENT_LID_CHANGE] = "LID_CHANGE",
		[IB_EVENT_PKEY_CHANGE] = "PKEY_CHANGE",
		[IB_EVENT_SM_CHANGE] = "SM_CHANGE",
		[IB_EVENT_SRQ_ERR] = "SRQ_ERR",
		[IB_EVENT_SRQ_LIMIT_REACHED] = "SRQ_LIMIT_REACHED",
		[IB_EVENT_QP_LAST_WQE_REACHED] = "QP_LAST_WQE_REACHED",
		[IB_EVENT_CLIENT_REREGISTER] = "CLIENT_REREGISTER",
		[IB_EVENT_GID_CHANGE] = "GID_CHANGE",
		[IB_EVENT_WQ_FATAL] = "WQ_FATAL",
	};
	const char *name = (unsigned)event < array_size(names) ? names[event] : NULL;

	return name ? name : "unknown";
}

/* The name of a right that a request needs; for traces. */
static inline const char *ib_access_name(uint32_t right)
{
	switch (right) {
	case IB_ACCESS_LOCAL_WRITE:
		return "LOCAL_WRITE";
	case IB_ACCESS_REMOTE_WRITE:
		return "REMOTE_WRITE";
	case IB_ACCESS_REMOTE_READ:
		return "REMOTE_READ";
	case IB_ACCESS_REMOTE_ATOMIC:
		return "REMOTE_ATOMIC";
	case 0:
		return "LOCAL_READ";
	default:
		return "several";
	}
}

#define IB_GSI_QPN	 1u /* queue pair 1, the general services of a port */
#define IB_MULTICAST_QPN 0xffffffu
#define IB_GRH_BYTES	 40u
#define IB_QPN_MASK	 0xffffffu
#define IB_PSN_MASK	 0xffffffu
/* The longest message on our ports; the specification allows twice as much (9.7.1). */
#define IB_MAX_MSG_BYTES (1ull << 30)

union ib_gid {
	uint8_t raw[16];
	uint32_t word[4];
	uint64_t half[2];
};

/* True if the GID has the form ::ffff:a.b.c.d (RoCE annex A17). */
static inline bool ib_gid_is_ipv4(const union ib_gid *gid)
{
	return !gid->half[0] && !gid->raw[8] && !gid->raw[9] && gid->raw[10] == 0xff &&
	       gid->raw[11] == 0xff;
}

/* The MAC from which a link-local GID is made: its interface identifier is a modified EUI-64 of the
 * MAC (RFC 4291, 2.5.6 and appendix A).  False: it is not made so. */
static inline bool ib_gid_link_local_mac(const union ib_gid *gid, uint8_t mac[6])
{
	static const uint8_t prefix[8] = {0xfe, 0x80};

	if (memcmp(gid->raw, prefix, sizeof(prefix)) != 0 || gid->raw[11] != 0xff ||
	    gid->raw[12] != 0xfe)
		return false;
	memcpy(mac, gid->raw + 8, 3);
	memcpy(mac + 3, gid->raw + 13, 3);
	mac[0] ^= 0x02;
	return true;
}

/* True for FF00::/8 (IBTA 4.1.1) and, for RoCE v2, for a mapped IPv4 address of class D (annex
 * A17). */
static inline bool ib_gid_is_multicast(const union ib_gid *gid)
{
	if (gid->raw[0] == 0xff)
		return true;
	return ib_gid_is_ipv4(gid) && gid->raw[12] >> 4 == 0xe;
}

/* Decoded attributes of an address handle: where a packet goes, and which marks it carries. */
struct ib_ah {
	union ib_gid dgid;
	uint32_t flow_label;
	uint16_t dlid;
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t traffic_class;
	uint8_t sl;
	uint8_t src_path_bits;
	uint8_t static_rate;
	uint8_t is_global; /* a GRH is present */
	uint8_t own_port;  /* the packet loops back, whatever the address says */
	uint8_t port_num;
	uint8_t dmac[6];    /* RoCE */
	uint16_t udp_sport; /* of a RoCE v2 datagram */
};

/* 24-bit serial arithmetic: positive if a is after b (IBTA 9.7.1, PSN window of 2^23). */
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & IB_PSN_MASK;
}

/*
 * True if both are of the same partition.  A switch's port compares so: its table has the keys of
 * the port behind it, and a packet of a limited member comes with that member's own key.
 */
static inline int pkey_same_partition(uint16_t a, uint16_t b)
{
	return !((a ^ b) & 0x7fff) && a & 0x7fff;
}

/* True if both are of the same partition and at least one is a full member of it (IBTA 10.9.3). */
static inline int pkey_match(uint16_t a, uint16_t b)
{
	return pkey_same_partition(a, b) && (a | b) & 0x8000;
}

static inline uint32_t ib_mtu_bytes(enum ib_mtu mtu)
{
	return 128u << mtu;
}

/* The smallest MTU that takes this many bytes; one past the largest MTU if none does. */
static inline uint32_t ib_mtu_for(uint32_t bytes)
{
	uint32_t mtu = 1;

	while (mtu <= IB_MTU_4096 && 128u << mtu < bytes)
		mtu++;
	return mtu;
}

/* The number spaces from which a device's objects get their numbers. */

enum number_kind { NUMBER_QPN, NUMBER_SRQN, NUMBER_MKEY, NUMBER_PSV, NUMBER_KINDS };
