// SPDX-License-Identifier: BSD-2-Clause
/*
 * The way between two end ports on which the tables lead, and what its links allow.  An asker for
 * all paths asks about the same ways again and again: what lies behind a host's switch is the same
 * for all hosts at it.  So this remembers it for the last switch, as long as nothing changes.
 */
#include "fabric/daemon/sa/sa.h"

#include <stdlib.h>

#define WAY_MOST_HOPS 64u
#define WAY_ANY_MTU   UINT32_MAX
#define WAY_ANY_RATE  0u

/* The way from a switch to the port of this index. */
struct sa_way {
	uint32_t from; /* port 0 of the switch, or SUBNET_NONE: the way is not known */
	bool leads;
	struct sa_limits limits;
};

struct sa_ways {
	uint64_t epoch; /* epoch of the subnet in which they were found */
	/* The source of the last question, and where its link leads. */
	uint32_t source, first;
	struct sa_limits source_limits;
	struct sa_way way[];
};

size_t sa_ways_bytes(uint32_t count)
{
	return sizeof(struct sa_ways) + count * sizeof(struct sa_way);
}

struct sa_ways *sa_ways_make(const struct net *n, uint32_t count)
{
	struct sa_ways *w = malloc(sa_ways_bytes(count));

	if (!w)
		return NULL;
	w->epoch = subnet_epoch(n->subnet);
	w->source = SUBNET_NONE;
	for (uint32_t i = 0; i < count; i++)
		w->way[i].from = SUBNET_NONE;
	return w;
}

static void ways_refresh(struct sa_ways *w, const struct net *n, uint32_t count)
{
	if (w->epoch == subnet_epoch(n->subnet))
		return;
	w->epoch = subnet_epoch(n->subnet);
	w->source = SUBNET_NONE;
	for (uint32_t i = 0; i < count; i++)
		w->way[i].from = SUBNET_NONE;
}

/* ---- limits ---- */

static void limits_add(struct sa_limits *l, const struct sa_limits *other)
{
	if (other->mtu < l->mtu)
		l->mtu = other->mtu;
	if (l->rate == WAY_ANY_RATE ||
	    (other->rate != WAY_ANY_RATE && sa_rate_compare(other->rate, l->rate) < 0))
		l->rate = other->rate;
}

static void limits_add_link(struct sa_limits *l, const struct net *n, uint32_t row)
{
	limits_add(l, &(struct sa_limits){.mtu = net_info(n, row, PI_NEIGHBOR_MTU),
					  .rate = sa_port_rate(n, row)});
}

/* ---- walks ---- */

/* Returns the port by which a packet for the LID leaves a switch, or SUBNET_NONE. */
static uint32_t way_leave(const struct net *n, uint32_t row, uint32_t lid)
{
	uint32_t port = net_lft(net_node_of(n, row)->sw, lid);

	return port == NET_DROP ? SUBNET_NONE : net_port_row(n, net_node_of(n, row), port);
}

/* Walks through switches; false: the tables do not lead there. */
static bool way_walk(const struct net *n, uint32_t at, uint32_t to, uint32_t lid,
		     struct sa_limits *l)
{
	for (uint32_t hops = 0; hops < WAY_MOST_HOPS; hops++) {
		uint32_t out;

		if (net_end_port(n, at) == to)
			return true;
		if (!net_is_switch(n, at))
			return false;
		out = way_leave(n, at, lid);
		if (out == SUBNET_NONE)
			return false;
		at = net_peer(n, out, IB_PORT_INIT);
		if (at == SUBNET_NONE)
			return false;
		limits_add_link(l, n, out);
	}
	return false;
}

/* Takes what a source itself allows, with its link if it has one, and returns where that leads. */
static uint32_t way_begin(const struct net *n, uint32_t from, struct sa_limits *l)
{
	uint32_t at;

	*l = (struct sa_limits){.mtu = net_info(n, from, PI_MTU_CAP),
				.rate = sa_port_rate(n, from)};
	if (net_is_switch(n, from))
		return from;
	at = net_peer(n, from, IB_PORT_INIT);
	if (at != SUBNET_NONE)
		limits_add_link(l, n, from);
	return at;
}

bool sa_way(const struct net *n, uint32_t from, uint32_t to, uint32_t lid, struct sa_limits *l)
{
	uint32_t at;

	if (from == to) {
		*l = (struct sa_limits){.mtu = net_info(n, from, PI_MTU_CAP),
					.rate = sa_port_rate(n, from)};
		return true;
	}
	at = way_begin(n, from, l);
	return at != SUBNET_NONE && way_walk(n, at, to, lid, l);
}

/* ---- ways that are asked for again ---- */

static void ways_begin(struct sa_ways *w, const struct net *n, uint32_t from)
{
	if (w->source == from)
		return;
	w->source = from;
	w->first = way_begin(n, from, &w->source_limits);
}

static const struct sa_way *ways_find(struct sa_ways *w, const struct net *n, uint32_t index,
				      uint32_t to, uint32_t lid)
{
	const uint32_t from = net_end_port(n, w->first);
	struct sa_way *way = &w->way[index];

	if (way->from == from)
		return way;
	way->from = from;
	way->limits = (struct sa_limits){WAY_ANY_MTU, WAY_ANY_RATE};
	way->leads = way_walk(n, from, to, lid, &way->limits);
	return way;
}

bool sa_way_listed(const struct sa_query *q, uint32_t from, uint32_t index, uint32_t lid,
		   struct sa_limits *l)
{
	const struct net *n = q->net;
	struct sa_ways *w = q->ways;
	const uint32_t to = q->rows[index];
	const struct sa_way *way;

	if (from == to)
		return sa_way(n, from, to, lid, l);
	ways_refresh(w, n, q->nrows);
	ways_begin(w, n, from);
	if (w->first == SUBNET_NONE)
		return false;
	way = ways_find(w, n, index, to, lid);
	*l = w->source_limits;
	limits_add(l, &way->limits);
	return way->leads;
}
