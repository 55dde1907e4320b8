// SPDX-License-Identifier: BSD-2-Clause
/* Makes frames of packets; see roce.h. */
#include <string.h>

#include "wire/payload.h"
#include "wire/roce.h"
#include "wire/size.h"

#define IP_PROTOCOL_UDP	   17u
#define GRH_NEXT_HEADER	   0x1bu
#define IPV4_DONT_FRAGMENT 0x4000u
#define DEFAULT_HOPS	   64u

/* Returns where the next header goes. */
static uint8_t *octets_put16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
	return at + 2;
}

static uint8_t *octets_put32(uint8_t *at, uint32_t v)
{
	return octets_put16(octets_put16(at, v >> 16), v);
}

static uint8_t *octets_put64(uint8_t *at, uint64_t v)
{
	return octets_put32(octets_put32(at, (uint32_t)(v >> 32)), (uint32_t)v);
}

static uint8_t *octets_put(uint8_t *at, const void *bytes, size_t n)
{
	memcpy(at, bytes, n);
	return at + n;
}

static uint16_t ipv4_checksum(const uint8_t *header)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < IPV4_OCTETS; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* On Ethernet the kernel fills in a hop limit where the program gives none. */
static uint8_t path_hops(const struct path *path)
{
	return path->hop_limit || path->dlid ? path->hop_limit : DEFAULT_HOPS;
}

static uint8_t *put_ipv4(uint8_t *at, const struct path *path, uint32_t behind)
{
	uint8_t *ip = at;

	*at++ = 0x45;
	*at++ = path->traffic_class;
	at = octets_put16(at, IPV4_OCTETS + behind);
	at = octets_put16(at, 0);
	at = octets_put16(at, IPV4_DONT_FRAGMENT);
	*at++ = path_hops(path);
	*at++ = IP_PROTOCOL_UDP;
	at = octets_put16(at, 0);
	at = octets_put(at, path->sgid.raw + 12, 4);
	at = octets_put(at, path->dgid.raw + 12, 4);
	octets_put16(ip + 10, ipv4_checksum(ip));
	return at;
}

static uint8_t *put_ipv6(uint8_t *at, const struct path *path, uint32_t behind)
{
	at = octets_put32(at, 6u << 28 | (uint32_t)path->traffic_class << 20 |
				      (path->flow_label & 0xfffff));
	at = octets_put16(at, behind);
	*at++ = path_is_roce_v2(path) ? IP_PROTOCOL_UDP : GRH_NEXT_HEADER;
	*at++ = path_hops(path);
	at = octets_put(at, path->sgid.raw, 16);
	return octets_put(at, path->dgid.raw, 16);
}

/* Puts the IP header or GRH in front of 'behind' octets. */
static uint8_t *put_ip(uint8_t *at, const struct path *path, uint32_t behind)
{
	behind += path_is_roce_v2(path) ? UDP_OCTETS : 0;
	return path_has_ipv4(path) ? put_ipv4(at, path, behind) : put_ipv6(at, path, behind);
}

static uint8_t *put_udp(uint8_t *at, const struct path *path, uint32_t behind)
{
	at = octets_put16(at, path->udp_sport ? path->udp_sport : ROCE_SPORT_MIN);
	at = octets_put16(at, ROCE_V2_UDP_PORT);
	at = octets_put16(at, UDP_OCTETS + behind);
	return octets_put16(at, 0);
}

static uint8_t *put_bth(uint8_t *at, const struct pkt *p, uint32_t pad)
{
	*at++ = p->opcode;
	/* solicited event, MigReq, pad count, version 0 */
	*at++ = (uint8_t)((p->solicited ? 0x80 : 0) | (p->migreq_clear ? 0 : 0x40) | pad << 4);
	at = octets_put16(at, p->pkey);
	at = octets_put32(at, p->dqpn & IB_QPN_MASK);
	return octets_put32(at, (p->ack_req ? 1u << 31 : 0) | (p->psn & IB_PSN_MASK));
}

