/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is at the other end of a tied port: which station has which address.  An address that is made of a MAC
 * says it itself; others are learned from what comes in, and those of IPv4 asked for by ARP (RFC 826), as the
 * kernel would for a port of its own.  Stations are asked and answered for RoCE alone: the programs' frames
 * are the programs' business.  From any thread.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "subnet/subnet.h"

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

/* An address has one row: of two that want the same one, the later has it. */
struct neighbours {
	const struct subnet *subnet;
	uint32_t row; /* of the port */
	pthread_mutex_t lock;
	struct neighbour entry[NEIGHBOUR_ROWS];
};

void neighbours_init(struct neighbours *n, const struct subnet *subnet, uint32_t row);
void neighbours_release(struct neighbours *n);

/* The station with that address; false: not known now. */
bool neighbour_find(struct neighbours *n, const union ib_gid *gid, uint8_t mac[6]);
/* A packet has come from there. */
void neighbour_learn(struct neighbours *n, const union ib_gid *gid, const uint8_t mac[6]);
/* True: an ARP request is to be sent, since nobody has asked for some time. */
bool neighbour_asks(struct neighbours *n, const union ib_gid *sgid, const union ib_gid *gid,
		    uint64_t now_ns, uint8_t arp[ARP_FRAME_BYTES]);
/*
 * A frame that came in, if it is of ARP: learns from it.  True: it asks for an address of RoCE of the port,
 * and this is the answer.
 */
bool neighbour_answers(struct neighbours *n, const uint8_t *frame, uint32_t bytes,
		       uint8_t arp[ARP_FRAME_BYTES]);
