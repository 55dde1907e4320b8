// SPDX-License-Identifier: BSD-2-Clause
/*
 * Multicast tables: a tree of shortest ways for each group, from the switch of its first member to
 * those of the other members.
 */
#include "fabric/daemon/sm/sm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fabric/daemon/sm/graph.h"

#define BLOCK_MLIDS 32u
#define SLICE_PORTS 16u
#define MASK_BYTES  (BLOCK_MLIDS * 2u)

/* The ports by which a group's packets leave a switch. */
struct tree_ports {
	uint16_t slice[NET_MFT_SLICES];
	bool there; /* whether the tree has reached the switch */
};

struct tree {
	struct graph graph;
	struct tree_ports *ports; /* [switch] */
};

static void tree_add_port(struct tree *t, uint32_t sw, uint32_t port)
{
	t->ports[sw].slice[port / SLICE_PORTS] |= (uint16_t)(1u << port % SLICE_PORTS);
}

/* Returns the edge of 'sw' that leads one hop nearer to the root. */
static const struct graph_edge *tree_edge_up(const struct graph *g, uint32_t sw)
{
	for (uint32_t e = g->first[sw]; e < g->first[sw + 1]; e++)
		if (g->distance[g->edges[e].to] < g->distance[sw])
			return &g->edges[e];
	return NULL; /* sw is the root */
}

static void tree_join_up(struct tree *t, uint32_t sw, const struct graph_edge *up)
{
	const struct net *n = t->graph.net;
	const struct net_node *node = &n->nodes[t->graph.node[sw]];
	uint32_t peer = net_peer(n, node->first_port + up->port, IB_PORT_INIT);

	if (peer == SUBNET_NONE)
		return;
	tree_add_port(t, sw, up->port);
	tree_add_port(t, up->to, n->ports[peer].number);
}

/* A member that only sends needs a way into the tree, and gets nothing. */
static void tree_add_member(struct tree *t, const struct graph_place *place, bool receives)
{
	uint32_t sw = place->at;

	if (t->graph.distance[sw] == GRAPH_FAR)
		return;
	if (receives)
		tree_add_port(t, sw, place->port);
	while (!t->ports[sw].there) {
		const struct graph_edge *up = tree_edge_up(&t->graph, sw);

		t->ports[sw].there = true;
		if (!up)
			return;
		tree_join_up(t, sw, up);
		sw = up->to;
	}
}

/* Writes one entry of a switch's table. */
static void tree_write_slice(struct net *n, struct net_switch *sw, uint32_t mlid, uint32_t slice,
			     uint16_t mask)
{
	const uint32_t at = mlid - MAD_LID_MULTICAST, entry = at % BLOCK_MLIDS * 2;
	uint8_t masks[MASK_BYTES];

	net_mft_block_get(sw, at / BLOCK_MLIDS, slice, masks);
	if (mad_get16(masks, entry) == mask)
		return;
	mad_put16(masks, entry, mask);
	net_mft_block_set(n, sw, at / BLOCK_MLIDS, slice, masks);
}

static void tree_write(struct net *n, const struct tree *t, uint32_t mlid)
{
	for (uint32_t i = 0; i < t->graph.nswitches; i++) {
		struct net_node *node = &n->nodes[t->graph.node[i]];

		for (uint32_t slice = 0; slice <= node->nports / SLICE_PORTS; slice++)
			tree_write_slice(n, node->sw, mlid, slice, t->ports[i].slice[slice]);
		/* 0: no other SM has limited it */
		if (node->sw->multicast_top && node->sw->multicast_top < mlid)
			net_multicast_top_set(n, node->sw, mlid);
	}
}

static void tree_clear(struct tree *t)
{
	memset(t->ports, 0, (t->graph.nswitches + 1u) * sizeof(*t->ports));
}

/* The members may have been plugged in elsewhere, or be down, so this finds their places anew. */
static void tree_make(struct tree *t, const struct sa_group *group)
{
	bool rooted = false;

	tree_clear(t);
	for (uint32_t i = 0; i < group->nmembers; i++) {
		struct graph_place place = graph_place_of(&t->graph, group->members[i].row);

		if (place.at == GRAPH_NONE)
			continue;
		if (!rooted)
			graph_search(&t->graph, place.at);
		rooted = true;
		tree_add_member(t, &place,
				group->members[i].join_state & (SA_JOIN_FULL | SA_JOIN_NOT));
	}
}

static void trees_write(struct sm *s, struct tree *t)
{
	uint64_t used[NET_MULTICAST_CAP / 64] = {0};

	for (const struct sa_group *g = s->sa.groups; g; g = g->next) {
		uint32_t at = g->mlid - MAD_LID_MULTICAST;

		used[at / 64] |= 1ull << at % 64;
		tree_make(t, g);
		tree_write(s->fabric->net, t, g->mlid);
	}
	tree_clear(t);
	for (uint32_t at = 0; at < NET_MULTICAST_CAP; at++)
		if ((s->trees[at / 64] & ~used[at / 64]) >> at % 64 & 1)
			tree_write(s->fabric->net, t, MAD_LID_MULTICAST + at);
	memcpy(s->trees, used, sizeof(used));
}

void sm_make_trees(struct sm *s)
{
	struct tree t;
	int ret = graph_open(&t.graph, s->fabric->net);

	if (!ret) {
		t.ports = calloc(t.graph.nswitches + 1u, sizeof(*t.ports));
		if (t.ports)
			trees_write(s, &t);
		else
			ret = -ENOMEM;
		free(t.ports);
		graph_close(&t.graph);
	}
	if (ret)
		log_error("subnet manager: no memory for multicast trees");
}
