// SPDX-License-Identifier: BSD-2-Clause
/*
 * Linear tables: shortest ways, spread over ways of the same length.
 *
 * The work goes along the LIDs, 64 at a time, because that is a block of every switch's table.  It
 * copies side by side what the tables say, leaves LIDs as they are that every switch leads to, and
 * makes the tables of the others by one search from the switch at which each LID is.  So a subnet
 * that another SM has set up stays as it is, and a link that fails moves only what went over it.
 */
#include "fabric/daemon/sm/sm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/sm/graph.h"

#define BLOCK_LIDS  64u
#define BLOCK_COUNT (SUBNET_LIDS / BLOCK_LIDS)
#define PORTS_MOST  256u

/* The use of a LID: nobody has it, a port without a link has it, or one that switches lead to. */
enum lid_use { LID_FREE, LID_DOWN, LID_LED_TO };

struct lid_owner {
	struct graph_place place;
	uint8_t use;
};

/* The ports of a switch that lead one hop nearer to another. */
struct way_choice {
	uint8_t nports;
	uint8_t ports[PORTS_MOST - 1]; /* one more than a switch has: a trial may go there */
};

struct sm_routes {
	struct graph graph;
	struct lid_owner owners[SUBNET_LIDS];
	uint32_t top;		       /* the highest LID in use */
	uint32_t block;		       /* the next block */
	uint32_t searched;	       /* switch that graph.distance belongs to */
	uint8_t (*tables)[BLOCK_LIDS]; /* [switch]: what this block is to be */
	uint8_t *led;		       /* [switch]: enum way_seen, for the LID at hand */
	uint32_t *trail;
	uint32_t listed;	    /* switch that choices lead to */
	struct way_choice *choices; /* [switch] */
	/* For one switch at a time: the port that leads to each neighbour. */
	uint32_t (*towards)[PORTS_MOST];
};

enum way_seen { WAY_UNSEEN, WAY_ON_TRAIL, WAY_LEADS, WAY_FAILS };

/* ---- who has which LID ---- */

static void routes_add_owner(struct sm_routes *r, uint32_t row)
{
	const struct net *n = r->graph.net;
	uint32_t lid = net_info(n, row, PI_LID), count = 1u << net_info(n, row, PI_LMC);
	struct lid_owner owner = {.place = graph_place_of(&r->graph, row)};

	owner.use = owner.place.at == GRAPH_NONE ? LID_DOWN : LID_LED_TO;
	for (uint32_t i = lid; lid && i < lid + count && i < SUBNET_LIDS; i++) {
		/* A port that is down may still show a LID that another has by now. */
		if (r->owners[i].use != LID_LED_TO)
			r->owners[i] = owner;
		r->top = i > r->top ? i : r->top;
	}
}

/* Notes where each port's edge leads, so that ways can be followed without a search. */
static void routes_note_neighbours(struct sm_routes *r)
{
	const struct graph *g = &r->graph;

	memset(r->towards, 0xff, g->nswitches * sizeof(*r->towards));
	for (uint32_t i = 0; i < g->nswitches; i++)
		for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++)
			r->towards[i][g->edges[e].port] = g->edges[e].to;
}

int sm_routes_begin(struct sm *s)
{
	struct net *n = s->fabric->net;
	struct sm_routes *r;
	size_t switches;

	sm_routes_end(s);
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	s->routes = r;
	if (graph_open(&r->graph, n))
		goto no_memory;
	switches = r->graph.nswitches + 1u;
	r->tables = calloc(switches, sizeof(*r->tables));
	r->led = calloc(switches, sizeof(*r->led));
	r->trail = calloc(switches, sizeof(*r->trail));
	r->towards = calloc(switches, sizeof(*r->towards));
	r->choices = calloc(switches, sizeof(*r->choices));
	if (!r->tables || !r->led || !r->trail || !r->towards || !r->choices)
		goto no_memory;
	r->searched = r->listed = GRAPH_NONE;
	routes_note_neighbours(r);
	for (uint32_t row = 0; row < n->nports; row++)
		if (sm_is_end_port(n, row))
			routes_add_owner(r, row);
	return 0;

no_memory:
	sm_routes_end(s);
	return -ENOMEM;
}

void sm_routes_end(struct sm *s)
{
	struct sm_routes *r = s->routes;

	if (!r)
		return;
	graph_close(&r->graph);
	free(r->tables);
	free(r->led);
	free(r->trail);
	free(r->towards);
	free(r->choices);
	free(r);
	s->routes = NULL;
}

/* ---- does a LID's column lead everywhere? ---- */

/* Says where the way of a LID goes on from a switch, or how it ends. */
static enum way_seen way_step(const struct sm_routes *r, uint32_t lid, uint32_t *at)
{
	const struct graph_place *place = &r->owners[lid].place;
	uint8_t port = r->tables[*at][lid % BLOCK_LIDS];
	uint32_t next;

	if (*at == place->at)
		return port == place->port ? WAY_LEADS : WAY_FAILS;
	next = port == NET_DROP ? GRAPH_NONE : r->towards[*at][port];
	if (next == GRAPH_NONE)
		return WAY_FAILS;
	*at = next;
	return r->led[next] == WAY_ON_TRAIL ? WAY_FAILS : (enum way_seen)r->led[next];
}

