/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sizes of headers (IBTA volume 1, chapter 9, "Header and data field source"; annexes A16 and A17
 * for RoCE).  PortXmitData counts from the LRH to the ICRC, without the VCRC (IBTA,
 * "PortCounters").
 */
#include "base/compiler.h"
#include "wire/size.h"

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
#define TRANSPORT_MASK	  0xe0u

/* ::ffff:a.b.c.d stands for an IPv4 address (RFC 4291, 2.5.5.2). */
static bool gid_is_ipv4(const union ib_gid *gid)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !__builtin_memcmp(gid->raw, prefix, sizeof(prefix));
}

uint32_t path_routing_octets(const struct path *path, bool ethernet)
{
	if (!ethernet)
		return LRH_OCTETS + (path->grh ? GRH_OCTETS : 0);
	if (path->roce_v1)
		return ETHERNET_OCTETS + GRH_OCTETS + ETHERNET_FCS;
	return ETHERNET_OCTETS + (gid_is_ipv4(&path->dgid) ? IPV4_OCTETS : IPV6_OCTETS) +
	       UDP_OCTETS + ETHERNET_FCS;
}

static inline uint32_t routing_octets(const struct path *path, bool ethernet)
{
	return likely(path->routing_octets) ? path->routing_octets
					    : path_routing_octets(path, ethernet);
}

uint32_t pkt_wire_packets(const struct pkt *p)
{
	return pkt_props(p)->payload && p->npkts ? p->npkts : 1;
}

uint64_t pkt_wire_octets(const struct pkt *p, bool ethernet)
{
	const struct bth_props *props = pkt_props(p);
	uint32_t n = pkt_wire_packets(p);
	uint8_t transport = p->opcode & TRANSPORT_MASK;
	uint64_t each = routing_octets(p->path, ethernet) + BTH_OCTETS + ICRC_OCTETS;
	uint64_t once = 0;

	if (transport == BTH_UD)
		each += DETH_OCTETS;
	if (transport == BTH_XRC && props->request)
		each += XRCETH_OCTETS;
	if (pkt_has_dc(p))
		each += DC_OCTETS;
	if (props->reth)
		once += RETH_OCTETS;
	if (props->atomic_eth)
		once += ATOMIC_ETH_OCTETS;
	if (props->atomic && props->response)
		once += ATOMIC_ACK_OCTETS;
	if (props->imm)
		once += IMM_OCTETS;
	if (props->ieth)
		once += IETH_OCTETS;
	/* The first and the last packet of a read response have one, those between have none. */
	if (props->aeth)
		once += AETH_OCTETS * (props->first && props->last && n > 1 ? 2 : 1);

	return n * each + once + align_up(p->payload_len, 4);
}

uint64_t ack_octets(const struct path *path, bool ethernet)
{
	return routing_octets(path, ethernet) + BTH_OCTETS + ICRC_OCTETS + AETH_OCTETS;
}

uint64_t request_octets(const struct path *path, bool ethernet)
{
	return routing_octets(path, ethernet) + BTH_OCTETS + ICRC_OCTETS + RETH_OCTETS;
}

static uint32_t header_octets(const struct message_sizes *m)
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

uint64_t message_octets(const struct path *path, bool ethernet, const struct message_sizes *m)
{
	uint64_t each = routing_octets(path, ethernet) + BTH_OCTETS + ICRC_OCTETS;

	return m->packets * each + (uint64_t)m->messages * header_octets(m) + m->payload;
}
