/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Brief packets: SENDs of one packet on a connection (RC, UC) to another process, and positive
 * acknowledgements (RC).  They are written into the channel, and taken out of it, without
 * a struct pkt.  Short ones that are alike and sent in one go share a record, so that a list of
 * them takes few cache lines from one processor to the other.
 *
 * Their records are those of wire/record.h, so either end may treat such a packet like any other,
 * and does if anything about it is unusual.  But one thing is only done here: an acknowledgement
 * that the sender owes to the same peer goes in the record of a request, in front of it.  It is a
 * packet of its own all the same, for counters, taps and the one who takes it.
 *
 * InfiniBand without a global header only.
 */
#pragma once

#include "wire/record_form.h"
#include "wire/wire.h"

struct channel;

/* So many that have arrived are delivered at a time, and so many stand in one record at most, */
#define BRIEF_TRAIN 16u
/* if they have no longer payloads than this. */
#define BRIEF_SHARES 64u

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
	/* 1, or so many requests that differ in PSN and payload alone: psn is the first one's */
	uint32_t n;
	const uint8_t *payload; /* received */
};

/* The payloads of several requests stand so far apart. */
static inline uint32_t brief_stride(const struct brief *b)
{
	return record_part_bytes(b->payload_len);
}

/* Octets that each of its packets counts for. */
uint32_t brief_octets(uint8_t opcode, uint32_t payload_len);

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
/* Where the payloads of the next n belong, to be followed by brief_put, of fewer perhaps, or simply
 * forgotten; NULL: there is no room.  n: 1, or up to BRIEF_TRAIN of up to BRIEF_SHARES bytes. */
uint8_t *brief_reserve(struct brief_way *way, uint32_t payload_len, uint32_t n,
		       bool has_ack) must_check;
/* Sends them.  From now on the answer may come. */
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
/* Hands those of n records to the port's client, each of which follows on the one before; BRIEF_TRAIN
 * requests at most.  Returns how many requests it has taken: the next has to be unpacked. */
uint32_t brief_deliver(struct wire_process *h, uint32_t dst_port, const struct brief *b,
		       uint32_t n) must_check;
