/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/compiler.h"
#include "wire/size.h"

#define TRANSPORT_MASK 0xe0u

uint32_t path_routing_octets(const struct path *path, bool ethernet)
{
	if (!ethernet)
		return LRH_OCTETS + (path->grh ? GRH_OCTETS : 0);
	if (path->roce_v1)
		return ETHERNET_OCTETS + GRH_OCTETS + ETHERNET_FCS;
	return ETHERNET_OCTETS + (ib_gid_is_ipv4(&path->dgid) ? IPV4_OCTETS : IPV6_OCTETS) +
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
