/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of queue pairs through a tie.  What a queue pair of the port sends to somebody outside of
 * the fabric goes out as a frame of RoCE, and a frame of RoCE to an address of the port goes to a
 * queue pair.
 */
#pragma once

#include "tie/neighbour.h"
#include "wire/roce.h"
#include "wire/wire.h"

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
	PACKETS_NONE,	/* for no queue pair of the port: an ordinary frame */
	PACKETS_BAD,	/* it looks like RoCE, but is spoiled */
	PACKETS_PACKET, /* 'out' is the packet */
};

/* Takes a frame that came in. */
enum packets_verdict packets_take(struct packets *p, const uint8_t *frame, uint32_t bytes,
				  struct roce_packet *out) must_check;
