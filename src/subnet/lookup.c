// SPDX-License-Identifier: BSD-2-Clause
/* Looks things up and follows the forwarding tables; see subnet.h.  The daemon may change the tables
 * meanwhile. */
#include "subnet/gid_index.h"
#include "subnet/subnet.h"

#include <stdio.h>

/* The daemon may die while it writes an entry.  After this many attempts the entry counts as
 * empty. */
#define GID_READ_ATTEMPTS 1000

const char *subnet_port_text(const struct subnet *s, uint32_t row, char text[SUBNET_PORT_TEXT])
{
	if (row >= s->nports)
		(void)snprintf(text, SUBNET_PORT_TEXT, "nowhere");
	else
		(void)snprintf(text, SUBNET_PORT_TEXT, "host%u/%.63s",
			       subnet_node_of(s, row)->host + 1, subnet_node_of(s, row)->name);
	return text;
}

uint32_t subnet_port_by_gid(const struct subnet *s, const union ib_gid *gid)
{
	uint32_t i = gid_index_start(s, gid);

	for (uint64_t n = 0; n <= s->gid_index_mask; n++, i = (i + 1) & s->gid_index_mask) {
		uint32_t v = atomic_load_explicit(&s->gid_index[i], memory_order_acquire);

		if (v == GID_INDEX_EMPTY)
			break;
		if (v != GID_INDEX_GONE && v <= s->ngids && gid_equals(&s->gids[v - 1], gid))
			return s->gids[v - 1].port;
	}
	return SUBNET_NONE;
}

/* Copies the entry once; false: it changed meanwhile. */
static bool gid_entry_copy(const struct subnet_gid *g, uint32_t *type_plus_1,
			   struct subnet_gid_entry *out)
{
	uint32_t before = atomic_load_explicit(&g->sequence, memory_order_acquire);

	*type_plus_1 = atomic_load_explicit(&g->type_plus_1, memory_order_acquire);
	/* Acquire, so that the second load of the sequence number comes last. */
	out->gid.half[0] = atomic_load_explicit(&g->half[0], memory_order_acquire);
	out->gid.half[1] = atomic_load_explicit(&g->half[1], memory_order_acquire);
	return !(before & 1) && atomic_load_explicit(&g->sequence, memory_order_relaxed) == before;
}

bool subnet_gid(const struct subnet *s, uint32_t row, uint32_t index, struct subnet_gid_entry *out)
{
	const struct subnet_port *p = &s->ports[row];
	uint32_t type_plus_1;

	if (index >= p->gid_room)
		return false;
	for (int i = 0; i < GID_READ_ATTEMPTS; i++) {
		if (!gid_entry_copy(&s->gids[p->first_gid + index], &type_plus_1, out))
			continue;
		out->type = (enum gid_type)(type_plus_1 - 1);
		return type_plus_1 != 0;
	}
	return false;
}

bool subnet_walk(const struct subnet *s, uint32_t from, uint32_t to)
{
	return subnet_port_active(s, from) && subnet_port_active(s, to) &&
	       s->ports[from].ethernet == s->ports[to].ethernet &&
	       subnet_node_of(s, from)->kind == SUBNET_HCA &&
	       subnet_node_of(s, to)->kind == SUBNET_HCA;
}

/* ---- how fast a port is, by the codes of its width and speed (IBTA 14.2.5.6) ---- */

uint32_t subnet_width_lanes(uint32_t width)
{
	switch (width) {
	case 1:
		return 1;
	case 2:
		return 4;
	case 4:
		return 8;
	case 8:
		return 12;
	case 16:
		return 2;
	default:
		return 0;
	}
}

/* The fastest speed first. */
static const struct subnet_speed speeds[] = {
	{SUBNET_SPEED_XDR, 2000, "XDR"},
	{8u << 8, 1000, "NDR"},
	{4u << 8, 500, "HDR"},
	{2u << 8, 250, "EDR"},
	{1u << 8, 140, "FDR"},
	{SUBNET_SPEED_FDR10, 100, "FDR10"},
	{4, 100, "QDR"},
	{2, 50, "DDR"},
	{1, 25, "SDR"},
};

const struct subnet_speed *subnet_speed_of(uint32_t speed)
{
	const struct subnet_speed *s = speeds;

	while (s < speeds + array_size(speeds) - 1 && !(speed & s->code))
		s++;
	return s;
}

#define BYTES_OF_TENTH 12500000ull /* per second, for 0.1 Gb/s */
#define LANES_UNSAID   4u

uint64_t subnet_port_bytes_per_second(const struct subnet_port *p)
{
	uint32_t speed = atomic_load_explicit(&p->speed, memory_order_relaxed);
	uint32_t lanes = subnet_width_lanes(atomic_load_explicit(&p->width, memory_order_relaxed));

	/* A port that does not say its speed is as fast as any. */
	return (speed ? subnet_speed_of(speed) : speeds)->tenths * BYTES_OF_TENTH *
	       (lanes ? lanes : LANES_UNSAID);
}

/* ---- follows the forwarding tables ---- */

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

/* Says why one of the two ends of a link does not let the packet pass, or SUBNET_ARRIVES. */
static must_check enum subnet_verdict subnet_link_pass(const struct subnet *s, uint32_t row,
						       uint32_t peer, const struct subnet_packet *p)
{
	uint32_t mtu = atomic_load_explicit(&s->ports[row].mtu, memory_order_acquire);

	if (mtu && p->mtu > mtu)
		return SUBNET_MTU;
	return subnet_port_lets_pass(&s->ports[row], p->pkey, SUBNET_ENFORCES_OUT) &&
			       subnet_port_lets_pass(&s->ports[peer], p->pkey, SUBNET_ENFORCES_IN)
		       ? SUBNET_ARRIVES
		       : SUBNET_PARTITION;
}

static enum subnet_verdict links_follow(const struct subnet *s, uint32_t row,
					const struct subnet_packet *p, uint32_t to)
{
	for (uint32_t hops = 0; hops < SUBNET_HOPS; hops++) {
		uint32_t peer = subnet_link_peer(s, row);
		const struct subnet_node *node;
		enum subnet_verdict verdict;

		if (peer == SUBNET_NONE)
			return SUBNET_LINK_DOWN;
		verdict = subnet_link_pass(s, row, peer, p);
		if (verdict != SUBNET_ARRIVES)
			return verdict;
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

enum subnet_verdict subnet_route_packet(const struct subnet *s, uint32_t from,
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

/* ---- follows the multicast tables ---- */

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
