// SPDX-License-Identifier: BSD-2-Clause
#include "fabric/daemon/sm/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Returns the switch at the other end of an external port, or GRAPH_NONE. */
static uint32_t graph_neighbour(const struct graph *g, uint32_t row)
{
	uint32_t peer = net_peer(g->net, row, IB_PORT_INIT);

	return peer == SUBNET_NONE ? GRAPH_NONE : g->switch_of[g->net->ports[peer].node];
}

/* Counts the edges, and lists them unless 'edges' is NULL. */
static uint32_t graph_edges_of(const struct graph *g, uint32_t sw, struct graph_edge *edges)
{
	const struct net_node *node = &g->net->nodes[g->node[sw]];
	uint32_t n = 0;

	for (uint32_t port = 1; port <= node->nports; port++) {
		uint32_t to = graph_neighbour(g, node->first_port + port);

		if (to == GRAPH_NONE || to == sw)
			continue;
		if (edges)
			edges[n] = (struct graph_edge){.to = to, .port = port};
		n++;
	}
	return n;
}

static void graph_number_switches(struct graph *g)
{
	for (uint32_t i = 0; i < g->net->nnodes; i++) {
		const struct net_node *node = &g->net->nodes[i];

		g->switch_of[i] = GRAPH_NONE;
		if (node->type != SMP_NODE_SWITCH || node->removed)
			continue;
		g->switch_of[i] = g->nswitches;
		g->node[g->nswitches++] = i;
	}
}

static int graph_link(struct graph *g)
{
	for (uint32_t i = 0; i < g->nswitches; i++)
		g->first[i + 1] = g->first[i] + graph_edges_of(g, i, NULL);
	g->edges = calloc(g->first[g->nswitches] + 1u, sizeof(*g->edges));
	if (!g->edges)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->nswitches; i++)
		(void)graph_edges_of(g, i, g->edges + g->first[i]);
	return 0;
}

int graph_open(struct graph *g, const struct net *n)
{
	const size_t nodes = n->nnodes + 1u;
	int ret = -ENOMEM;

	*g = (struct graph){.net = n};
	g->switch_of = calloc(nodes, sizeof(*g->switch_of));
	g->node = calloc(nodes, sizeof(*g->node));
	g->first = calloc(nodes, sizeof(*g->first));
	g->distance = calloc(nodes, sizeof(*g->distance));
	g->queue = calloc(nodes, sizeof(*g->queue));
	if (g->switch_of && g->node && g->first && g->distance && g->queue) {
		graph_number_switches(g);
		ret = graph_link(g);
	}
	if (ret)
		graph_close(g);
	return ret;
}

void graph_close(struct graph *g)
{
	free(g->switch_of);
	free(g->node);
	free(g->first);
	free(g->edges);
	free(g->distance);
	free(g->queue);
	*g = (struct graph){0};
}

struct graph_place graph_place_of(const struct graph *g, uint32_t row)
{
	const struct net *n = g->net;
	uint32_t peer;

	if (net_is_switch(n, row))
		return (struct graph_place){.at = g->switch_of[n->ports[row].node], .port = 0};
	peer = net_peer(n, row, IB_PORT_INIT);
	if (peer == SUBNET_NONE || !net_is_switch(n, peer))
		return (struct graph_place){.at = GRAPH_NONE};
	return (struct graph_place){.at = g->switch_of[n->ports[peer].node],
				    .port = n->ports[peer].number};
}

void graph_search(struct graph *g, uint32_t to)
{
	const struct graph_edge *edges = g->edges;
	uint32_t *queue = g->queue, head = 0, tail = 0;
	uint16_t *distance = g->distance;

	for (uint32_t i = 0; i < g->nswitches; i++)
		distance[i] = GRAPH_FAR;
	distance[to] = 0;
	queue[tail++] = to;
	/* When all switches are found, the edges of the last ones tell nothing new. */
	while (head < tail && tail < g->nswitches) {
		uint32_t at = queue[head++];
		uint16_t further = (uint16_t)(distance[at] + 1);

		for (uint32_t e = g->first[at], end = g->first[at + 1]; e < end; e++) {
			uint32_t next = edges[e].to;

			if (distance[next] != GRAPH_FAR)
				continue;
			distance[next] = further;
			queue[tail++] = next;
		}
	}
}
