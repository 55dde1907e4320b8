// SPDX-License-Identifier: BSD-2-Clause
/* Follows the forwarding tables; see subnet.h.  The daemon may change the tables meanwhile. */
#include "subnet/walk.h"

static bool port_has_lid(const struct subnet_port *p, uint32_t dlid)
{
	uint32_t lid = atomic_load_explicit(&p->lid, memory_order_acquire);
	uint32_t lmc = atomic_load_explicit(&p->lmc, memory_order_acquire);

	return lid && dlid - lid < 1u << (lmc & SUBNET_MAX_LMC);
}

uint32_t subnet_link_peer(const struct subnet *s, uint32_t row)
{
	uint32_t peer = atomic_load_explicit(&s->ports[row].peer_plus_1, memory_order_acquire) - 1;

	return subnet_port_active(s, row) && subnet_port_active(s, peer) ? peer : SUBNET_NONE;
}

/* The port out of which the switch sends the LID; 0: none, as its own port 0 leads to nobody. */
static uint32_t switch_out(const struct subnet *s, const struct subnet_node *node, uint32_t dlid)
{
	const struct subnet_switch *sw = &s->switches[node->switch_index];
	uint32_t out;

	if (node->switch_index >= s->nswitches || dlid >= SUBNET_LINEAR ||
	    dlid > atomic_load_explicit(&sw->linear_top, memory_order_acquire))
		return 0;
	out = atomic_load_explicit(&sw->linear[dlid], memory_order_acquire) ^ SUBNET_DROP;
	return out < node->nports ? out : 0;
}

uint32_t subnet_forward(const struct subnet *s, uint32_t row, uint16_t dlid)
{
	const struct subnet_node *node = subnet_node_of(s, row);
	uint32_t out = switch_out(s, node, dlid);

	return out && !port_has_lid(&s->ports[node->first_port], dlid) ? node->first_port + out
								       : SUBNET_NONE;
}

static bool table_has(const struct subnet_port *p, uint16_t pkey)
{
	for (uint32_t i = 0; i < SUBNET_MAX_PKEYS; i++)
		if (pkey_same_partition(subnet_pkey(p, i), pkey))
			return true;
	return false;
}

bool subnet_port_lets_pass(const struct subnet_port *p, uint16_t pkey, uint8_t direction)
{
	return !pkey ||
	       likely(!(atomic_load_explicit(&p->enforces, memory_order_acquire) & direction)) ||
	       table_has(p, pkey);
}

enum subnet_way subnet_link_pass(const struct subnet *s, uint32_t row, uint32_t peer,
				 const struct subnet_packet *p)
{
	uint32_t mtu = atomic_load_explicit(&s->ports[row].mtu, memory_order_acquire);

	if (mtu && p->mtu > mtu)
		return SUBNET_MTU;
	return subnet_port_lets_pass(&s->ports[row], p->pkey, SUBNET_ENFORCES_OUT) &&
			       subnet_port_lets_pass(&s->ports[peer], p->pkey, SUBNET_ENFORCES_IN)
		       ? SUBNET_ARRIVES
		       : SUBNET_PARTITION;
}

static enum subnet_way links_follow(const struct subnet *s, uint32_t row,
				    const struct subnet_packet *p, uint32_t to)
{
	for (uint32_t hops = 0; hops < SUBNET_HOPS; hops++) {
		uint32_t peer = subnet_link_peer(s, row);
		const struct subnet_node *node;
		enum subnet_way way;

		if (peer == SUBNET_NONE)
			return SUBNET_LINK_DOWN;
		way = subnet_link_pass(s, row, peer, p);
		if (way != SUBNET_ARRIVES)
			return way;
		node = subnet_node_of(s, peer);
		if (node->kind != SUBNET_SWITCH)
			return peer == to && port_has_lid(&s->ports[peer], p->dlid)
				       ? SUBNET_ARRIVES
				       : SUBNET_ELSEWHERE;
		if (port_has_lid(&s->ports[node->first_port], p->dlid))
			return SUBNET_ELSEWHERE;
		row = subnet_forward(s, peer, p->dlid);
		if (row == SUBNET_NONE)
			return SUBNET_NO_ROUTE;
	}
	return SUBNET_LOOP;
}

uint32_t subnet_refused_at(const struct subnet *s, uint32_t from, const struct subnet_packet *p)
{
	uint32_t row = from;

	for (uint32_t hops = 0; hops < SUBNET_HOPS && row != SUBNET_NONE; hops++) {
		uint32_t peer = subnet_link_peer(s, row);

		if (peer == SUBNET_NONE)
			break;
		if (!subnet_port_lets_pass(&s->ports[row], p->pkey, SUBNET_ENFORCES_OUT))
			return row;
		if (!subnet_port_lets_pass(&s->ports[peer], p->pkey, SUBNET_ENFORCES_IN))
			return peer;
		if (subnet_node_of(s, peer)->kind != SUBNET_SWITCH)
			break;
		row = subnet_forward(s, peer, p->dlid);
	}
	return SUBNET_NONE;
}

uint32_t subnet_lid_end(const struct subnet *s, uint32_t from, uint16_t dlid)
{
	uint32_t owner = subnet_port_by_lid(s, dlid), row = from;

	if (likely(!subnet_lid_contested(s, dlid)))
		return owner;
	if (port_has_lid(&s->ports[from], dlid))
		return from;
	for (uint32_t hops = 0; hops < SUBNET_HOPS && row != SUBNET_NONE; hops++) {
		uint32_t peer = subnet_link_peer(s, row);

		if (peer == SUBNET_NONE)
			break;
		if (subnet_node_of(s, peer)->kind != SUBNET_SWITCH)
			return port_has_lid(&s->ports[peer], dlid) ? peer : owner;
		row = subnet_forward(s, peer, dlid);
	}
	return owner;
}

enum subnet_way subnet_route_packet(const struct subnet *s, uint32_t from,
				    const struct subnet_packet *p, uint32_t to)
{
	if (!subnet_walk(s, from, to))
		return SUBNET_DOWN;
	if (s->ports[from].ethernet && s->ports[to].ethernet)
		return subnet_ethernet_reaches(s, from, to) ? SUBNET_ARRIVES : SUBNET_NO_ROUTE;
	if (s->ports[from].ethernet || !s->nswitches)
		return SUBNET_ARRIVES;
	/* A packet to a LID of the port itself never leaves it. */
	if (port_has_lid(&s->ports[from], p->dlid))
		return from == to ? SUBNET_ARRIVES : SUBNET_ELSEWHERE;
	return links_follow(s, from, p, to);
}
