/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Management datagrams (IBTA 13.4): the common header, RMPP's (13.6.2) and that of directed routes
 * (14.2.1.2).  A MAD is 256 bytes in the order in which they travel; the functions take a pointer
 * to its first byte.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "prm/field.h"
#include "prm/ib.h"

#define MAD_BYTES	    256u
#define MAD_HEADER_BYTES    24u /* also the length of a report that a send has timed out */
#define MAD_RMPP_BYTES	    36u /* common header and RMPP's */
#define MAD_SMP_DATA	    64u /* where the 64-byte attribute of an SMP or PMA MAD begins */
#define MAD_ATTRIBUTE_BYTES 64u
#define MAD_LID_PERMISSIVE  0xffffu
#define MAD_LID_MULTICAST   0xc000u /* the first multicast LID */
#define MAD_QKEY_WELL_KNOWN 0x80010000u
#define MAD_DR_HOPS	    64u /* bytes of a path, whose first one has no use */

enum mad_class {
	MAD_CLASS_SMP_LID = 0x01,
	MAD_CLASS_SA = 0x03,
	MAD_CLASS_PERF = 0x04,
	MAD_CLASS_BM = 0x05,
	MAD_CLASS_DEV_MGMT = 0x06,
	MAD_CLASS_CM = 0x07,
	MAD_CLASS_VENDOR_MELLANOX = 0x0a,
	MAD_CLASS_CONGESTION = 0x21,
	MAD_CLASS_VENDOR2_FIRST = 0x30, /* classes from here on have an OUI and RMPP */
	MAD_CLASS_VENDOR2_LAST = 0x4f,
	MAD_CLASS_SMP_DIRECTED = 0x81,
};

enum mad_method {
	MAD_GET = 0x01,
	MAD_SET = 0x02,
	MAD_SEND = 0x03,
	MAD_TRAP = 0x05,
	MAD_REPORT = 0x06,
	MAD_TRAP_REPRESS = 0x07,
	MAD_GET_TABLE = 0x12,
	MAD_GET_MULTI = 0x14,
	MAD_DELETE = 0x15,
	MAD_RESPONSE = 0x80, /* the bit of all responses */
	MAD_GET_RESP = 0x81,
	MAD_REPORT_RESP = 0x86,
	MAD_DELETE_RESP = 0x95,
};

enum mad_status {
	MAD_STATUS_OK = 0,
	MAD_STATUS_BAD_VERSION = 0x0004,
	MAD_STATUS_BAD_METHOD = 0x0008,
	MAD_STATUS_BAD_METHOD_ATTRIBUTE = 0x000c,
	MAD_STATUS_BAD_VALUE = 0x001c,
	MAD_STATUS_DIRECTION = 0x8000, /* a bit: a directed SMP is on its way back */
};

/* Places of the fields, in bytes. */
enum mad_at {
	MAD_AT_BASE_VERSION = 0,
	MAD_AT_CLASS = 1,
	MAD_AT_CLASS_VERSION = 2,
	MAD_AT_METHOD = 3,
	MAD_AT_STATUS = 4, /* 16 bits */
	MAD_AT_HOP_POINTER = 6,
	MAD_AT_HOP_COUNT = 7,
	MAD_AT_TID = 8,
	MAD_AT_ATTRIBUTE = 16, /* 16 bits */
	MAD_AT_MODIFIER = 20,  /* 32 bits */
	MAD_AT_RMPP_VERSION = 24,
	MAD_AT_RMPP_TYPE = 25,
	MAD_AT_RMPP_FLAGS = 26, /* low 3 bits; RRespTime is above them */
	MAD_AT_RMPP_STATUS = 27,
	MAD_AT_RMPP_SEGMENT = 28, /* 32 bits */
	MAD_AT_RMPP_PAYLOAD = 32, /* 32 bits: PayloadLength or NewWindowLast */
	MAD_AT_OUI = 37,	  /* of vendor classes 0x30 to 0x4f */
	MAD_AT_SMP_MKEY = 24,	  /* 64 bits */
	MAD_AT_DR_SLID = 32,
	MAD_AT_DR_DLID = 34,
	MAD_AT_DR_INITIAL = 128,
	MAD_AT_DR_RETURN = 192,
};

enum mad_rmpp_type { MAD_RMPP_DATA = 1, MAD_RMPP_ACK, MAD_RMPP_STOP, MAD_RMPP_ABORT };
enum mad_rmpp_flag { MAD_RMPP_ACTIVE = 1, MAD_RMPP_FIRST = 2, MAD_RMPP_LAST = 4 };

static inline uint16_t mad_get16(const uint8_t *mad, unsigned at)
{
	return (uint16_t)(mad[at] << 8 | mad[at + 1]);
}

static inline uint32_t mad_get32(const uint8_t *mad, unsigned at)
{
	return (uint32_t)mad_get16(mad, at) << 16 | mad_get16(mad, at + 2);
}

