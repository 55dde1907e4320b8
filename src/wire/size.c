/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "wire/size.h"

uint32_t path_routing_octets(const struct path *path, bool ethernet)
{
	if (!ethernet)
		return LRH_OCTETS + (path->grh ? GRH_OCTETS : 0);
	if (path->roce_v1)
		return ETHERNET_OCTETS + GRH_OCTETS + ETHERNET_FCS;
	return ETHERNET_OCTETS + (ib_gid_is_ipv4(&path->sgid) ? IPV4_OCTETS : IPV6_OCTETS) +
	       UDP_OCTETS + ETHERNET_FCS;
}

uint32_t pkt_wire_packets(const struct pkt *p)
{
	return pkt_props(p)->payload && p->npkts ? p->npkts : 1;
}

uint64_t pkt_wire_octets(const struct pkt *p, bool ethernet)
{
	const struct bth_props *props = pkt_props(p);
	uint32_t n = pkt_wire_packets(p);
	uint64_t each = routing_octets(p->path, ethernet) + BTH_OCTETS +
			bth_transport_octets(p->opcode) + ICRC_OCTETS;

	return n * each + (n > 1 ? bth_ext_octets_of_many(props) : bth_ext_octets(props)) +
	       align_up(p->payload_len, 4);
}
