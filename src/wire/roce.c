// SPDX-License-Identifier: BSD-2-Clause
/* Makes frames of packets and takes frames apart. */
#include "wire/roce.h"

#include "subnet/subnet.h"
#include "wire/payload.h"
#include "wire/pkt.h"

#include <isa-l/crc.h>
#include <string.h>

/* The invariant CRC of RoCE: Ethernet's CRC over what no switch or router changes (IBTA
 * A17.3.3). */

/* Octets that stand for the local route header. */
#define ICRC_LRH 8u

#define BTH_RESERVED 4u /* the byte with the marks of congestion */
#define BTH_BECN     0x40000000u

uint32_t roce_icrc(const uint8_t *ip, uint32_t ip_bytes, bool v2, uint32_t bytes)
{
	uint8_t head[ICRC_LRH + IPV6_OCTETS + UDP_OCTETS + BTH_OCTETS];
	uint32_t headers = ip_bytes + (v2 ? UDP_OCTETS : 0) + BTH_OCTETS;
	uint8_t *h = head + ICRC_LRH;
	uint32_t crc;

	memset(head, 0xff, ICRC_LRH);
	memcpy(h, ip, headers);
	if (ip_bytes == IPV4_OCTETS) {
		h[1] = 0xff;		 /* type of service */
		h[8] = 0xff;		 /* time to live */
		memset(h + 10, 0xff, 2); /* checksum */
	} else {
		h[0] |= 0x0f; /* traffic class and flow label */
		memset(h + 1, 0xff, 3);
		h[7] = 0xff; /* hop limit */
	}
	if (v2)
		memset(h + ip_bytes + 6, 0xff, 2); /* checksum of UDP */
	h[headers - BTH_OCTETS + BTH_RESERVED] = 0xff;
	crc = crc32_gzip_refl(0, head, ICRC_LRH + headers);
	return crc32_gzip_refl(crc, ip + headers, bytes - headers);
}

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

static uint8_t *put_long_header(uint8_t *at, const struct path *path, uint32_t behind, uint8_t next)
{
	at = octets_put32(at, 6u << 28 | (uint32_t)path->traffic_class << 20 |
				      (path->flow_label & 0xfffff));
	at = octets_put16(at, behind);
	*at++ = next;
	*at++ = path_hops(path);
	at = octets_put(at, path->sgid.raw, 16);
	return octets_put(at, path->dgid.raw, 16);
}

static uint8_t *put_grh(uint8_t *at, const struct path *path, uint32_t behind)
{
	return put_long_header(at, path, behind, GRH_NEXT_HEADER);
}

static uint8_t *put_ipv6(uint8_t *at, const struct path *path, uint32_t behind)
{
	return put_long_header(at, path, behind,
			       path_is_roce_v2(path) ? IP_PROTOCOL_UDP : GRH_NEXT_HEADER);
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
	at = octets_put32(at,
			  (p->opcode == BTH_CONGESTION ? BTH_BECN : 0) | (p->dqpn & IB_QPN_MASK));
	return octets_put32(at, (p->ack_req ? 1u << 31 : 0) | (p->psn & IB_PSN_MASK));
}

/* Our own form (struct pkt_dc): that of cards is not public. */
static uint8_t *put_dc(uint8_t *at, const struct pkt_dc *dc)
{
	const struct pkt_dc none = {0};

	dc = dc ? dc : &none;
	return octets_put32(octets_put64(octets_put64(at, dc->key), dc->connection), dc->psn);
}

/* Puts the extended headers of the transport, then those of the operation. */
static uint8_t *put_extended(uint8_t *at, const struct pkt *p)
{
	const struct bth_transport_props *t = bth_transport_props_of(p->opcode);
	const struct bth_props *props = pkt_props(p);

	if (p->opcode == BTH_CONGESTION) {
		memset(at, 0, CNP_OCTETS);
		at += CNP_OCTETS;
	}
	if (t->deth)
		at = octets_put32(octets_put32(at, p->qkey), p->sqpn & IB_QPN_MASK);
	if (t->xrceth && props->request)
		at = octets_put32(at, p->srqn & IB_QPN_MASK);
	if (t->dc && props->request)
		at = put_dc(at, p->dc);
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

static bool opcode_has_payload(uint8_t opcode)
{
	return bth_props_of(opcode)->payload && opcode != BTH_CONGESTION;
}

/* Octets of the payload; operations without one ignore what the packet says. */
static uint32_t payload_octets(const struct pkt *p)
{
	return opcode_has_payload(p->opcode) ? p->payload_len : 0;
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
		transport == BTH_XRC || p->opcode == BTH_CONGESTION) &&
	       (pkt_props(p)->request || pkt_props(p)->response) && !pkt_props(p)->masked &&
	       !p->placed;
}

