/* SPDX-License-Identifier: BSD-2-Clause */
/* The switches and the links among them, as numbers from 0 and lists of edges, for searches. */
#pragma once

#include "fabric/daemon/node/net.h"

#define GRAPH_FAR  0xffffu     /* a distance: no way leads there */
#define GRAPH_NONE 0xffffffffu /* no switch */

struct graph_edge {
	uint32_t to;   /* switch */
	uint32_t port; /* port by which it leaves the switch */
};

struct graph {
	const struct net *net;
	uint32_t nswitches;
	uint32_t *switch_of; /* [row of a node] or GRAPH_NONE */
	uint32_t *node;	     /* [switch]: row of its node */
	uint32_t *first;     /* [switch + 1] in edges */
	struct graph_edge *edges;
	uint16_t *distance; /* [switch]: result of the last search */
	uint32_t *queue;
};

/* The switch port by which packets for an end port's LIDs leave the switches. */
struct graph_place {
	uint32_t at; /* switch; GRAPH_NONE: no switch leads to it */
	uint8_t port;
};

/* Takes the links that are at least INIT. */
int graph_open(struct graph *g, const struct net *n) must_check;
void graph_close(struct graph *g);
struct graph_place graph_place_of(const struct graph *g, uint32_t row);
/* Sets g->distance to the hops from every switch to this one. */
void graph_search(struct graph *g, uint32_t to);
