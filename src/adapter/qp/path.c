// SPDX-License-Identifier: BSD-2-Clause
/* Makes paths from address vectors, and makes the headers that a datagram's receiver sees from
 * paths. */
#include <string.h>

#include "adapter/qp/path.h"
#include "prm/cqe.h"
#include "prm/wqe.h"
#include "wire/roce.h"
#include "wire/size.h"

void path_from_ah(const struct adapter *a, const struct ib_ah *ah, struct path *path)
{
	const struct subnet *s = wire_subnet(a->wire);
	uint16_t own_lid = (uint16_t)atomic_load(&a->port->lid);
	struct subnet_gid_entry sgid = {0};
	bool sgid_ok = subnet_gid(s, wire_port_row(a->wire), ah->sgid_index, &sgid);

	*path = (struct path){
		.src_port = wire_port_row(a->wire),
		.slid = own_lid | (ah->src_path_bits & ((1u << atomic_load(&a->port->lmc)) - 1)),
		.dlid = ah->dlid,
		.sl = ah->sl,
		.path_bits = ah->src_path_bits,
		.hop_limit = ah->hop_limit,
		.traffic_class = ah->traffic_class,
		.flow_label = ah->flow_label,
		.grh = ah->is_global,
		.roce_v1 = a->port->ethernet && sgid.type == GID_IB_ROCE_V1,
		.sgid = sgid.gid,
		.dgid = ah->dgid,
		.udp_sport = ah->udp_sport,
	};
	memcpy(path->dmac, ah->dmac, sizeof(path->dmac));
	if (ah->own_port) {
		path->dlid = own_lid;
		path->dgid = sgid.gid;
	}
	if (a->port->ethernet) {
		path->slid = 0;
		path->dlid = 0;
		path->dst_port =
			ah->is_global && sgid_ok ? subnet_port_by_gid(s, &path->dgid) : SUBNET_NONE;
	} else {
		path->dst_port = subnet_lid_end(s, path->src_port, path->dlid);
	}
	path->routing_octets = path_routing_octets(path, a->port->ethernet);
}

void path_from_av(const struct adapter *a, const struct wqe_av *av, struct path *path)
{
	uint32_t grh = be32_get(av->grh_gid_fl);
	struct ib_ah ah = {
		.dlid = be16_get(av->rlid),
		.sl = av->stat_rate_sl & 0xf,
		.src_path_bits = av->fl_mlid & 0x7f,
		.own_port = av->fl_mlid >> 7,
		.port_num = 1,
	};

	if (a->port->ethernet) {
		ah.sl = (av->stat_rate_sl >> 1) & 7;
		ah.udp_sport = be16_get(av->rlid);
		memcpy(ah.dmac, av->rmac, sizeof(ah.dmac));
	}
	if (be32_get(av->dqp_dct) & WQE_AV_EXTENDED && (grh & WQE_AV_GRH || a->port->ethernet)) {
		ah.is_global = 1;
		memcpy(ah.dgid.raw, av->rgid, sizeof(ah.dgid.raw));
		ah.sgid_index = (uint8_t)(grh >> 20);
		ah.flow_label = grh & 0xfffff;
		ah.hop_limit = av->hop_limit;
		ah.traffic_class = av->tclass;
	}
	path_from_ah(a, &ah, path);
}

uint16_t path_udp_sport(uint32_t flow_label, uint32_t qpn, uint32_t dest_qpn)
{
	uint64_t v = (uint64_t)qpn * dest_qpn;
	uint32_t low, high;

	if (!flow_label) {
		v ^= v >> 20;
		v ^= v >> 40;
		flow_label = (uint32_t)v & 0xfffff;
	}
	low = flow_label & 0x3fff;
	high = flow_label >> 14 & 0x3f;
	return (uint16_t)(ROCE_SPORT_MIN | (low ^ high));
}

void path_reverse(const struct path *path, struct path *back)
{
	*back = *path;
	back->src_port = path->dst_port;
	back->dst_port = path->src_port;
	back->slid = path->dlid;
	back->dlid = path->slid;
	back->sgid = path->dgid;
	back->dgid = path->sgid;
	back->route = NULL;
}

static uint16_t ipv4_checksum(const uint8_t *header, unsigned bytes)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < bytes; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void path_put16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

/* Writes the IPv4 header (RFC 791) into the last 20 of the 40 bytes, where hardware puts it. */
static void ipv4_header(const struct path *path, uint32_t ip_payload, uint8_t *ip)
{
	memset(ip, 0, IPV4_OCTETS);
	ip[0] = 0x45;
	ip[1] = path->traffic_class;
	path_put16(ip + 2, IPV4_OCTETS + ip_payload);
	path_put16(ip + 6, 0x4000); /* don't fragment */
	ip[8] = path->hop_limit;
	ip[9] = 17; /* UDP */
	memcpy(ip + 12, path->sgid.raw + 12, 4);
	memcpy(ip + 16, path->dgid.raw + 12, 4);
	path_put16(ip + 10, ipv4_checksum(ip, IPV4_OCTETS));
}

enum cqe_roce_header path_header_type(const struct path *path)
{
	if (path->roce_v1)
		return CQE_ROCE_GRH;
	return ib_gid_is_ipv4(&path->sgid) ? CQE_ROCE_IPV4 : CQE_ROCE_IPV6;
}

void grh_from_path(const struct path *path, uint32_t payload_bytes, uint8_t out[IB_GRH_BYTES])
{
	/* The length of a datagram's IP payload; RoCE v2 adds UDP. */
	uint32_t bytes = BTH_OCTETS + bth_transport_octets(BTH_UD) +
			 (uint32_t)align_up(payload_bytes, 4) + ICRC_OCTETS;
	bool v2 = !path->dlid && !path->roce_v1;

	memset(out, 0, IB_GRH_BYTES);
	if (v2 && ib_gid_is_ipv4(&path->sgid)) {
		ipv4_header(path, bytes + UDP_OCTETS, out + IPV4_OCTETS);
		return;
	}
	/* IBTA 8.3: version 6, traffic class, flow label. */
	out[0] = (uint8_t)(0x60 | path->traffic_class >> 4);
	out[1] = (uint8_t)(path->traffic_class << 4 | (path->flow_label >> 16 & 0xf));
	path_put16(out + 2, path->flow_label);
	path_put16(out + 4, bytes + (v2 ? UDP_OCTETS : 0));
	out[6] = v2 ? 17 : 0x1b; /* next header: UDP, or IBA */
	out[7] = path->hop_limit;
	memcpy(out + 8, path->sgid.raw, 16);
	memcpy(out + 24, path->dgid.raw, 16);
}