static bool way_leads(struct sm_routes *r, uint32_t lid, uint32_t from)
{
	enum way_seen seen = (enum way_seen)r->led[from];
	uint32_t length = 0;

	while (seen == WAY_UNSEEN) {
		r->led[from] = WAY_ON_TRAIL;
		r->trail[length++] = from;
		seen = way_step(r, lid, &from);
	}
	while (length)
		r->led[r->trail[--length]] = (uint8_t)seen;
	return seen == WAY_LEADS;
}

static void routes_search(struct sm_routes *r, uint32_t to)
{
	if (r->searched == to)
		return;
	graph_search(&r->graph, to);
	r->searched = to;
}

static bool routes_lead(struct sm_routes *r, uint32_t lid)
{
	memset(r->led, WAY_UNSEEN, r->graph.nswitches);
	for (uint32_t i = 0; i < r->graph.nswitches; i++) {
		if (way_leads(r, lid, i))
			continue;
		/* That may be all that is possible: a part of the subnet may be cut off. */
		routes_search(r, r->owners[lid].place.at);
		if (r->graph.distance[i] != GRAPH_FAR)
			return false;
	}
	return true;
}

/* ---- making columns ---- */

/*
 * Chooses one of the ports that are one hop nearer, by the LID.  Switches at odd and at even
 * distances divide by different digits of it: in a fat tree, all LIDs that come up to a switch by
 * the same choice below would otherwise make the same choice again.
 */
static uint8_t routes_choose(const struct sm_routes *r, uint32_t sw, uint32_t lid)
{
	const struct way_choice *c = &r->choices[sw];

	if (!c->nports)
		return NET_DROP;
	return c->ports[(r->graph.distance[sw] % 2 ? lid / c->nports : lid) % c->nports];
}

/*
 * Has no branch for each edge, because there are hundreds of thousands, as often as there are
 * switches.
 */
static void choice_list(struct way_choice *c, const struct graph_edge *e,
			const struct graph_edge *end, const uint16_t *distance, uint32_t from)
{
	uint32_t n = 0;

	for (; e < end; e++) {
		c->ports[n] = (uint8_t)e->port;
		n += distance[e->to] + 1u == from;
	}
	c->nports = (uint8_t)n;
}

/* Lists the choices once for a switch, because they are the same for all its LIDs. */
static void routes_list_choices(struct sm_routes *r, uint32_t to)
{
	const struct graph *g = &r->graph;

	routes_search(r, to);
	if (r->listed == to)
		return;
	for (uint32_t sw = 0; sw < g->nswitches; sw++)
		choice_list(&r->choices[sw], g->edges + g->first[sw], g->edges + g->first[sw + 1],
			    g->distance, g->distance[sw]);
	r->listed = to;
}

static void routes_make_column(struct sm_routes *r, uint32_t lid)
{
	const struct lid_owner *owner = &r->owners[lid];
	const uint16_t *distance = r->graph.distance;
	const uint32_t switches = r->graph.nswitches;
	uint8_t(*tables)[BLOCK_LIDS] = r->tables;

	if (owner->use == LID_LED_TO)
		routes_list_choices(r, owner->place.at);
	for (uint32_t i = 0; i < switches; i++) {
		uint8_t *entry = &tables[i][lid % BLOCK_LIDS];

		if (owner->use != LID_LED_TO || distance[i] == GRAPH_FAR)
			*entry = NET_DROP;
		else if (i == owner->place.at)
			*entry = owner->place.port;
		else
			*entry = routes_choose(r, i, lid);
	}
}

/* ---- a block ---- */

static struct net_switch *routes_switch(const struct sm_routes *r, uint32_t sw)
{
	return r->graph.net->nodes[r->graph.node[sw]].sw;
}

/*
 * Tells whether a LID's column is right as it is.  The column of a port without a link stays until
 * the port is back.
 */
static bool routes_keep(struct sm_routes *r, uint32_t lid, bool afresh)
{
	switch ((enum lid_use)r->owners[lid].use) {
	case LID_DOWN:
		return true;
	case LID_LED_TO:
		return !afresh && routes_lead(r, lid);
	case LID_FREE:
		break;
	}
	for (uint32_t i = 0; i < r->graph.nswitches; i++)
		if (r->tables[i][lid % BLOCK_LIDS] != NET_DROP)
			return false;
	return true;
}

bool sm_routes_step(struct sm *s)
{
	struct sm_routes *r = s->routes;
	const uint32_t block = r->block;
	bool changed = false;

	if (block > r->top / BLOCK_LIDS || block >= BLOCK_COUNT)
		return false;
	for (uint32_t i = 0; i < r->graph.nswitches; i++) {
		struct net_switch *sw = routes_switch(r, i);

		if (!block && sw->linear_top < r->top)
			net_linear_top_set(s->fabric->net, sw, r->top);
		net_lft_block_get(sw, block, r->tables[i]);
	}
	for (uint32_t lid = block * BLOCK_LIDS; lid < (block + 1) * BLOCK_LIDS; lid++) {
		if (!lid || routes_keep(r, lid, s->afresh))
			continue;
		routes_make_column(r, lid);
		changed = true;
	}
	for (uint32_t i = 0; changed && i < r->graph.nswitches; i++)
		net_lft_block_set(s->fabric->net, routes_switch(r, i), block, r->tables[i]);
	r->block++;
	return true;
}

int sm_make_routes(struct sm *s)
{
	int ret = sm_routes_begin(s);

	if (ret)
		return ret;
	while (sm_routes_step(s))
		;
	sm_routes_end(s);
	s->afresh = false;
	return 0;
}
