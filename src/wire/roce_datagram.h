/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCE v2 through a UDP socket.  The kernel writes the headers of IP and UDP, and shows a receiver
 * only some of what stood in them, but the invariant CRC covers most of it.  A sender therefore has
 * to know what the kernel will write: an unconnected socket with IP_PMTUDISC_PROBE gives datagrams
 * the identification 0 and forbids fragments, which is what roce_encode assumes.  A receiver makes
 * the same headers again; if the CRC is not right for them, it finds the identification for which
 * it is, because cards and other systems choose one for each packet.
 */
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "wire/roce.h"

/* Octets in front of the BTH that a frame has at most: Ethernet, IPv6, UDP. */
#define ROCE_ROUTING_MAX (ETHERNET_OCTETS + IPV6_OCTETS + UDP_OCTETS)

/* What a socket says of a datagram that it has received. */
struct roce_datagram {
	union ib_gid sgid, dgid; /* both of IPv4, or none */
	uint16_t sport;
	uint16_t identification; /* the likely one */
	uint8_t traffic_class, hop_limit;
	uint8_t dmac[6]; /* for the frame; it may be anything */
};

/* Octets in front of the BTH in a frame that roce_encode makes for this path. */
uint32_t roce_routing_octets(const struct path *path);
/*
 * Completes a datagram of 'bytes' octets (at most 65,507) to a frame, as it would have come from a
 * cable.  'payload' has ROCE_ROUTING_MAX octets of room in front of it.  Returns where the frame
 * begins; it ends where the datagram ends.
 */
uint8_t *roce_datagram_frame(const struct roce_datagram *d, uint8_t *payload, uint32_t bytes);
/*
 * Gives a frame of IPv4 that roce_encode has made another identification, and the CRC that it has
 * with it.  The kernel numbers datagrams that it is to cut out of one (UDP_SEGMENT) from 0 on.
 */
void roce_datagram_number(uint8_t *frame, uint32_t bytes, uint16_t identification);
/*
 * What a translation of addresses (NAT) has done to a frame of IPv4 whose CRC is wrong: the address that
 * its sender believed to have, that it sent to, and the port that it sent from.  Each is what makes
 * the CRC right if nothing else has changed, so of packets that were spoiled otherwise they are
 * anything.  *sport is 0 if no other port makes the CRC right.
 */
struct roce_rewritten {
	uint8_t source[4];	/* with the port as it came */
	uint8_t source_4791[4]; /* sent from port 4791 */
	uint8_t destination[4];
	uint16_t sport;
};

/* False: the frame is not of IPv4, or too long. */
bool roce_datagram_rewritten(uint8_t *frame, uint32_t bytes, struct roce_rewritten *out) must_check;
/*
 * As roce_decode, for a frame that roce_datagram_frame has made: the CRC is right if there is an
 * identification with which the sender has made it, whether or not it forbade fragments.  Of frames
 * whose bytes have changed, one in 32,768 is taken, as far as the checksum of UDP has let it pass.
 */
enum roce_verdict roce_datagram_decode(const uint8_t *frame, uint32_t bytes,
				       struct roce_packet *out) must_check;
