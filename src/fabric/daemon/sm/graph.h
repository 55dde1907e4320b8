/* SPDX-License-Identifier: BSD-2-Clause */
/* The switches and the links among them, as numbers from 0 and lists of edges, for searches. */
#pragma once

#include "fabric/daemon/node/net.h"

#define GRAPH_FAR  0xffffu     /* a distance: there is no way */
#define GRAPH_NONE 0xffffffffu /* no switch */

struct graph_edge {
	uint32_t to;   /* switch */
	uint32_t port; /* by which it is left */
};

struct graph {
	const struct net *net;
	uint32_t nswitches;
	uint32_t *switch_of; /* [row of a node] or GRAPH_NONE */
	uint32_t *node;	     /* [switch]: row of its node */
	uint32_t *first;     /* [switch + 1] in edges */
	struct graph_edge *edges;
	uint16_t *distance; /* [switch] of the last search */
	uint32_t *queue;
};

/* Where the LIDs of an end port leave the switches. */
struct graph_place {
	uint32_t at; /* switch; GRAPH_NONE: no switch leads to it */
	uint8_t port;
};

/* Of links that are at least INIT. */
int graph_open(struct graph *g, const struct net *n) must_check;
void graph_close(struct graph *g);
struct graph_place graph_place_of(const struct graph *g, uint32_t row);
/* g->distance becomes the hops from every switch to this one. */
void graph_search(struct graph *g, uint32_t to);
