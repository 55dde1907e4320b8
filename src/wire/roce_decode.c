// SPDX-License-Identifier: BSD-2-Clause
/*
 * Takes frames apart; see roce.h.  A frame may come from anywhere.  So the code compares each
 * length with what there is, and each header with the one in front of it, and takes nothing before
 * the CRC has said that all bytes are those that were sent.
 */
#include <string.h>

#include "subnet/subnet.h"
#include "wire/roce.h"
#include "wire/size.h"

#define IP_PROTOCOL_UDP 17u
#define GRH_NEXT_HEADER 0x1bu
#define ETHERTYPE_IPV4	0x0800u
#define ETHERTYPE_IPV6	0x86ddu
#define IPV4_FRAGMENT	0x3fffu /* more fragments follow, or an offset is set */

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

/* UD only has SENDs of one packet; UC has no answers, READs or atomics (IBTA table 38). */
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
	if (p->payload_len > 4096 || (p->payload_len && !pkt_props(p)->payload))
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
