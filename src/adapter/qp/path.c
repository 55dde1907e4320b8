// SPDX-License-Identifier: BSD-2-Clause
/* Makes paths from address vectors. */
#include <string.h>

#include "adapter/qp/path.h"
#include "prm/cqe.h"
#include "prm/wqe.h"
#include "wire/roce.h"
#include "wire/pkt.h"

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
		.path_bits = ah->src_path_bits & 0x7f,
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

bool path_has_gids_of(const struct path *path, const struct path *own)
{
	return path->roce_v1 == own->roce_v1 &&
	       !memcmp(&path->sgid, &own->dgid, sizeof(own->dgid)) &&
	       !memcmp(&path->dgid, &own->sgid, sizeof(own->sgid));
}

enum cqe_roce_header path_header_type(const struct path *path)
{
	if (path->roce_v1)
		return CQE_ROCE_GRH;
	return path_has_ipv4(path) ? CQE_ROCE_IPV4 : CQE_ROCE_IPV6;
}
