/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Brief packets: SENDs of one packet on a connection (RC, UC) to another process, and positive
 * acknowledgements (RC).  They are written into the channel, and taken out of it, without
 * a struct pkt.
 *
 * Their records are those of wire/record.h, so either end may treat such a packet like any other,
 * and does if anything about it is unusual.  But one thing is only done here: an acknowledgement
 * that the sender owes to the same peer goes in the record of a request, in front of it.  It is a
 * packet of its own all the same, for counters, taps and the one who takes it.
 *
 * InfiniBand without a global header only.
 */
#pragma once

#include "wire/wire.h"

struct channel;

/* So many that have arrived are delivered at a time. */
#define BRIEF_TRAIN 16u

struct brief {
	uint8_t opcode; /* SEND_ONLY, SEND_ONLY_IMM, ACK */
	bool solicited;
	bool ack_req;
	bool has_ack; /* in front of a SEND; of an ACK received, itself */
	uint16_t pkey;
	uint16_t slid;
	uint8_t sl;
	uint32_t dqpn;
	uint32_t sqpn;
	uint32_t psn;
	uint32_t imm;
	uint32_t ack_psn;
	uint32_t ack_msn;
	uint32_t src_port;
	uint32_t payload_len;
	/* received */
	const uint8_t *payload;
	uint32_t packets; /* what they count for */
	uint32_t octets;
};

/* ---- sending ---- */

/* The way of a connection, while some are sent. */
struct brief_way {
	struct wire *wire;
	const struct path *path;
	struct channel *ch; /* its sending side is locked */
	uint32_t owner;
	void *record; /* reserved */
	uint32_t packets;
	uint64_t octets;
};

/* False: this connection has no such way now.  Otherwise brief_end must follow, and no lock may be
 * waited for before it. */
bool brief_begin(struct wire *w, const struct path *path, uint32_t dqpn,
		 struct brief_way *way) must_check;
/* Where the payload of the next one belongs, to be followed by brief_put or simply forgotten; NULL:
 * there is no room. */
uint8_t *brief_reserve(struct brief_way *way, uint32_t payload_len, bool has_ack) must_check;
/* Sends it.  From now on the answer may come. */
void brief_put(struct brief_way *way, const struct brief *b);
/* Sends an acknowledgement by itself; false: it has to be a packet. */
bool brief_acknowledge(struct wire *w, const struct path *path, const struct brief *b) must_check;
/* Tells the peer, and counts. */
void brief_end(struct brief_way *way);

/* ---- receiving ---- */

/* Reads a record of the channel; false: it is of another kind, or malformed. */
bool brief_read(const void *record, uint32_t bytes, struct brief *out,
		uint32_t *dst_port) must_check;
/* Of two records that stand one behind the other: are they requests of one connection, without an
 * acknowledgement between them? */
bool brief_follows(const struct brief *b, const struct brief *next) must_check;
/* Hands n of them to the port's client, each of which follows on the one before.  Returns how many it has
 * taken: the record of the next has to be unpacked. */
uint32_t brief_deliver(struct wire_process *h, uint32_t dst_port, const struct brief *b,
		       uint32_t n) must_check;