static inline uint64_t mad_get64(const uint8_t *mad, unsigned at)
{
	return (uint64_t)mad_get32(mad, at) << 32 | mad_get32(mad, at + 4);
}

static inline void mad_put16(uint8_t *mad, unsigned at, uint32_t v)
{
	mad[at] = (uint8_t)(v >> 8);
	mad[at + 1] = (uint8_t)v;
}

static inline void mad_put32(uint8_t *mad, unsigned at, uint32_t v)
{
	mad_put16(mad, at, v >> 16);
	mad_put16(mad, at + 2, v);
}

static inline void mad_put64(uint8_t *mad, unsigned at, uint64_t v)
{
	mad_put32(mad, at, (uint32_t)(v >> 32));
	mad_put32(mad, at + 4, (uint32_t)v);
}

static inline bool mad_is_smp(const uint8_t *mad)
{
	return mad[MAD_AT_CLASS] == MAD_CLASS_SMP_LID ||
	       mad[MAD_AT_CLASS] == MAD_CLASS_SMP_DIRECTED;
}

static inline bool mad_is_directed(const uint8_t *mad)
{
	return mad[MAD_AT_CLASS] == MAD_CLASS_SMP_DIRECTED;
}

/* True for what the kernel takes for an answer: answers keep their TID, by which they find their
 * agent. */
static inline bool mad_is_response(const uint8_t *mad)
{
	return mad[MAD_AT_METHOD] & MAD_RESPONSE || mad[MAD_AT_METHOD] == MAD_TRAP_REPRESS ||
	       (mad[MAD_AT_CLASS] == MAD_CLASS_BM && mad_get32(mad, MAD_AT_MODIFIER) & 1);
}

static inline bool mad_class_is_vendor2(unsigned class)
{
	return class >= MAD_CLASS_VENDOR2_FIRST && class <= MAD_CLASS_VENDOR2_LAST;
}

static inline bool mad_class_has_rmpp(unsigned class)
{
	return class == MAD_CLASS_SA || class == MAD_CLASS_DEV_MGMT || class == 0x10 ||
	       class == 0x12 || mad_class_is_vendor2(class);
}

/* True if the RMPP header of the MAD is in use. */
static inline bool mad_rmpp_is_active(const uint8_t *mad)
{
	return mad_class_has_rmpp(mad[MAD_AT_CLASS]) && mad[MAD_AT_RMPP_FLAGS] & MAD_RMPP_ACTIVE;
}

/* Where the data begins in each segment of an RMPP message. */
static inline unsigned mad_data_at(unsigned class)
{
	if (class == MAD_CLASS_SA)
		return 56;
	if (class == MAD_CLASS_DEV_MGMT || class == 0x10 || class == 0x12)
		return 64;
	return mad_class_is_vendor2(class) ? 40 : MAD_HEADER_BYTES;
}

/* Turns a request into its answer: sets the method and, on a directed route, the direction. */
static inline void mad_answer(uint8_t *mad, unsigned method, unsigned status)
{
	mad[MAD_AT_METHOD] = (uint8_t)method;
	mad_put16(mad, MAD_AT_STATUS, status | (mad_is_directed(mad) ? MAD_STATUS_DIRECTION : 0));
}

/*
 * A datagram between a queue pair and queue pair 1 of a port, the general services interface (GSI):
 * a MAD with what the headers of its packet say, in host order.
 */

struct gsi_datagram {
	uint32_t row;  /* row of the subnet: the queue pair's own port */
	uint32_t qpn;  /* the queue pair's number */
	uint32_t qkey; /* the datagram's */
	uint32_t flow_label;
	uint16_t slid, dlid;
	uint16_t pkey;
	uint8_t sl;
	uint8_t grh; /* not 0: sgid, dgid and the three other fields of the GRH are valid */
	uint8_t hop_limit, traffic_class;
	uint8_t roce_v1; /* of an Ethernet port: not 0: RoCE v1, else v2 */
	uint8_t reserved[5];
	union ib_gid sgid, dgid;
	uint8_t mad[MAD_BYTES];
};

/* A packet with a key that its receiver, or a switch's port on its way, does not have.  Notices 257
 * to 259 tell of it (IBTA 14.2.5.1). */

enum key_violation_kind {
	VIOLATION_PKEY,
	VIOLATION_QKEY,
	VIOLATION_PKEY_AT_SWITCH,
};

struct key_violation {
	uint32_t
		/* Row of the subnet: the port that the packet came to or, if a switch dropped it,
		 * the port that it left. */
		row;
	uint32_t key; /* the packet's */
	uint32_t sqpn, dqpn;
	uint16_t slid, dlid;
	uint8_t sl;
	uint8_t kind; /* enum key_violation_kind */
	uint8_t grh;  /* not 0: sgid and dgid are valid */
	uint8_t reserved;
	union ib_gid sgid, dgid;
};
