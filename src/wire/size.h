/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How large a packet would be on a real wire, which is what the port counters count.  PortXmitData
 * counts from the LRH to the ICRC, without the VCRC (IBTA, "PortCounters").
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "wire/pkt.h"

/* Octets of the headers in front of the BTH and behind the payload; annexes A16 and A17 for
 * RoCE. */
#define LRH_OCTETS	8u
#define GRH_OCTETS	40u
#define ICRC_OCTETS	4u
#define ETHERNET_OCTETS 14u
#define ETHERNET_FCS	4u
#define IPV4_OCTETS	20u
#define IPV6_OCTETS	40u
#define UDP_OCTETS	8u

/* True if UDP stands in front of the BTH.  On InfiniBand each path has a LID. */
static inline bool path_is_roce_v2(const struct path *path)
{
	return !path->dlid && !path->roce_v1;
}

/* True if the packets have an IPv4 header, as the type of the sender's GID says. */
static inline bool path_has_ipv4(const struct path *path)
{
	return path_is_roce_v2(path) && ib_gid_is_ipv4(&path->sgid);
}

/* The number of packets on the wire; a read request that stands for many responses is one. */
uint32_t pkt_wire_packets(const struct pkt *p);
/* Their octets from the link header to the ICRC (Ethernet: to the frame check sequence). */
uint64_t pkt_wire_octets(const struct pkt *p, bool ethernet);
/* Octets of the headers in front of the BTH, and on Ethernet of the frame check sequence. */
uint32_t path_routing_octets(const struct path *path, bool ethernet);

enum message_kind {
	MESSAGE_SEND,
	MESSAGE_SEND_IMM,
	MESSAGE_WRITE,
	MESSAGE_ANSWER,	      /* to a READ */
	MESSAGE_ATOMIC_ANSWER /* its value is in a header */
};

/* Messages of one kind. */
struct message_sizes {
	enum message_kind kind;
	uint32_t messages;
	uint32_t packets; /* of all of them */
	uint64_t payload; /* likewise, each message padded to 4 octets */
	bool unanswered;  /* the peer sends no acknowledgement */
	uint8_t bth;	  /* enum bth_transport of the headers that each packet of a request has */
};

static inline uint32_t routing_octets(const struct path *path, bool ethernet)
{
	return likely(path->routing_octets) ? path->routing_octets
					    : path_routing_octets(path, ethernet);
}

/* The operation of a message in one packet. */
static inline uint8_t message_op(enum message_kind kind)
{
	static const uint8_t whole[] = {
		[MESSAGE_SEND] = BTH_SEND_ONLY,		  [MESSAGE_SEND_IMM] = BTH_SEND_ONLY_IMM,
		[MESSAGE_WRITE] = BTH_WRITE_ONLY,	  [MESSAGE_ANSWER] = BTH_READ_RESP_ONLY,
		[MESSAGE_ATOMIC_ANSWER] = BTH_ATOMIC_ACK,
	};

	return whole[kind];
}

/* Octets of the extended headers of one message. */
static inline uint32_t header_octets(const struct message_sizes *m)
{
	const struct bth_props *p = bth_props_of(message_op(m->kind));

	return m->packets > m->messages ? bth_ext_octets_of_many(p) : bth_ext_octets(p);
}

/* Octets of these messages. */
static inline uint64_t message_octets(const struct path *path, bool ethernet,
				      const struct message_sizes *m)
{
	uint64_t each = routing_octets(path, ethernet) + BTH_OCTETS + ICRC_OCTETS;

	if (unlikely(m->bth))
		each += bth_transport_octets((uint8_t)(m->bth | message_op(m->kind)));
	return m->packets * each + (uint64_t)m->messages * header_octets(m) + m->payload;
}

/* Octets of the request for such an answer, and of an acknowledgement. */
static inline uint64_t request_octets(const struct path *path, bool ethernet,
				      const struct message_sizes *answer)
{
	uint8_t op = answer->kind == MESSAGE_ANSWER ? BTH_READ_REQUEST : BTH_FETCH_ADD;

	return routing_octets(path, ethernet) + BTH_OCTETS + ICRC_OCTETS +
	       bth_transport_octets((uint8_t)(answer->bth | op)) + bth_ext_octets(bth_props_of(op));
}

static inline uint64_t ack_octets(const struct path *path, bool ethernet)
{
	return routing_octets(path, ethernet) + BTH_OCTETS + ICRC_OCTETS +
	       bth_ext_octets(bth_props_of(BTH_ACK));
}
