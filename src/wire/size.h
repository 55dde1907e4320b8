/* SPDX-License-Identifier: BSD-2-Clause */
/* How large a packet would be on a real wire: what the port counters count. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/pkt.h"

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

uint64_t message_octets(const struct path *path, bool ethernet, const struct message_sizes *m);
/* Of a read request, and of an acknowledgement. */
uint64_t request_octets(const struct path *path, bool ethernet);
uint64_t ack_octets(const struct path *path, bool ethernet);
