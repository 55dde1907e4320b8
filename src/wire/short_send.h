/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short SENDs: of one packet, on a connection (RC, UC) to another process.  The sender writes
 * them into the channel, and the receiver takes them out, without a struct pkt.  Short SENDs that are
 * alike and go out together share a record, so that a list of them takes few cache lines from one
 * processor to the other.
 *
 * Their records are those of wire/record.h, so either end may treat such a packet like any other,
 * and does so if anything about it is unusual.  Only this code puts an acknowledgement that the
 * sender owes to the same peer into the record of a request, in front of it.  Counters, taps and
 * the receiver still treat it as a packet of its own.
 *
 * It is only for InfiniBand without a global header.
 */
#pragma once

#include "wire/record.h"
#include "wire/wire.h"

struct channel;

/* The most requests that share one record. */
#define SHORT_SEND_MAX 16u
/* Requests share a record only if their payloads are no longer than this. */
#define SHORT_SEND_SHARES 64u

struct short_send {
	uint8_t opcode; /* SEND_ONLY, SEND_ONLY_IMM */
	bool solicited;
	bool ack_req;
	bool has_ack; /* an acknowledgement stands in front of the SEND (RC) */
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
	/* The number of requests, which differ only in PSN and payload; psn is the first one's. */
	uint32_t n;
	const uint8_t *payload; /* received */
};

/* How far apart the payloads of requests in one record stand. */
static inline uint32_t short_send_stride(const struct short_send *b)
{
	return record_part_bytes(b->payload_len);
}

/* Octets that the port counters count for each of its packets. */
uint32_t short_send_octets(uint8_t opcode, uint32_t payload_len);

/* ---- sending ---- */

/* Short SENDs to one connection's peer, while a requester sends them. */
struct short_send_batch {
	struct wire *wire;
	const struct path *path;
	struct channel *ch; /* its sending side is locked */
	uint32_t owner;
	void *record; /* reserved */
	uint32_t packets;
	uint64_t octets;
};

/* False: short SENDs cannot go to this peer now.  Otherwise the caller must call short_send_end, and
 * must not wait for a lock before that. */
bool short_send_begin(struct wire *w, const struct path *path, uint32_t dqpn,
		      struct short_send_batch *batch) must_check;
/* Reserves room for the next n requests and returns where their payloads belong; NULL: there is no
 * room.  The caller then calls short_send_put, perhaps for fewer, or simply forgets the room.  n: 1, or
 * up to SHORT_SEND_MAX requests of up to SHORT_SEND_SHARES bytes. */
uint8_t *short_send_reserve(struct short_send_batch *batch, uint32_t payload_len, uint32_t n,
			    bool has_ack) must_check;
/* Sends the requests.  The answer may come from now on. */
void short_send_put(struct short_send_batch *batch, const struct short_send *b);
/* Tells the peer that something has come, and counts what was sent. */
void short_send_end(struct short_send_batch *batch);

/* ---- receiving ---- */

/* Reads a record of the channel; false: it is of another kind, or malformed. */
bool short_send_read(const void *record, uint32_t bytes, struct short_send *out,
		     uint32_t *dst_port) must_check;
/* Hands the requests of a record to the port's client.  Returns how many of them the client has taken;
 * the caller has to unpack the next one. */
uint32_t short_send_deliver(struct wire_process *h, uint32_t dst_port,
			    const struct short_send *b) must_check;