/* Puts the extended headers of the transport, then those of the operation. */
static uint8_t *put_extended(uint8_t *at, const struct pkt *p)
{
	const struct bth_transport_props *t = bth_transport_props_of(p->opcode);
	const struct bth_props *props = pkt_props(p);

	if (t->deth)
		at = octets_put32(octets_put32(at, p->qkey), p->sqpn & IB_QPN_MASK);
	if (t->xrceth && props->request)
		at = octets_put32(at, p->srqn & IB_QPN_MASK);
	if (props->reth)
		at = octets_put32(octets_put32(octets_put64(at, p->va), p->rkey), p->dma_len);
	if (props->atomic_eth)
		at = octets_put64(octets_put64(octets_put32(octets_put64(at, p->va), p->rkey),
					       p->swap_add),
				  p->compare);
	if (props->aeth)
		at = octets_put32(at, (uint32_t)p->aeth << 24 | (p->msn & 0xffffff));
	if (props->atomic_ack)
		at = octets_put64(at, p->atomic_orig);
	if (props->imm || props->ieth)
		at = octets_put32(at, p->imm);
	return at;
}

/* Octets of the payload; operations without one ignore what the packet says. */
static uint32_t payload_octets(const struct pkt *p)
{
	return pkt_props(p)->payload ? p->payload_len : 0;
}

/* Octets from the BTH to the invariant CRC. */
static uint32_t transport_octets(const struct pkt *p)
{
	return BTH_OCTETS + bth_transport_octets(p->opcode) + bth_ext_octets(pkt_props(p)) +
	       (uint32_t)align_up(payload_octets(p), 4) + ICRC_OCTETS;
}

void roce_global_header(const struct pkt *p, uint8_t out[IB_GRH_BYTES])
{
	bool ipv4 = path_has_ipv4(p->path);

	memset(out, 0, IB_GRH_BYTES);
	put_ip(out + (ipv4 ? IB_GRH_BYTES - IPV4_OCTETS : 0), p->path, transport_octets(p));
}

/* True if the packet has a form on a cable. */
static bool roce_has_frame(const struct pkt *p)
{
	uint8_t transport = pkt_transport(p);

	return (transport == BTH_RC || transport == BTH_UC || transport == BTH_UD ||
		transport == BTH_XRC) &&
	       (pkt_props(p)->request || pkt_props(p)->response) && !pkt_props(p)->masked &&
	       !p->placed;
}

uint32_t roce_encode(const struct pkt *p, const uint8_t smac[6], const uint8_t dmac[6],
		     uint8_t *frame, uint32_t room)
{
	const struct path *path = p->path;
	bool v2 = path_is_roce_v2(path), ipv4 = path_has_ipv4(path);
	uint32_t payload = payload_octets(p), pad = -payload & 3;
	uint8_t *at, *ip;
	uint32_t icrc;

	if (!roce_has_frame(p) || payload > room || room < ROCE_HEADERS_MAX + payload)
		return 0;
	at = octets_put(octets_put(frame, dmac, 6), smac, 6);
	at = octets_put16(at, v2 ? (ipv4 ? 0x0800u : 0x86ddu) : ROCE_V1_ETHERTYPE);
	ip = at;
	at = put_ip(at, path, transport_octets(p));
	if (v2)
		at = put_udp(at, path, transport_octets(p));
	at = put_extended(put_bth(at, p, pad), p);
	if (payload) {
		const struct run to = {at, payload};

		if (!payload_pull(&to, 1, p))
			return 0;
		at += payload;
	}
	memset(at, 0, pad);
	at += pad;
	icrc = roce_icrc(ip, ipv4 ? IPV4_OCTETS : IPV6_OCTETS, v2, (uint32_t)(at - ip));
	for (unsigned i = 0; i < ICRC_OCTETS; i++)
		*at++ = (uint8_t)(icrc >> 8 * i);
	return (uint32_t)(at - frame);
}
