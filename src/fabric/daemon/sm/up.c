// SPDX-License-Identifier: BSD-2-Clause
/* Configures ports and brings their links up. */
#include "fabric/daemon/sm/sm.h"

static uint32_t cap_least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void port_info_agree(struct net *n, uint32_t row, struct prm_field f, uint32_t value)
{
	if (net_info(n, row, f) != value)
		net_info_set(n, row, f, value);
}

/* Sets what both ends of a link must have alike. */
static void link_agree(struct net *n, uint32_t row, uint32_t peer)
{
	uint32_t mtu = cap_least(net_info(n, row, PI_MTU_CAP), net_info(n, peer, PI_MTU_CAP));
	uint32_t vls = cap_least(net_info(n, row, PI_VL_CAP), net_info(n, peer, PI_VL_CAP));

	net_set_mtu(n, row, (enum ib_mtu)mtu);
	port_info_agree(n, row, PI_OPER_VLS, vls);
}

static void end_port_configure(struct sm *s, uint32_t row)
{
	struct net *n = s->fabric->net;
	uint32_t sm_lid = net_info(n, s->home, PI_LID);

	if (net_info(n, row, PI_SM_LID) != sm_lid || net_info(n, row, PI_SM_SL))
		net_set_sm(n, row, sm_lid, 0);
	if (prm_get(n->ports[row].info, PI_GID_PREFIX) != SM_PREFIX &&
	    net_set_prefix(n, row, SM_PREFIX))
		return;
	port_info_agree(n, row, PI_SUBNET_TIMEOUT, SM_SUBNET_TIMEOUT);
	net_show_info(n, row);
	if (s->reregister && net_info(n, row, PI_CAP_MASK) & CAP_IS_CLIENT_REREGISTER)
		net_reregister(n, row);
}

static void ports_step(struct net *n, enum ib_port_state from, enum ib_port_state to)
{
	for (uint32_t row = 0; row < n->nports; row++)
		/* A refusal means that the link has gone; its event begins the next sweep. */
		if (!n->subnet->ports[row].ethernet && net_info(n, row, PI_STATE) == from &&
		    net_set_state(n, row, to))
			continue;
}

void sm_raise_ports(struct sm *s)
{
	struct net *n = s->fabric->net;

	for (uint32_t row = 0; row < n->nports; row++) {
		uint32_t peer;

		if (n->subnet->ports[row].ethernet || net_node_of(n, row)->removed)
			continue;
		if (sm_is_end_port(n, row))
			end_port_configure(s, row);
		peer = net_peer(n, row, IB_PORT_INIT);
		if (peer != SUBNET_NONE)
			link_agree(n, row, peer);
	}
	s->reregister = false;
	ports_step(n, IB_PORT_INIT, IB_PORT_ARMED);
	ports_step(n, IB_PORT_ARMED, IB_PORT_ACTIVE);
	for (uint32_t i = 0; i < n->nnodes; i++)
		if (n->nodes[i].sw)
			n->nodes[i].sw->port_change = false;
}
