/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet as it lies in a channel: what every packet needs, the optional parts that its opcode
 * (wire/bth.h) and path call for, then the payload or the list of its runs.  One cache line for an
 * acknowledgement and for a SEND of a word, two for a small write.
 *
 * An acknowledgement may lie in the record of a request of its connection, in front of it
 * (wire/short_send.h).
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "wire/bth.h"
#include "wire/pkt.h"

/*
 * The bytes of a record, for code that reads or writes them.  The base comes first,
 * then record_rare, record_ack, the parts that only record.c knows, and the payload.
 */

enum record_flag {
	RECORD_SOLICITED = 1 << 0,
	RECORD_ACK_REQ = 1 << 1,
	RECORD_GRH = 1 << 2,
	RECORD_ROCE_V1 = 1 << 3,
	RECORD_BY_REFERENCE = 1 << 4,
	RECORD_ACK = 1 << 5,	  /* an acknowledgement goes in front of the packet */
	RECORD_EXECUTED = 1 << 6, /* see struct pkt */
	RECORD_PLACED = 1 << 7,	  /* see struct pkt */
};

/* A flag in path_bits, which needs 7 bits: see struct pkt. */
#define RECORD_MIGREQ_CLEAR 0x80u

struct record_base {
	uint32_t ring; /* the ring's own word */
	uint8_t opcode;
	uint8_t flags; /* enum record_flag */
	uint8_t aeth;
	uint8_t sl;
	uint16_t pkey;
	uint16_t slid;
	uint16_t dlid;
	uint8_t path_bits; /* 6:0; RECORD_MIGREQ_CLEAR */
	/* By reference: the number of runs of the payload.  Otherwise, if not 0: the number of
	 * SENDs that share the record, see record_may_share. */
	uint8_t parts;
	uint32_t dqpn;
	uint32_t sqpn;
	uint32_t psn;
	uint32_t npkts;
	uint32_t src_port;
	uint32_t dst_port;
	uint32_t payload_len;
	uint32_t arg; /* the MSN of a packet with an AETH, otherwise immediate data or the like */
};

/* Datagrams, requests of XRC and payloads by reference have these. */
struct record_rare {
	uint32_t number; /* Q_Key, shared receive queue */
	/* By reference: not 0 if the sender has taken the payload back (enum record_withdrawal).
	 * Only the sender writes it, at any time. */
	_Atomic(uint32_t) withdrawn;
};

/* A positive acknowledgement of the connection that the packet belongs to. */
struct record_ack {
	uint32_t psn;
	uint32_t msn;
};

static_assert(sizeof(struct record_base) + sizeof(struct record_ack) + 8 == 64,
	      "a word with an acknowledgement takes one cache line");
static_assert(sizeof(struct record_base) + sizeof(struct record_rare) + 8 == 64,
	      "so does a word in a datagram");

/* True if the record holds a frame.  Only a hint, because the sender may still write there. */
static inline bool record_is_frame(const void *record)
{
	const struct record_base *base = record;

	return (base->opcode & BTH_TRANSPORT_MASK) == BTH_RAW;
}

/* True if the sender has hardly ever filled the next record by now.  Only a hint, too. */
static inline bool record_comes_alone(const void *record)
{
	const struct record_base *base = record;

	return record_is_frame(record) || bth_props_of(base->opcode)->atomic_ack;
}

/*
 * SENDs of one packet that follow each other may share a record.  It says everything once, with the
 * PSN of the first SEND.  The payloads have one length and stand one behind the other, this many
 * bytes apart.
 */
static inline uint32_t record_part_bytes(uint32_t payload_len)
{
	return (uint32_t)align_up(payload_len, 8);
}

static inline bool record_may_share(uint8_t opcode)
{
	switch (opcode) {
	case BTH_RC | BTH_SEND_ONLY:
	case BTH_RC | BTH_SEND_ONLY_IMM:
	case BTH_UC | BTH_SEND_ONLY:
	case BTH_UC | BTH_SEND_ONLY_IMM:
		return true;
	default:
		return false;
	}
}

static inline bool record_has_rare(uint8_t opcode, uint8_t flags)
{
	const struct bth_transport_props *t = bth_transport_props_of(opcode);

	return flags & RECORD_BY_REFERENCE || t->deth ||
	       (t->xrceth && bth_props_of(opcode)->request);
}

/* An unpacked packet; pkt points into the other members. */
struct record_pkt {
	struct pkt pkt;
	bool has_ack;
	struct pkt ack; /* its sender sent it before pkt */
	uint32_t parts; /* packets that the record holds, in their order */
	struct path path;
	struct pkt_dc dc;
	struct run runs[RUNS_MAX];
};

/* Selects the payloads by reference that their sender takes back. */
struct record_refs {
	uint32_t sqpn;	   /* of this queue pair; 0: of any */
	uint32_t src_port; /* if any: only of queue pairs that send from this port */
	uint32_t key;	   /* and that have some of the payload under this key */
	struct run memory; /* in this memory */
};

/* Values of pkt.withdrawn for a record. */
enum record_withdrawal {
	RECORD_GIVEN_UP = 1,
	RECORD_MEMORY_GONE, /* the request stands, but not its payload or places */
};

/* Bytes of the record, a multiple of RING_ALIGN; 0 if the packet cannot be sent in that form. */
uint32_t record_bytes(const struct pkt *p, bool by_reference);
/* Bytes of the record in front of a payload that goes along. */
uint32_t record_header_bytes(const struct pkt *p);
/* Fills everything except the payload and the ring's word, which is 0.  Returns where the payload
 * belongs if it goes along. */
void *record_pack(void *record, const struct pkt *p, bool by_reference);
/*
 * Takes the payload of a record back if it goes by reference and refs selects it.  A receiver that
 * has not read it by now takes the packet for lost; if only the places of a READ no longer exist,
 * it takes the READ for one that offers none.  Returns the sender's queue pair, or 0.
 */
uint32_t record_withdraw(void *record, uint32_t bytes, const struct record_refs *refs);
/*
 * Unpacks one packet of the record, by its place.  Checks every length against the record's own;
 * copies the header before it looks at it, and leaves the payload in place.  sender: the process
 * that payloads by reference belong to, NULL if both sides have not agreed on them.  -EPROTO if the
 * record is malformed, or if it has no packet at that place.
 */
int record_unpack_part(const void *record, uint32_t bytes, uint32_t part,
		       struct pkt_foreign *sender, struct record_pkt *out) must_check;

static inline must_check int record_unpack(const void *record, uint32_t bytes,
					   struct pkt_foreign *sender, struct record_pkt *out)
{
	return record_unpack_part(record, bytes, 0, sender, out);
}