/* Puts the payload with its padding.  NULL: its memory no longer exists. */
static uint8_t *put_payload(uint8_t *at, const struct pkt *p)
{
	uint32_t payload = payload_octets(p), pad = -payload & 3;
	const struct run to = {at, payload};

	if (payload && !payload_pull(&to, 1, p))
		return NULL;
	memset(at + payload, 0, pad);
	return at + payload + pad;
}

static uint8_t *put_crc(uint8_t *at, uint32_t crc)
{
	for (unsigned i = 0; i < ICRC_OCTETS; i++)
		*at++ = (uint8_t)(crc >> 8 * i);
	return at;
}

static bool packet_fits(const struct pkt *p, uint32_t room)
{
	return payload_octets(p) <= room && room >= ROCE_HEADERS_MAX + payload_octets(p);
}

uint32_t roce_encode(const struct pkt *p, const uint8_t smac[6], const uint8_t dmac[6],
		     uint8_t *frame, uint32_t room)
{
	return roce_has_frame(p) ? roce_encode_any(p, smac, dmac, frame, room) : 0;
}

uint32_t roce_encode_any(const struct pkt *p, const uint8_t smac[6], const uint8_t dmac[6],
			 uint8_t *frame, uint32_t room)
{
	const struct path *path = p->path;
	bool v2 = path_is_roce_v2(path), ipv4 = path_has_ipv4(path);
	uint8_t *at, *ip;

	if (!packet_fits(p, room))
		return 0;
	at = octets_put(octets_put(frame, dmac, 6), smac, 6);
	at = octets_put16(at, v2 ? (ipv4 ? 0x0800u : 0x86ddu) : ROCE_V1_ETHERTYPE);
	ip = at;
	at = put_ip(at, path, transport_octets(p));
	if (v2)
		at = put_udp(at, path, transport_octets(p));
	at = put_payload(put_extended(put_bth(at, p, -payload_octets(p) & 3), p), p);
	if (!at)
		return 0;
	at = put_crc(at, roce_icrc(ip, ipv4 ? IPV4_OCTETS : IPV6_OCTETS, v2, (uint32_t)(at - ip)));
	return (uint32_t)(at - frame);
}

/* ---- the same packets on InfiniBand ---- */

#define LRH_NEXT_BTH  2u /* LNH (IBTA 7.7.5) */
#define LRH_NEXT_GRH  3u
#define LRH_VL_OF_SMP 15u
#define VCRC_OCTETS   2u

/* IBTA 7.8.1: what is in front of the BTH counts as it is, but for the virtual lane, if there is no
 * GRH; else the whole LRH may change on the way. */
static uint32_t infiniband_icrc(const uint8_t *lrh, bool grh, uint32_t bytes)
{
	uint8_t head[LRH_OCTETS + BTH_OCTETS];
	uint32_t crc;

	if (grh)
		return roce_icrc(lrh + LRH_OCTETS, GRH_OCTETS, false, bytes - LRH_OCTETS);
	memcpy(head, lrh, sizeof(head));
	head[0] |= 0xf0;
	head[LRH_OCTETS + BTH_RESERVED] = 0xff;
	crc = crc32_gzip_refl(0, head, sizeof(head));
	return crc32_gzip_refl(crc, lrh + sizeof(head), bytes - sizeof(head));
}

/* The variant CRC: polynomial 0x100b, bits in the order of the cable (IBTA 7.8.2).  Row n of the
 * table is for a byte with n bytes behind it. */
#define VCRC_STEP 8u

static void vcrc_table_make(uint16_t table[VCRC_STEP][256])
{
	for (unsigned i = 0; i < 256; i++) {
		uint16_t v = (uint16_t)i;

		for (unsigned bit = 0; bit < 8; bit++)
			v = (uint16_t)(v >> 1 ^ (v & 1 ? 0xd008 : 0));
		table[0][i] = v;
	}
	for (unsigned n = 1; n < VCRC_STEP; n++)
		for (unsigned i = 0; i < 256; i++)
			table[n][i] =
				(uint16_t)(table[n - 1][i] >> 8 ^ table[0][table[n - 1][i] & 0xff]);
}

