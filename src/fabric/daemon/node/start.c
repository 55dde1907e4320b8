// SPDX-License-Identifier: BSD-2-Clause
/* What a port says of itself before anybody has set anything; see net.h. */
#include <string.h>

#include "fabric/daemon/node/net.h"
#include "prm/model.h"

/* What differs between kinds of ports. */
struct port_start {
	uint32_t cap_mask, cap_mask2;
	uint8_t widths, width;	 /* supported, enabled */
	uint8_t speeds, speed;	 /* supported, enabled */
	uint8_t ext_speeds, ext; /* supported, enabled */
	uint8_t mtu;
};

enum { START_IBSIM, START_IBSIM_CA, START_EDR, START_HDR, START_NDR, START_KINDS };

#define CAP_MASK 0x2651e848u
#define CAP2_ALL (CAP2_WIDTH_2X | CAP2_HDR | CAP2_NDR)

static const struct port_start port_starts[START_KINDS] = {
	/* What programs that were written against ibsim find there: SDR, 4X. */
	[START_IBSIM] = {0x0050c048, 0x0030, 31, 2, 7, 1, 0, 0, IB_MTU_2048},
	/* But adapters can what ours can: OpenSM asks for CLIENT_REREGISTER only where it is offered. */
	[START_IBSIM_CA] = {CAP_MASK, 0x0030, 31, 2, 7, 1, 0, 0, IB_MTU_2048},
	/* Cards, and switches of ours, which have the fastest speed; widths of 2X came with HDR. */
	[START_EDR] = {CAP_MASK, 0, 0x03, 0x03, 7, 7, 0x3, 0x3, IB_MTU_4096},
	[START_HDR] = {CAP_MASK, CAP2_ALL & ~CAP2_NDR, 0x13, 0x13, 7, 7, 0x7, 0x7, IB_MTU_4096},
	[START_NDR] = {CAP_MASK, CAP2_ALL, 0x13, 0x13, 7, 7, 0xf, 0xf, IB_MTU_4096},
};

static unsigned start_kind(const struct net *n, uint32_t row)
{
	bool is_ca = net_node_of(n, row)->type == SMP_NODE_CA;

	if (n->like_ibsim)
		return is_ca ? START_IBSIM_CA : START_IBSIM;
	if (!is_ca)
		return START_NDR;
	return n->card_lane == LANE_EDR	  ? START_EDR
	       : n->card_lane == LANE_HDR ? START_HDR
					  : START_NDR;
}

static void info_start(uint8_t *info, const struct port_start *from)
{
	prm_set(info, PI_WIDTH_SUPPORTED, from->widths);
	prm_set(info, PI_WIDTH_ENABLED, from->width);
	prm_set(info, PI_WIDTH_ACTIVE, 2);
	prm_set(info, PI_SPEED_SUPPORTED, from->speeds);
	prm_set(info, PI_SPEED_ENABLED, from->speed);
	prm_set(info, PI_SPEED_ACTIVE, 1);
	prm_set(info, PI_EXT_SPEED_SUPPORTED, from->ext_speeds);
	prm_set(info, PI_EXT_SPEED_ENABLED, from->ext);
	prm_set(info, PI_DOWN_DEFAULT, SMP_PHYS_POLLING);
	prm_set(info, PI_NEIGHBOR_MTU, from->mtu);
	prm_set(info, PI_MTU_CAP, from->mtu);
	prm_set(info, PI_VL_CAP, VL_CAP_0_TO_7);
	prm_set(info, PI_OPER_VLS, 1);
	prm_set(info, PI_VL_ARB_HIGH_CAP, 8);
	prm_set(info, PI_VL_ARB_LOW_CAP, 8);
}

/* Sets what only ports with LIDs have. */
static void info_start_end_port(uint8_t *info, const struct port_start *from)
{
	prm_set(info, PI_CAP_MASK, from->cap_mask);
	prm_set(info, PI_CAP_MASK2, from->cap_mask2);
	prm_set(info, PI_GUID_CAP, NET_GUIDS);
	prm_set(info, PI_SUBNET_TIMEOUT, 31);
}

/* Tens of thousands of ports begin alike, so the fields are set once for each kind. */
static const uint8_t *info_template(unsigned kind, bool end_port)
{
	static uint8_t made[START_KINDS][2][MAD_ATTRIBUTE_BYTES];
	uint8_t *info = made[kind][end_port];

	if (!prm_get(info, PI_VL_CAP)) {
		info_start(info, &port_starts[kind]);
		if (end_port)
			info_start_end_port(info, &port_starts[kind]);
	}
	return info;
}

/* What programs see of PortInfo besides the fields that have a function of their own. */
void net_show_info(struct net *n, uint32_t row)
{
	struct subnet_port *p = &n->subnet->ports[row];

	atomic_store_explicit(&p->cap_mask2, net_info(n, row, PI_CAP_MASK2), memory_order_relaxed);
	atomic_store_explicit(&p->mtu_cap, net_info(n, row, PI_MTU_CAP), memory_order_relaxed);
	atomic_store_explicit(&p->subnet_timeout, net_info(n, row, PI_SUBNET_TIMEOUT),
			      memory_order_relaxed);
	atomic_store_explicit(&p->init_type_reply, net_info(n, row, PI_INIT_TYPE_REPLY),
			      memory_order_relaxed);
}

void net_port_start(struct net *n, uint32_t row)
{
	bool own_of_switch = net_is_switch(n, row) && !n->ports[row].number;
	enum ib_port_state state = own_of_switch ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	enum smp_phys_state phys = own_of_switch ? SMP_PHYS_LINK_UP : SMP_PHYS_POLLING;
	struct subnet_port *p = &n->subnet->ports[row];
	uint8_t *info = n->ports[row].info;

	memcpy(info, info_template(start_kind(n, row), net_end_port(n, row) == row),
	       MAD_ATTRIBUTE_BYTES);
	prm_set(info, PI_STATE, state);
	prm_set(info, PI_PHYS_STATE, phys);
	subnet_set_state(n->subnet, row, state);
	atomic_store_explicit(&p->phys_state, phys, memory_order_relaxed);
	atomic_store_explicit(&p->cap_mask, prm_get32(info, PI_CAP_MASK), memory_order_relaxed);
	atomic_store_explicit(&p->mtu, prm_get32(info, PI_NEIGHBOR_MTU), memory_order_relaxed);
	atomic_store_explicit(&p->width, prm_get32(info, PI_WIDTH_ACTIVE), memory_order_relaxed);
	atomic_store_explicit(&p->speed, prm_get32(info, PI_SPEED_ACTIVE), memory_order_relaxed);
	net_show_info(n, row);
	atomic_store_explicit(&p->pkeys[0], SUBNET_PKEY_DEFAULT, memory_order_relaxed);
}
