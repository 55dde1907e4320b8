/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is at the other end of a tied port: which station has which address.  An address that was
 * made of a MAC contains it.  The others are learned from frames that come in, and those of IPv4
 * asked for by ARP (RFC 826), as the kernel would do for its own port.  Stations are asked and
 * answered for RoCE alone, because programs handle their own frames.  Any thread may call these.
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

/* An address has one row; if two want the same row, the later one gets it. */
struct neighbours {
	const struct subnet *subnet;
	uint32_t row; /* row of the port */
	pthread_mutex_t lock;
	struct neighbour entry[NEIGHBOUR_ROWS];
};

void neighbours_init(struct neighbours *n, const struct subnet *subnet, uint32_t row);
void neighbours_release(struct neighbours *n);

/* Gives the station with that address; false: nobody knows it now. */
bool neighbour_find(struct neighbours *n, const union ib_gid *gid, uint8_t mac[6]);
/* Learns from a packet that has come from there. */
void neighbour_learn(struct neighbours *n, const union ib_gid *gid, const uint8_t mac[6]);
/* Returns true if the caller has to send an ARP request, because nobody has asked for some time. */
bool neighbour_asks(struct neighbours *n, const union ib_gid *sgid, const union ib_gid *gid,
		    uint64_t now_ns, uint8_t arp[ARP_FRAME_BYTES]);
/*
 * Learns from a frame that came in, if it is of ARP.  True: the frame asks for a RoCE address of
 * the port, and 'answer' is the answer.
 */
bool neighbour_answers(struct neighbours *n, const uint8_t *frame, uint32_t bytes,
		       uint8_t arp[ARP_FRAME_BYTES]);
