// SPDX-License-Identifier: BSD-2-Clause
/* First inputs of the packet target. */
#include <stdio.h>

#include "fuzz_device.h"
#include "packet_ops.h"
#include "wire/record.h"
#include "wire/ring.h"

static void put_op(struct seed *s, unsigned qp, enum op op)
{
	put_u8(s, qp * OP_COUNT + op);
}

/* Names the keys of what follows. */
static uint8_t seed_which;

static void put_begin(struct seed *s, uint32_t kinds)
{
	put_u8(s, kinds);
	if (kinds & KINDS_SIGNED)
		put_u8(s, kinds >> 8); /* signatures */
	for (unsigned i = 0; i < FUZZ_QPS; i++) {
		put_u8(s, 0x44); /* reads and atomics at a time */
		put_u8(s, 0x0f);
		put_u8(s, 2);
		put_u8(s, 0);
	}
}

/* What changes in its record follows. */
static void put_packet_begin(struct seed *s, unsigned qp, uint8_t opcode, uint8_t flags,
			     uint8_t psn, uint16_t dma_len, uint16_t len)
{
	put_op(s, qp, OP_PACKET);
	put_u8(s, opcode);
	put_u8(s, flags | 8);
	put_u8(s, seed_which);
	put_u8(s, AETH_ACK | AETH_NO_CREDIT);
	put_u8(s, psn);
	put_u8(s, 0);
	put_u8(s, 0);
	put_u16(s, 64);
	put_u16(s, dma_len);
	put_u8(s, 1);
	put_u8(s, 2);
	put_u16(s, len);
	if (flags & 64) {
		put_u16(s, 0);
		put_u16(s, 0);
		put_u8(s, 0);
		put_u16(s, 0);
		put_u8(s, 0);
	}
	if (pkt_has_dc(&(struct pkt){.opcode = opcode})) {
		put_u8(s, 1);
		put_u8(s, psn);
		put_u8(s, 0);
	}
}

static void put_packet(struct seed *s, unsigned qp, uint8_t opcode, uint8_t flags, uint8_t psn,
		       uint16_t dma_len, uint16_t len)
{
	put_packet_begin(s, qp, opcode, flags, psn, dma_len, len);
	put_u8(s, 0);
}

/* So many SENDs of a word that share a record. */
static void put_shared(struct seed *s, unsigned qp, uint8_t opcode, uint8_t psn, uint8_t n)
{
	put_packet_begin(s, qp, opcode, 0, psn, 0, (uint16_t)(n * 8));
	put_u8(s, 2);
	put_u16(s, offsetof(struct record_base, parts));
	put_u8(s, n);
	put_u16(s, offsetof(struct record_base, payload_len));
	put_u8(s, 8);
}

static void put_recv(struct seed *s, unsigned qp)
{
	put_op(s, qp, OP_RECV);
	put_u8(s, seed_which);
	put_u16(s, 4096);
	put_u16(s, 0);
}

static void put_send(struct seed *s, unsigned qp, unsigned kind, uint32_t len)
{
	put_op(s, qp, OP_SEND);
	put_u8(s, kind);
	put_u8(s, seed_which);
	put_u8(s, WQE_CTRL_CE_ALWAYS);
	if (kind != 3 && kind != 4)
		put_u16(s, len);
	put_u16(s, 0);
}

