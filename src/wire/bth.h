/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The base transport header's opcode: what each operation is, which extended headers stand behind
 * the BTH, and how long they are (IBTA volume 1, chapter 9, tables "OpCode field" and "Header and
 * data field source").  Sizes, records, and code that writes or shows headers follow the tables
 * here.  The tables are constants in this header, so that a question about a known opcode costs
 * nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BTH_OP_MASK	   0x1fu
#define BTH_TRANSPORT_MASK 0xe0u

/* BTH opcode, low five bits (IBTA table 38); the transport is in the upper three. */
enum bth_op {
	BTH_SEND_FIRST = 0x00,
	BTH_SEND_MIDDLE = 0x01,
	BTH_SEND_LAST = 0x02,
	BTH_SEND_LAST_IMM = 0x03,
	BTH_SEND_ONLY = 0x04,
	BTH_SEND_ONLY_IMM = 0x05,
	BTH_WRITE_FIRST = 0x06,
	BTH_WRITE_MIDDLE = 0x07,
	BTH_WRITE_LAST = 0x08,
	BTH_WRITE_LAST_IMM = 0x09,
	BTH_WRITE_ONLY = 0x0a,
	BTH_WRITE_ONLY_IMM = 0x0b,
	BTH_READ_REQUEST = 0x0c,
	BTH_READ_RESP_FIRST = 0x0d,
	BTH_READ_RESP_MIDDLE = 0x0e,
	BTH_READ_RESP_LAST = 0x0f,
	BTH_READ_RESP_ONLY = 0x10,
	BTH_ACK = 0x11,
	BTH_ATOMIC_ACK = 0x12,
	BTH_COMPARE_SWAP = 0x13,
	BTH_FETCH_ADD = 0x14,
	BTH_SEND_LAST_INV = 0x16,
	BTH_SEND_ONLY_INV = 0x17,
	/* The specification has none of these; how cards send them is not public. */
	BTH_MASKED_COMPARE_SWAP = 0x18,
	BTH_MASKED_FETCH_ADD = 0x19,
	BTH_OP_COUNT = 0x20,
};

enum bth_transport {
	BTH_RC = 0x00,
	BTH_UC = 0x20,
	BTH_RD = 0x40,
	BTH_UD = 0x60,
	BTH_CNP = 0x80,
	BTH_XRC = 0xa0,
	/* Dynamically connected: the specification has no such transport, so it uses an opcode for
	 * manufacturers. */
	BTH_DC = 0xc0,
	/* An Ethernet frame, which has no BTH (the opcode is for manufacturers); the payload is the
	 * frame. */
	BTH_RAW = 0xe0,
};

/* The opcode of a notification of congestion (IBTA A17.9.3); its transport has no other. */
#define BTH_CONGESTION (BTH_CNP | 0x01u)

/*
 * Who sends a frame for a port, if it is no queue, in place of the queue's number.  These numbers
 * are no process's, so that each process may use them.
 */
enum frame_sender {
	FRAME_OF_TIE,	 /* it comes from outside of the fabric, to the programs of the port */
	FRAME_OF_SWITCH, /* it has come from the wire, and a rule sends it there again */
	FRAME_OF_PACKET, /* a packet as a frame of RoCE, for those who sniff (wire/tap.h) */
};

/*
 * Properties of an operation.  Code asks for these and never lists opcodes.  They are a struct, so
 * that nobody mixes a mask with an opcode.
 */
struct bth_props {
	bool request : 1;  /* towards the responder */
	bool response : 1; /* towards the requester */
	bool first : 1;	   /* begins a message (FIRST or ONLY) */
	bool last : 1;	   /* ends a message (LAST or ONLY) */
	bool send : 1;
	bool write : 1;
	bool read : 1;
	bool atomic : 1;
	bool masked : 1; /* an atomic of 4 or 8 bytes with masks: dma_len says which */
	/* Extended headers, in the order in which they stand behind the transport's own. */
	bool reth : 1;
	bool atomic_eth : 1;
	bool aeth : 1;
	bool atomic_ack : 1;
	bool imm : 1;
	bool ieth : 1;
	bool payload : 1;
};

/* Extended headers that each packet of a transport has, right behind the BTH. */
struct bth_transport_props {
	bool deth : 1;
	bool xrceth : 1; /* of a request */
	bool dc : 1;	 /* of a request: struct pkt_dc */
};

#define BTH_OCTETS	  12u
#define DETH_OCTETS	  8u
#define XRCETH_OCTETS	  4u
#define DC_OCTETS	  20u /* ours: key, connection, PSN */
#define CNP_OCTETS	  16u /* reserved, zeros */
#define RETH_OCTETS	  16u
#define ATOMIC_ETH_OCTETS 28u
#define AETH_OCTETS	  4u
#define ATOMIC_ACK_OCTETS 8u
#define IMM_OCTETS	  4u
#define IETH_OCTETS	  4u

static const struct bth_props bth_props[BTH_OP_COUNT] = {
	[BTH_SEND_FIRST] = {.request = 1, .first = 1, .send = 1, .payload = 1},
	[BTH_SEND_MIDDLE] = {.request = 1, .send = 1, .payload = 1},
	[BTH_SEND_LAST] = {.request = 1, .last = 1, .send = 1, .payload = 1},
	[BTH_SEND_LAST_IMM] = {.request = 1, .last = 1, .send = 1, .imm = 1, .payload = 1},
	[BTH_SEND_ONLY] = {.request = 1, .first = 1, .last = 1, .send = 1, .payload = 1},
	[BTH_SEND_ONLY_IMM] =
		{.request = 1, .first = 1, .last = 1, .send = 1, .imm = 1, .payload = 1},
	[BTH_WRITE_FIRST] = {.request = 1, .first = 1, .write = 1, .reth = 1, .payload = 1},
	[BTH_WRITE_MIDDLE] = {.request = 1, .write = 1, .payload = 1},
	[BTH_WRITE_LAST] = {.request = 1, .last = 1, .write = 1, .payload = 1},
	[BTH_WRITE_LAST_IMM] = {.request = 1, .last = 1, .write = 1, .imm = 1, .payload = 1},
	[BTH_WRITE_ONLY] =
		{.request = 1, .first = 1, .last = 1, .write = 1, .reth = 1, .payload = 1},
	[BTH_WRITE_ONLY_IMM] = {.request = 1,
				.first = 1,
				.last = 1,
				.write = 1,
				.reth = 1,
				.imm = 1,
				.payload = 1},
	[BTH_READ_REQUEST] = {.request = 1, .first = 1, .last = 1, .read = 1, .reth = 1},
	[BTH_READ_RESP_FIRST] = {.response = 1, .first = 1, .read = 1, .aeth = 1, .payload = 1},
	[BTH_READ_RESP_MIDDLE] = {.response = 1, .read = 1, .payload = 1},
	[BTH_READ_RESP_LAST] = {.response = 1, .last = 1, .read = 1, .aeth = 1, .payload = 1},
	[BTH_READ_RESP_ONLY] =
		{.response = 1, .first = 1, .last = 1, .read = 1, .aeth = 1, .payload = 1},
	[BTH_ACK] = {.response = 1, .first = 1, .last = 1, .aeth = 1},
	[BTH_ATOMIC_ACK] =
		{.response = 1, .first = 1, .last = 1, .atomic = 1, .aeth = 1, .atomic_ack = 1},
	[BTH_COMPARE_SWAP] = {.request = 1, .first = 1, .last = 1, .atomic = 1, .atomic_eth = 1},
	[BTH_FETCH_ADD] = {.request = 1, .first = 1, .last = 1, .atomic = 1, .atomic_eth = 1},
	[BTH_MASKED_COMPARE_SWAP] =
		{.request = 1, .first = 1, .last = 1, .atomic = 1, .masked = 1, .atomic_eth = 1},
	[BTH_MASKED_FETCH_ADD] =
		{.request = 1, .first = 1, .last = 1, .atomic = 1, .masked = 1, .atomic_eth = 1},
	[BTH_SEND_LAST_INV] = {.request = 1, .last = 1, .send = 1, .ieth = 1, .payload = 1},
	[BTH_SEND_ONLY_INV] =
		{.request = 1, .first = 1, .last = 1, .send = 1, .ieth = 1, .payload = 1},
};

/* The upper three bits of the opcode. */
enum bth_transport_row {
	BTH_ROW_UD = BTH_UD >> 5,
	BTH_ROW_XRC = BTH_XRC >> 5,
	BTH_ROW_DC = BTH_DC >> 5,
	BTH_ROWS = 8,
};

static const struct bth_transport_props bth_transport_props[BTH_ROWS] = {
	[BTH_ROW_UD] = {.deth = 1},
	[BTH_ROW_XRC] = {.xrceth = 1},
	[BTH_ROW_DC] = {.dc = 1},
};

static inline const struct bth_props *bth_props_of(uint8_t opcode)
{
	return &bth_props[opcode & BTH_OP_MASK];
}

static inline const struct bth_transport_props *bth_transport_props_of(uint8_t opcode)
{
	return &bth_transport_props[opcode >> 5];
}

/* Octets of the operation's extended headers. */
static inline uint32_t bth_ext_octets(const struct bth_props *p)
{
	return p->reth * RETH_OCTETS + p->atomic_eth * ATOMIC_ETH_OCTETS + p->aeth * AETH_OCTETS +
	       p->atomic_ack * ATOMIC_ACK_OCTETS + p->imm * IMM_OCTETS + p->ieth * IETH_OCTETS;
}

/*
 * The same for a packet that stands for several packets of the path MTU.  Headers that begin or end
 * the message stand in only one of those, but the first and the last packet of a read response both
 * have an AETH.
 */
static inline uint32_t bth_ext_octets_of_many(const struct bth_props *p)
{
	return bth_ext_octets(p) + (p->aeth && p->first && p->last ? AETH_OCTETS : 0);
}

/* Octets of the transport's headers in each packet. */
static inline uint32_t bth_transport_octets(uint8_t opcode)
{
	const struct bth_transport_props *t = bth_transport_props_of(opcode);
	bool request = bth_props_of(opcode)->request;

	return t->deth * DETH_OCTETS + (t->xrceth && request ? XRCETH_OCTETS : 0) +
	       (t->dc && request ? DC_OCTETS : 0) + (opcode == BTH_CONGESTION ? CNP_OCTETS : 0);
}

/*
 * One packet may stand for several of a message (wire/pkt.h).  The operation of one of them; begins,
 * ends: it is the first one, the last one.
 */
static inline uint8_t bth_op_part(uint8_t opcode, bool begins, bool ends)
{
	const struct bth_props *p = bth_props_of(opcode);
	uint8_t transport = opcode & BTH_TRANSPORT_MASK;
	uint8_t first = p->send ? BTH_SEND_FIRST : p->write ? BTH_WRITE_FIRST : BTH_READ_RESP_FIRST;

	begins = begins && p->first;
	ends = ends && p->last;
	if (begins && ends)
		return opcode;
	if (!ends)
		return transport | (begins ? first : (uint8_t)(first + 1));
	return p->first ? (uint8_t)(opcode - (p->ieth || p->read ? 1 : 2)) : opcode;
}

/* The operation of a packet that stands for all from one to another one of the same message. */
static inline uint8_t bth_op_join(uint8_t from, uint8_t to)
{
	const struct bth_props *end = bth_props_of(to);

	if (!bth_props_of(from)->first)
		return to;
	return end->last ? (uint8_t)(to + (end->ieth || end->read ? 1 : 2)) : from;
}

/* The operation's name for traces. */
const char *bth_op_name(uint8_t opcode);
