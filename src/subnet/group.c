// SPDX-License-Identifier: BSD-2-Clause
/* Follows the multicast tables; see subnet.h. */
#include "subnet/walk.h"

#define MFT_PORTS 16u /* ports in a mask */

static bool table_leads(const struct subnet *s, const struct subnet_node *node, uint16_t mlid,
			uint32_t port)
{
	const struct subnet_switch *sw = &s->switches[node->switch_index];
	uint32_t at = mlid - SUBNET_LIDS, slice = port / MFT_PORTS, top;

	if (node->switch_index >= s->nswitches || mlid < SUBNET_LIDS || at >= SUBNET_MULTICAST ||
	    slice >= SUBNET_MFT_SLICES)
		return false;
	top = atomic_load_explicit(&sw->multicast_top, memory_order_acquire);
	/* A top of 0 means that the SM has not set it, and all entries count (IBTA 14.2.5.4). */
	if (top && mlid > top)
		return false;
	return atomic_load_explicit(
		       &sw->multicast[at / SUBNET_MFT_BLOCK][slice][at % SUBNET_MFT_BLOCK],
		       memory_order_acquire) >>
		       port % MFT_PORTS &
	       1;
}

static bool link_cross(const struct subnet *s, const struct subnet_packet *p, uint32_t row,
		       uint32_t *peer)
{
	*peer = subnet_link_peer(s, row);
	return *peer != SUBNET_NONE && subnet_link_pass(s, row, *peer, p) == SUBNET_ARRIVES;
}

static bool at_switch(const struct subnet *s, uint32_t row)
{
	return subnet_node_of(s, row)->kind == SUBNET_SWITCH;
}

void subnet_follow_group(const struct subnet *s, uint32_t from, const struct subnet_packet *p,
			 subnet_link_fn *fn, void *user)
{
	/* The switches between here and there: the port where the packet came in, and the one to
	 * look at. */
	struct {
		uint32_t in, port;
	} way[SUBNET_HOPS];
	uint32_t depth = 0, links = 0, peer;

	if (from >= s->nports || !link_cross(s, p, from, &peer) || !fn(user, from, peer))
		return;
	if (at_switch(s, peer)) {
		way[0].in = peer;
		way[0].port = 0;
		depth = 1;
	}
	while (depth) {
		uint32_t in = way[depth - 1].in, port = ++way[depth - 1].port;
		const struct subnet_node *node = subnet_node_of(s, in);
		uint32_t row = node->first_port + port;

		if (port >= node->nports) {
			depth--;
			continue;
		}
		if (row == in || !table_leads(s, node, p->dlid, port) ||
		    !link_cross(s, p, row, &peer))
			continue;
		/* A tree crosses each link once.  Tables that form no tree end here. */
		if (!fn(user, row, peer) || ++links > s->nports)
			return;
		if (at_switch(s, peer) && depth < SUBNET_HOPS) {
			way[depth].in = peer;
			way[depth++].port = 0;
		}
	}
}

struct group_search {
	uint32_t to;
	bool found;
};

static bool group_search_link(void *user, uint32_t row, uint32_t peer)
{
	struct group_search *g = user;

	(void)row;
	g->found = peer == g->to;
	return !g->found;
}

bool subnet_group_reaches(const struct subnet *s, uint32_t from, const struct subnet_packet *p,
			  uint32_t to)
{
	struct group_search g = {.to = to};

	if (from == to || !s->nswitches ||
	    !atomic_load_explicit(&s->head->groups_by_table, memory_order_acquire))
		return true;
	subnet_follow_group(s, from, p, group_search_link, &g);
	return g.found;
}