void target_seeds(struct seed *s)
{
	static const uint8_t requests[] = {
		BTH_SEND_ONLY,	  BTH_SEND_ONLY_IMM, BTH_WRITE_ONLY, BTH_WRITE_ONLY_IMM,
		BTH_READ_REQUEST, BTH_COMPARE_SWAP,  BTH_FETCH_ADD,  BTH_SEND_ONLY_INV,
	};
	static const uint8_t transports[] = {BTH_RC, BTH_UC, BTH_UD, BTH_DC};
	char name[32];

	for (unsigned dev = 0; dev < 2; dev++)
		for (unsigned t = 0; t < array_size(transports); t++) {
			bool dc = transports[t] == BTH_DC;
			unsigned qp = dc ? 1 : t;

			put_begin(s, dev << 7 | (dc ? 4 : 0));
			for (unsigned i = 0; i < array_size(requests); i++) {
				put_recv(s, qp);
				put_packet(s, qp, requests[i] | transports[t], 0, (uint8_t)i, 100,
					   requests[i] == BTH_READ_REQUEST ? 0 : 100);
				put_op(s, qp, OP_DELIVER);
				put_op(s, qp, OP_PROGRESS);
				put_op(s, qp, OP_TAKE);
			}
			snprintf(name, sizeof(name), "requests-%u-%u", dev, t);
			put_end(s, name);
		}

	/* Keys with signatures in all places. */
	seed_which = WHICH_SIGNED;
	for (unsigned what = 0; what < 256; what += 23) {
		put_begin(s, what << 8 | KINDS_SIGNED);
		put_recv(s, 0);
		put_packet(s, 0, BTH_SEND_FIRST, 64, 0, 0, 1024);
		put_packet(s, 0, BTH_SEND_LAST, 0, 1, 0, 500);
		put_packet(s, 0, BTH_WRITE_ONLY, 0, 2, 700, 700);
		put_packet(s, 0, BTH_READ_REQUEST, 0, 3, 900, 0);
		put_op(s, 0, OP_DELIVER);
		put_send(s, 0, 0, 600);
		put_send(s, 0, 1, 800);
		put_send(s, 0, 2, 1200);
		put_packet(s, 0, BTH_READ_RESP_FIRST, 0, 2, 0, 1024);
		put_packet(s, 0, BTH_READ_RESP_LAST, 0, 3, 0, 176);
		put_op(s, 0, OP_DELIVER);
		put_op(s, 0, OP_TAKE);
		snprintf(name, sizeof(name), "signed-%u", what);
		put_end(s, name);
	}
	seed_which = 0;

	/* For some of them there is a receive, then for all. */
	for (unsigned qp = 0; qp < 2; qp++) {
		uint8_t transport = qp ? BTH_UC : BTH_RC;

		put_begin(s, 0);
		for (unsigned i = 0; i < 6; i++)
			put_recv(s, qp);
		put_shared(s, qp, BTH_SEND_ONLY | transport, 0, 3);
		put_shared(s, qp, BTH_SEND_ONLY_IMM | transport, 3, 16);
		put_op(s, qp, OP_DELIVER);
		put_op(s, qp, OP_TAKE);
		for (unsigned i = 0; i < 14; i++)
			put_recv(s, qp);
		put_shared(s, qp, BTH_SEND_ONLY_IMM | transport, 3, 16);
		put_op(s, qp, OP_DELIVER);
		put_op(s, qp, OP_PROGRESS);
		snprintf(name, sizeof(name), "shared-%u", qp);
		put_end(s, name);
	}

	/* A message in three packets, by reference. */
	put_begin(s, 0);
	put_packet(s, 0, BTH_WRITE_FIRST, 64, 0, 3072, 1024);
	put_packet(s, 0, BTH_WRITE_MIDDLE, 64, 1, 0, 1024);
	put_packet(s, 0, BTH_WRITE_LAST, 64, 2, 0, 1024);
	put_op(s, 0, OP_DELIVER);
	put_op(s, 0, OP_PROGRESS);
	put_end(s, "message");

	/* Our requests and their answers. */
	put_begin(s, 0);
	put_send(s, 0, 0, 100);
	put_send(s, 0, 2, 3000);
	put_send(s, 0, 3, 0);
	put_packet(s, 0, BTH_ACK, 0, 0, 0, 0);
	put_packet(s, 0, BTH_READ_RESP_FIRST, 0, 1, 0, 1024);
	put_packet(s, 0, BTH_READ_RESP_MIDDLE, 0, 2, 0, 1024);
	put_packet(s, 0, BTH_READ_RESP_LAST, 0, 3, 0, 952);
	put_packet(s, 0, BTH_ATOMIC_ACK, 0, 4, 0, 0);
	put_op(s, 0, OP_DELIVER);
	put_op(s, 0, OP_TAKE);
	put_end(s, "answers");

	put_begin(s, 0);
	put_op(s, 0, OP_UNPACK);
	put_u8(s, 1);
	put_u8(s, 0);
	put_u32(s, 128);
	for (unsigned i = 0; i < 7; i++)
		put_u32(s, 0);
	put_u32(s, 1); /* packets */
	for (unsigned i = 0; i < 5; i++)
		put_u32(s, 0);
	put_u32(s, 64); /* payload */
	for (unsigned i = 0; i < 19; i++)
		put_u32(s, 0x5a5a5a5a);
	put_op(s, 0, OP_PEEK);
	put_u16(s, RING_MIN_BYTES / RING_ALIGN - 3);
	put_u8(s, 3);
	put_u32(s, 128);
	put_u32(s, RING_TURN);
	put_u32(s, 256);
	put_end(s, "parsers");

	put_begin(s, 0);
	put_send(s, 1, 0, 100);
	put_packet(s, 1, BTH_SEND_ONLY | BTH_UC, 0, 0, 0, 100);
	put_op(s, 0, OP_CURSOR);
	put_u8(s, 3);
	put_u64(s, 1);
	put_op(s, 0, OP_DELIVER);
	put_end(s, "cursor");
}
