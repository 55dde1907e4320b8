/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How large a packet would be on a real wire: what the port counters count.  PortXmitData counts
 * from the LRH to the ICRC, without the VCRC (IBTA, "PortCounters").
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "wire/pkt.h"

/* IBTA volume 1, chapter 9, "Header and data field source"; annexes A16 and A17 for RoCE. */
#define LRH_OCTETS	  8u
#define GRH_OCTETS	  40u
#define BTH_OCTETS	  12u
#define DETH_OCTETS	  8u
#define XRCETH_OCTETS	  4u
#define DC_OCTETS	  20u /* ours: key, connection, PSN */
#define RETH_OCTETS	  16u
#define ATOMIC_ETH_OCTETS 28u
#define AETH_OCTETS	  4u
#define ATOMIC_ACK_OCTETS 8u
#define IMM_OCTETS	  4u
#define IETH_OCTETS	  4u
#define ICRC_OCTETS	  4u
#define ETHERNET_OCTETS	  14u
#define ETHERNET_FCS	  4u
#define IPV4_OCTETS	  20u
#define IPV6_OCTETS	  40u
#define UDP_OCTETS	  8u

/* Packets on the wire; a read request that stands for many responses is one. */
uint32_t pkt_wire_packets(const struct pkt *p);
/* Their octets from the link header to the ICRC (Ethernet: to the frame check sequence). */
uint64_t pkt_wire_octets(const struct pkt *p, bool ethernet);
/* Of the headers in front of the BTH, and on Ethernet the frame check sequence. */
uint32_t path_routing_octets(const struct path *path, bool ethernet);

enum message_kind { MESSAGE_SEND, MESSAGE_SEND_IMM, MESSAGE_WRITE, MESSAGE_ANSWER /* to a READ */ };

/* Messages of one kind; answers come one at a time. */
struct message_sizes {
	enum message_kind kind;
	uint32_t messages;
	uint32_t packets; /* of all of them */
	uint64_t payload; /* likewise, each message padded to 4 octets */
};

static inline uint32_t routing_octets(const struct path *path, bool ethernet)
{
	return likely(path->routing_octets) ? path->routing_octets
					    : path_routing_octets(path, ethernet);
}

static inline uint32_t header_octets(const struct message_sizes *m)
{
	switch (m->kind) {
	case MESSAGE_SEND:
		break;
	case MESSAGE_SEND_IMM:
		return IMM_OCTETS;
	case MESSAGE_WRITE:
		return RETH_OCTETS;
	case MESSAGE_ANSWER:
		return AETH_OCTETS * (m->packets > 1 ? 2 : 1);
	}
	return 0;
}

/* Of these messages. */
static inline uint64_t message_octets(const struct path *path, bool ethernet,
				      const struct message_sizes *m)
{
	uint64_t each = routing_octets(path, ethernet) + BTH_OCTETS + ICRC_OCTETS;

	return m->packets * each + (uint64_t)m->messages * header_octets(m) + m->payload;
}

/* Of a read request, and of an acknowledgement. */
static inline uint64_t request_octets(const struct path *path, bool ethernet)
{
	return routing_octets(path, ethernet) + BTH_OCTETS + ICRC_OCTETS + RETH_OCTETS;
}

static inline uint64_t ack_octets(const struct path *path, bool ethernet)
{
	return routing_octets(path, ethernet) + BTH_OCTETS + ICRC_OCTETS + AETH_OCTETS;
}
