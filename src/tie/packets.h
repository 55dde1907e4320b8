/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of queue pairs through a tie.  What a queue pair of the port sends to somebody outside of
 * the fabric goes out as a frame of RoCE, and a frame of RoCE to an address of the port goes to a
 * queue pair.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "prm/mad.h"
#include "subnet/subnet.h"
#include "wire/roce.h"
#include "wire/wire.h"

/* ---- neighbours ---- */

/*
 * Who is at the other end of a tied port: which station has which address.  An address that was
 * made of a MAC contains it.  The others are learned from frames that come in, and those of IPv4
 * asked for by ARP (RFC 826), as the kernel would do for its own port.  Stations are asked and
 * answered for RoCE alone, because programs handle their own frames.  Any thread may call these.
 */

#define ARP_FRAME_BYTES	 42u
#define NEIGHBOUR_ROWS	 256u /* a power of two */
#define NEIGHBOUR_ASK_NS 100000000u

struct neighbour {
	union ib_gid gid;
	uint8_t mac[6];
	bool used;
	bool known;
	uint64_t asked_ns;
};

/* An address has one row; if two want the same row, the later one gets it. */
struct neighbours {
	const struct subnet *subnet;
	uint32_t row; /* row of the port */
	pthread_mutex_t lock;
	struct neighbour entry[NEIGHBOUR_ROWS];
};

/*
 * Learns from a frame that came in, if it is of ARP.  True: the frame asks for a RoCE address of
 * the port, and 'answer' is the answer.
 */
bool neighbour_answers(struct neighbours *n, const uint8_t *frame, uint32_t bytes,
		       uint8_t arp[ARP_FRAME_BYTES]);

/* ---- packets ---- */

struct packets {
	struct neighbours neighbours;
	const struct subnet *subnet;
	uint32_t row;
};

void packets_init(struct packets *p, const struct subnet *subnet, uint32_t row);
void packets_release(struct packets *p);

/* 'frame' has 'bytes' bytes; 0: the packet cannot go out now.  'arp': a request has to go first. */
struct packets_out {
	uint32_t bytes;
	bool asks;
	uint8_t arp[ARP_FRAME_BYTES];
	uint8_t frame[ROCE_FRAME_MAX];
};

/* Makes frames of a packet that the port has sent. */
void packets_put(struct packets *p, const struct pkt *pkt, struct packets_out *out);

enum packets_verdict {
	PACKETS_NONE,	  /* for no queue pair of the port: an ordinary frame */
	PACKETS_BAD,	  /* it looks like RoCE, but its headers make no sense */
	PACKETS_CHECKSUM, /* the same, and its CRC is wrong */
	PACKETS_PACKET,	  /* 'out' is the packet */
};

/* Takes a frame that came in. */
enum packets_verdict packets_take(struct packets *p, const uint8_t *frame, uint32_t bytes,
				  struct roce_packet *out) must_check;
/* Completes a packet that was found by other means: whose addresses it has. */
void packets_locate(const struct packets *p, struct roce_packet *packet);

/*
 * Packets of one message that have come in a row, joined to one that stands for them all: for the
 * queue pair that costs hardly more than the first.  The payloads stay where they are.
 */
#define PACKETS_JOINED_MAX 16u

struct packets_joined {
	struct roce_packet packet; /* if n is not 0 */
	uint32_t n;
	uint32_t most; /* octets of payload that a packet to that queue pair may have */
	struct run runs[PACKETS_JOINED_MAX];
};

/* Begins with the packet.  most: see above; 0: nothing can be joined to it. */
void packets_join_begin(struct packets_joined *j, const struct roce_packet *packet, uint32_t most);
/* Joins the packet, which comes from the same address as the one before; false: it begins anew. */
bool packets_join(struct packets_joined *j, const struct roce_packet *packet) must_check;
/* Makes what the daemon takes of a packet to queue pair 1; false: it is no MAD. */
bool packets_mad(const struct roce_packet *packet, struct gsi_datagram *out) must_check;
