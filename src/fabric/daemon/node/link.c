// SPDX-License-Identifier: BSD-2-Clause
/* Cables, and the states of the links on them; see net.h. */
#include <errno.h>

#include "fabric/daemon/node/net.h"

static enum ib_port_state port_state(const struct net *n, uint32_t row)
{
	return (enum ib_port_state)net_info(n, row, PI_STATE);
}

/* A switch's own port has no link, and Ethernet ports have none that we know of. */
static bool port_has_link(const struct net *n, uint32_t row)
{
	return !n->subnet->ports[row].ethernet && !(net_is_switch(n, row) && !n->ports[row].number);
}

/* ---- one end ---- */

static void switch_port_changed(struct net *n, uint32_t row)
{
	const struct net_node *node = net_node_of(n, row);

	if (!node->sw)
		return;
	node->sw->port_change = true;
	net_tell(n, NET_SWITCH_CHANGE, node->first_port, n->ports[row].number);
}

static void phys_store(struct net *n, uint32_t row, enum smp_phys_state phys)
{
	net_info_set(n, row, PI_PHYS_STATE, phys);
	atomic_store_explicit(&n->subnet->ports[row].phys_state, phys, memory_order_release);
}

/* An SM knows what a link does because the SM makes it train again.  That is no event of the link,
 * so neither PortStateChange (IBTA 14.2.5.4) nor a counter tells of it. */
enum link_cause { LINK_BY_ITSELF, LINK_BY_SM };

static void state_store(struct net *n, uint32_t row, enum ib_port_state state,
			enum link_cause cause)
{
	enum ib_port_state old = port_state(n, row);

	if (old == state)
		return;
	net_info_set(n, row, PI_STATE, state);
	subnet_set_state(n->subnet, row, state);
	net_tell(n, NET_STATE, row, old);
	if (cause == LINK_BY_ITSELF && (old == IB_PORT_DOWN || state == IB_PORT_DOWN))
		switch_port_changed(n, row);
}

static void end_down(struct net *n, uint32_t row, enum link_cause cause)
{
	phys_store(n, row, n->ports[row].disabled ? SMP_PHYS_DISABLED : SMP_PHYS_POLLING);
	if (port_state(n, row) <= IB_PORT_DOWN)
		return;
	if (cause == LINK_BY_ITSELF)
		net_count(n, row, NET_LINK_DOWNED, 1);
	atomic_store_explicit(&n->subnet->ports[row].peer_plus_1, 0, memory_order_release);
	state_store(n, row, IB_PORT_DOWN, cause);
}

/*
 * Returns the best that both ends have enabled, or the slowest, which all have, if they share none.
 */
static uint32_t best_common(uint32_t a, uint32_t b, const uint8_t *order, uint32_t slowest)
{
	for (; *order; order++)
		if (a & b & *order)
			return *order;
	return slowest;
}

/* The value 30 means that none is enabled (IBTA 14.2.5.6, LinkSpeedExtEnabled). */
static uint32_t ext_enabled(const struct net *n, uint32_t row)
{
	uint32_t v = net_info(n, row, PI_EXT_SPEED_ENABLED);

	return v == 30 ? 0 : v;
}

void net_set_rate(struct net *n, uint32_t row, const struct net_rate *rate)
{
	struct subnet_port *p = &n->subnet->ports[row];
	uint32_t ext = rate->xdr ? SUBNET_SPEED_XDR : rate->ext_speed << 8;

	if (rate->width) {
		net_info_set(n, row, PI_WIDTH_ACTIVE, rate->width);
		atomic_store_explicit(&p->width, rate->width, memory_order_release);
	}
	if (!rate->speed)
		return;
	net_info_set(n, row, PI_SPEED_ACTIVE, rate->speed);
	net_info_set(n, row, PI_EXT_SPEED_ACTIVE, rate->xdr ? 0 : rate->ext_speed);
	net_info_set(n, row, PI_XDR_ACTIVE, rate->xdr);
	n->ports[row].fdr10_active = rate->fdr10;
	atomic_store_explicit(&p->speed, (rate->fdr10 ? SUBNET_SPEED_FDR10 : rate->speed) | ext,
			      memory_order_release);
}

static void end_rate(struct net *n, uint32_t row, uint32_t peer)
{
	/* 12X, 8X, 4X, 2X, 1X; QDR, DDR, SDR; NDR, HDR, EDR, FDR */
	static const uint8_t widths[] = {8, 4, 2, 16, 1, 0}, speeds[] = {4, 2, 1, 0};
	static const uint8_t ext_speeds[] = {8, 4, 2, 1, 0};
	uint32_t width = best_common(net_info(n, row, PI_WIDTH_ENABLED),
				     net_info(n, peer, PI_WIDTH_ENABLED), widths, 1);
	uint32_t speed = best_common(net_info(n, row, PI_SPEED_ENABLED),
				     net_info(n, peer, PI_SPEED_ENABLED), speeds, 1);
	uint32_t ext = best_common(ext_enabled(n, row), ext_enabled(n, peer), ext_speeds, 0);
	struct net_rate rate = {
		.width = width,
		.speed = speed,
		.ext_speed = ext,
		.xdr = net_info(n, row, PI_XDR_ENABLED) & net_info(n, peer, PI_XDR_ENABLED) & 1,
		.fdr10 = !ext && n->ports[row].fdr10 && n->ports[peer].fdr10,
	};

	net_set_rate(n, row, &rate);
}

