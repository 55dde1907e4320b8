/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a capture of packets consists of, for those who show them and for the one who reads
 * (docs/design/capture.md).  Each process that takes part, and the daemon, has a ring of its own
 * (base/record_ring.h) to the program that captures.
 */
#pragma once

#include <stdint.h>

#include "prm/ib.h"
#include "prm/mad.h"

#define CAPTURE_TERMS	       8u
#define CAPTURE_SNAPLEN	       262144u	   /* as tcpdump: whatever comes */
#define CAPTURE_PAYLOAD_MAX    4096u	   /* of a packet */
#define CAPTURE_RING_BYTES     (16u << 20) /* if the user says nothing else */
#define CAPTURE_RING_BYTES_MIN (1u << 20)
#define CAPTURE_RING_BYTES_MAX (1u << 30)

enum capture_field {
	CAPTURE_QPN, /* either end's */
	CAPTURE_SQPN,
	CAPTURE_DQPN,
	CAPTURE_LID, /* either end's */
	CAPTURE_SLID,
	CAPTURE_DLID,
	CAPTURE_GID, /* either end's */
	CAPTURE_SGID,
	CAPTURE_DGID,
	CAPTURE_PKEY,
	/* Bits 31:0: the operations (BTH opcode 4:0); bits 39:32: the transports (opcode 7:5). */
	CAPTURE_OPCODES,
	CAPTURE_FIELDS,
};

struct capture_term {
	uint32_t field;	  /* enum capture_field */
	uint32_t differs; /* 1: packets match whose field is something else */
	uint64_t value;
	union ib_gid gid;
};

/* Kinds of records that a reader asks for; a bit each. */
enum capture_event {
	CAPTURE_EVENT_PACKET = 1, /* programs then make packets of all that they send */
	CAPTURE_EVENT_MAD = 2,
	CAPTURE_EVENT_WQE = 4, /* trace points (base/trace_points.h): of work requests */
	CAPTURE_EVENT_DOORBELL = 8,
	CAPTURE_EVENT_DPA = 16,
	CAPTURE_EVENT_DECISION = 32, /* all others */
	CAPTURE_EVENT_ALL = 63,
};
#define CAPTURE_EVENTS_TRACED \
	(CAPTURE_EVENT_WQE | CAPTURE_EVENT_DOORBELL | CAPTURE_EVENT_DPA | CAPTURE_EVENT_DECISION)

/* What whoever captures wants. */
struct capture_want {
	uint32_t snaplen; /* octets of a frame */
	uint32_t ring_bytes;
	uint32_t events; /* enum capture_event, at least one */
	uint32_t nterms; /* all of them match */
	struct capture_term term[CAPTURE_TERMS];
};

enum capture_kind {
	CAPTURE_PACKET, /* a record of a channel (wire/record.h) with its payload follows */
	CAPTURE_FRAME,	/* an Ethernet frame follows */
	CAPTURE_MAD,	/* struct capture_mad follows */
	CAPTURE_TRACE,	/* the text of a trace point follows: "group.name argument=value ..." */
};

/* A record of a ring. */
struct capture_head {
	uint64_t ns;	  /* CLOCK_REALTIME */
	uint32_t row;	  /* of the port; of CAPTURE_TRACE SUBNET_NONE */
	uint8_t kind;	  /* enum capture_kind */
	uint8_t received; /* the port has received it; 0: sent */
	uint8_t reserved[2];
	uint32_t header_bytes; /* of the record in front of its payload */
	uint32_t bytes;	       /* of the payload or the frame that follow */
	uint64_t whole;	       /* what the payload or the frame had; of CAPTURE_TRACE the thread */
};

/* A MAD as it goes from port to port. */
struct capture_mad {
	uint32_t sqpn, dqpn, qkey, flow_label;
	uint16_t slid, dlid, pkey;
	uint8_t sl, hop_limit, traffic_class;
	uint8_t grh, roce_v1, reserved[3];
	union ib_gid sgid, dgid;
	uint8_t mad[MAD_BYTES];
};