static uint16_t infiniband_vcrc(const uint8_t *at, uint32_t n)
{
	static uint16_t table[VCRC_STEP][256];
	uint16_t crc = 0xffff;

	if (unlikely(!table[0][1]))
		vcrc_table_make(table);
	for (; n >= VCRC_STEP; n -= VCRC_STEP, at += VCRC_STEP)
		crc = table[7][(crc ^ at[0]) & 0xff] ^ table[6][(crc >> 8 ^ at[1]) & 0xff] ^
		      table[5][at[2]] ^ table[4][at[3]] ^ table[3][at[4]] ^ table[2][at[5]] ^
		      table[1][at[6]] ^ table[0][at[7]];
	while (n--)
		crc = (uint16_t)(crc >> 8 ^ table[0][(crc ^ *at++) & 0xff]);
	return (uint16_t)~crc;
}

uint32_t infiniband_encode(const struct pkt *p, uint8_t *frame, uint32_t room)
{
	const struct path *path = p->path;
	bool grh = path->grh;
	uint32_t octets = LRH_OCTETS + (grh ? GRH_OCTETS : 0) + transport_octets(p);
	uint32_t vl = p->dqpn ? 0 : LRH_VL_OF_SMP;
	uint8_t *at = frame;
	uint16_t vcrc;

	if (!packet_fits(p, room))
		return 0;
	at = octets_put16(at,
			  vl << 12 | (path->sl & 15u) << 4 | (grh ? LRH_NEXT_GRH : LRH_NEXT_BTH));
	at = octets_put16(at, path->dlid);
	at = octets_put16(at, octets / 4);
	at = octets_put16(at, path->slid);
	if (grh)
		at = put_grh(at, path, transport_octets(p));
	at = put_payload(put_extended(put_bth(at, p, -payload_octets(p) & 3), p), p);
	if (!at)
		return 0;
	at = put_crc(at, infiniband_icrc(frame, grh, (uint32_t)(at - frame)));
	vcrc = infiniband_vcrc(frame, (uint32_t)(at - frame));
	*at++ = (uint8_t)vcrc;
	*at++ = (uint8_t)(vcrc >> 8);
	return (uint32_t)(at - frame);
}

/*
 * Takes frames apart.  A frame may come from anywhere.  So the code compares each
 * length with what there is, and each header with the one in front of it, and takes nothing before
 * the CRC has said that all bytes are those that were sent.
 */

#define ETHERTYPE_IPV4 0x0800u
#define ETHERTYPE_IPV6 0x86ddu
#define IPV4_FRAGMENT  0x3fffu /* more fragments follow, or an offset is set */

/* The rest of the frame. */
struct part {
	const uint8_t *at;
	uint32_t left;
};

static uint16_t octets_get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t octets_get32(const uint8_t *at)
{
	return (uint32_t)octets_get16(at) << 16 | octets_get16(at + 2);
}

static uint64_t octets_get64(const uint8_t *at)
{
	return (uint64_t)octets_get32(at) << 32 | octets_get32(at + 4);
}

/* The next n bytes, or NULL. */
static const uint8_t *part_take(struct part *p, uint32_t n)
{
	const uint8_t *at = p->at;

	if (n > p->left)
		return NULL;
	p->at += n;
	p->left -= n;
	return at;
}

/* Shortens the rest to n bytes, because the frame, which has a least length, may be longer than
 * what it holds.  False: n is more than the rest. */
static bool part_ends(struct part *p, uint32_t n)
{
	if (n > p->left)
		return false;
	p->left = n;
	return true;
}