static void end_up(struct net *n, uint32_t row, uint32_t peer, enum link_cause cause)
{
	end_rate(n, row, peer);
	phys_store(n, row, SMP_PHYS_LINK_UP);
	atomic_store_explicit(&n->subnet->ports[row].peer_plus_1, peer + 1, memory_order_release);
	state_store(n, row, IB_PORT_INIT, cause);
}

/* ---- both ends ---- */

static bool end_can_train(const struct net *n, uint32_t row)
{
	return !n->ports[row].disabled && !n->ports[row].pulled && !net_node_of(n, row)->removed;
}

static void link_down(struct net *n, uint32_t row, enum link_cause cause)
{
	uint32_t peer = n->ports[row].cable;

	/* Told before either end forgets the other. */
	if (port_state(n, row) > IB_PORT_DOWN)
		net_settle(n);
	end_down(n, row, cause);
	if (peer != SUBNET_NONE)
		end_down(n, peer, cause);
}

/* Brings the link up if nothing hinders it and it is down, and down if it may not be up. */
static void link_train(struct net *n, uint32_t row, enum link_cause cause)
{
	uint32_t peer = n->ports[row].cable;

	if (peer == SUBNET_NONE || !end_can_train(n, row) || !end_can_train(n, peer)) {
		link_down(n, row, cause);
		return;
	}
	if (port_state(n, row) > IB_PORT_DOWN)
		return;
	end_up(n, row, peer, cause);
	end_up(n, peer, row, cause);
}

static void end_fit(struct net *n, uint32_t row)
{
	struct net_port *p = &n->ports[row];

	p->fit_width = (uint8_t)net_info(n, row, PI_WIDTH_ENABLED);
	p->fit_speed = (uint8_t)net_info(n, row, PI_SPEED_ENABLED);
	p->fit_ext_speed = (uint8_t)net_info(n, row, PI_EXT_SPEED_ENABLED);
}

void net_cable(struct net *n, uint32_t a, uint32_t b)
{
	end_fit(n, a);
	end_fit(n, b);
	n->ports[a].cable = b;
	n->ports[b].cable = a;
	link_train(n, a, LINK_BY_ITSELF);
}

void net_pull(struct net *n, uint32_t row, bool pulled)
{
	if (!port_has_link(n, row) || n->ports[row].pulled == pulled)
		return;
	n->ports[row].pulled = pulled;
	link_train(n, row, LINK_BY_ITSELF);
}

void net_remove(struct net *n, uint32_t node_row, bool removed)
{
	const struct subnet_node *s = &n->subnet->nodes[node_row];

	if (n->nodes[node_row].removed == removed)
		return;
	n->nodes[node_row].removed = removed;
	for (uint32_t row = s->first_port; row < s->first_port + s->nports; row++)
		if (port_has_link(n, row))
			link_train(n, row, LINK_BY_ITSELF);
}

/* ---- what a Set of PortInfo says ---- */

/* The SM of a link that was in use has to hear of it, whoever takes the link down, because the link
 * does not come back to what it was. */
static bool end_is_in_use(const struct net *n, uint32_t row)
{
	return row != SUBNET_NONE && port_state(n, row) > IB_PORT_INIT;
}

static void link_retrain(struct net *n, uint32_t row)
{
	bool in_use = end_is_in_use(n, row) || end_is_in_use(n, n->ports[row].cable);
	enum link_cause cause = in_use ? LINK_BY_ITSELF : LINK_BY_SM;

	link_down(n, row, cause);
	link_train(n, row, cause);
}

int net_set_state(struct net *n, uint32_t row, enum ib_port_state state)
{
	enum ib_port_state now = port_state(n, row);

	/* An SM cannot set the state of a switch's own port. */
	if (state == IB_PORT_NOP || !port_has_link(n, row))
		return 0;
	if (state == IB_PORT_DOWN) {
		link_retrain(n, row);
		return 0;
	}
	if (state == now && now >= IB_PORT_ARMED)
		return 0;
	if (!(now == IB_PORT_INIT && state == IB_PORT_ARMED) &&
	    !(now == IB_PORT_ARMED && state == IB_PORT_ACTIVE))
		return -EINVAL;
	state_store(n, row, state, LINK_BY_SM);
	return 0;
}

int net_set_phys(struct net *n, uint32_t row, enum smp_phys_state phys)
{
	if (!phys || !port_has_link(n, row))
		return 0;
	if (phys != SMP_PHYS_POLLING && phys != SMP_PHYS_DISABLED)
		return -EINVAL;
	n->ports[row].disabled = phys == SMP_PHYS_DISABLED;
	link_down(n, row, LINK_BY_ITSELF);
	link_train(n, row, LINK_BY_ITSELF);
	return 0;
}

uint32_t net_peer(const struct net *n, uint32_t row, enum ib_port_state at_least)
{
	return port_has_link(n, row) && port_state(n, row) >= at_least &&
			       port_state(n, row) > IB_PORT_DOWN
		       ? n->ports[row].cable
		       : SUBNET_NONE;
}