static bool ipv4_sum_is_right(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < IPV4_OCTETS; i += 2)
		sum += octets_get16(ip + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

static void gid_of_ipv4(const uint8_t address[4], union ib_gid *gid)
{
	*gid = (union ib_gid){.raw = {[10] = 0xff, [11] = 0xff}};
	memcpy(gid->raw + 12, address, 4);
}

static enum roce_verdict take_ipv4(struct part *in, struct path *path)
{
	const uint8_t *ip = part_take(in, IPV4_OCTETS);

	/* A header with options is no RoCE: an adapter does not look for it there. */
	if (!ip || ip[0] != 0x45 || ip[9] != IP_PROTOCOL_UDP ||
	    octets_get16(ip + 6) & IPV4_FRAGMENT)
		return ROCE_NONE;
	if (in->left < UDP_OCTETS || octets_get16(in->at + 2) != ROCE_V2_UDP_PORT)
		return ROCE_NONE;
	path->traffic_class = ip[1];
	path->hop_limit = ip[8];
	gid_of_ipv4(ip + 12, &path->sgid);
	gid_of_ipv4(ip + 16, &path->dgid);
	if (!ipv4_sum_is_right(ip) || octets_get16(ip + 2) < IPV4_OCTETS ||
	    !part_ends(in, octets_get16(ip + 2) - IPV4_OCTETS))
		return ROCE_FORM;
	return ROCE_TAKEN;
}

static enum roce_verdict take_ipv6(struct part *in, struct path *path)
{
	const uint8_t *ip = part_take(in, IPV6_OCTETS);

	if (!ip || ip[0] >> 4 != 6 || ip[6] != (path->roce_v1 ? GRH_NEXT_HEADER : IP_PROTOCOL_UDP))
		return path->roce_v1 ? ROCE_FORM : ROCE_NONE;
	if (!path->roce_v1 &&
	    (in->left < UDP_OCTETS || octets_get16(in->at + 2) != ROCE_V2_UDP_PORT))
		return ROCE_NONE;
	path->traffic_class = (uint8_t)(octets_get16(ip) >> 4);
	path->flow_label = octets_get32(ip) & 0xfffff;
	path->hop_limit = ip[7];
	memcpy(path->sgid.raw, ip + 8, 16);
	memcpy(path->dgid.raw, ip + 24, 16);
	if (!part_ends(in, octets_get16(ip + 4)))
		return ROCE_FORM;
	/* A GID holds an IPv4 address in this form, which no cable carries (RFC 4291, 2.5.5.2). */
	if (!path->roce_v1 && (ib_gid_is_ipv4(&path->sgid) || ib_gid_is_ipv4(&path->dgid)))
		return ROCE_FORM;
	return ROCE_TAKEN;
}

static bool take_udp(struct part *in, struct path *path)
{
	const uint8_t *udp = part_take(in, UDP_OCTETS);

	if (!udp || octets_get16(udp + 4) != UDP_OCTETS + in->left)
		return false;
	path->udp_sport = octets_get16(udp);
	return true;
}

/* Takes the headers up to the BTH. */
static enum roce_verdict take_routing(struct part *in, struct roce_packet *out)
{
	const uint8_t *eth = part_take(in, ETHERNET_OCTETS);
	struct path *path = &out->path;
	enum roce_verdict v;

	if (!eth)
		return ROCE_NONE;
	memcpy(out->dmac, eth, 6);
	memcpy(out->smac, eth + 6, 6);
	path->grh = true;
	path->roce_v1 = octets_get16(eth + 12) == ROCE_V1_ETHERTYPE;
	if (octets_get16(eth + 12) == ETHERTYPE_IPV4)
		v = take_ipv4(in, path);
	else if (path->roce_v1 || octets_get16(eth + 12) == ETHERTYPE_IPV6)
		v = take_ipv6(in, path);
	else
		return ROCE_NONE;
	if (v == ROCE_TAKEN && !path->roce_v1 && !take_udp(in, path))
		return ROCE_FORM;
	return v;
}

/* UD only has SENDs of one packet; UC has no answers, READs or atomics (IBTA table 38).  A
 * notification of congestion has the number of an operation, but is none. */
static bool roce_has_opcode(uint8_t opcode)
{
	const struct bth_props *p = bth_props_of(opcode);

	if (p->masked)
		return false;
	switch (opcode & BTH_TRANSPORT_MASK) {
	case BTH_RC:
	case BTH_XRC:
		return p->request || p->response;
	case BTH_UC:
		return p->request && !p->read && !p->atomic && !p->ieth;
	case BTH_UD:
		return p->request && p->send && p->first && p->last && !p->ieth;
	case BTH_CNP:
		return opcode == BTH_CONGESTION;
	default:
		return false;
	}
}

static void get_bth(const uint8_t *bth, struct pkt *p)
{
	p->opcode = bth[0];
	p->solicited = bth[1] & 0x80;
	p->migreq_clear = !(bth[1] & 0x40);
	p->pkey = octets_get16(bth + 2);
	p->dqpn = octets_get32(bth + 4) & IB_QPN_MASK;
	p->ack_req = bth[8] & 0x80;
	p->psn = octets_get32(bth + 8) & IB_PSN_MASK;
	p->sqpn = PKT_SQPN_UNKNOWN;
}

/* 'at' has bth_transport_octets and bth_ext_octets octets. */
static void get_extended(const uint8_t *at, struct pkt *p)
{
	const struct bth_transport_props *t = bth_transport_props_of(p->opcode);
	const struct bth_props *props = pkt_props(p);

	if (t->deth) {
		p->qkey = octets_get32(at);
		p->sqpn = octets_get32(at + 4) & IB_QPN_MASK;
		at += DETH_OCTETS;
	}
	if (t->xrceth && props->request) {
		p->srqn = octets_get32(at) & IB_QPN_MASK;
		at += XRCETH_OCTETS;
	}
	if (props->reth || props->atomic_eth) {
		p->va = octets_get64(at);
		p->rkey = octets_get32(at + 8);
	}
	if (props->reth) {
		p->dma_len = octets_get32(at + 12);
		at += RETH_OCTETS;
	}
	if (props->atomic_eth) {
		p->swap_add = octets_get64(at + 12);
		p->compare = octets_get64(at + 20);
		at += ATOMIC_ETH_OCTETS;
	}
	if (props->aeth) {
		p->aeth = at[0];
		p->msn = octets_get32(at) & 0xffffff;
		at += AETH_OCTETS;
	}
	if (props->atomic_ack) {
		p->atomic_orig = octets_get64(at);
		at += ATOMIC_ACK_OCTETS;
	}
	if (props->imm || props->ieth)
		p->imm = octets_get32(at);
}

/* Takes the frame from the BTH on; the rest ends with the CRC. */
static enum roce_verdict take_transport(struct part *in, struct roce_packet *out)
{
	const uint8_t *bth = part_take(in, BTH_OCTETS), *ext;
	struct pkt *p = &out->pkt;
	uint32_t pad;

	if (!bth || bth[1] & 0x0f)
		return ROCE_FORM;
	if (!roce_has_opcode(bth[0]))
		return ROCE_OPCODE;
	get_bth(bth, p);
	pad = bth[1] >> 4 & 3;
	ext = part_take(in, bth_transport_octets(p->opcode) + bth_ext_octets(pkt_props(p)));
	if (!ext || in->left < ICRC_OCTETS + pad || in->left % 4)
		return ROCE_FORM;
	get_extended(ext, p);
	p->payload_len = in->left - ICRC_OCTETS - pad;
	/* A reserved code has no meaning between machines (IBTA 9.7.5.2.8), but it has one inside
	 * softhca. */
	if (pkt_props(p)->aeth && p->aeth == (AETH_NAK | NAK_SENDER_FAULT))
		return ROCE_FORM;
	if (p->payload_len > 4096 || (p->payload_len && !opcode_has_payload(p->opcode)))
		return ROCE_FORM;
	out->run = (struct run){(void *)(uintptr_t)in->at, p->payload_len};
	p->nruns = p->payload_len ? 1 : 0;
	return ROCE_TAKEN;
}

static bool icrc_is_right(const uint8_t *ip, const struct roce_packet *packet, const uint8_t *end)
{
	bool v2 = !packet->path.roce_v1;
	uint32_t ip_bytes = v2 && ip[0] >> 4 == 4 ? IPV4_OCTETS : IPV6_OCTETS;
	const uint8_t *at = end - ICRC_OCTETS;
	uint32_t icrc = roce_icrc(ip, ip_bytes, v2, (uint32_t)(at - ip));

	return icrc ==
	       ((uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0]);
}

enum roce_verdict roce_decode(const uint8_t *frame, uint32_t bytes, struct roce_packet *out)
{
	struct part in = {frame, bytes};
	enum roce_verdict v;

	*out = (struct roce_packet){
		.pkt = {.npkts = 1, .path = &out->path, .runs = &out->run},
		.path = {.src_port = SUBNET_NONE, .dst_port = SUBNET_NONE},
	};
	v = take_routing(&in, out);
	if (v == ROCE_TAKEN)
		v = take_transport(&in, out);
	if (v == ROCE_TAKEN && !icrc_is_right(frame + ETHERNET_OCTETS, out, in.at + in.left))
		v = ROCE_CRC;
	return v;
}
