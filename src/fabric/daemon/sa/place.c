// SPDX-License-Identifier: BSD-2-Clause
/* Finds ports by LID and GID, what they have in common, and the ways between them. */
#include "fabric/daemon/sa/sa.h"

#include <stdlib.h>
#include <string.h>

/* ---- finds ports by LID and GID, and what they have in common ---- */

bool sa_port_there(const struct net *n, uint32_t row)
{
	if (n->subnet->ports[row].ethernet || net_node_of(n, row)->removed ||
	    net_end_port(n, row) != row || !net_info(n, row, PI_LID))
		return false;
	return net_is_switch(n, row) || net_info(n, row, PI_STATE) != IB_PORT_DOWN;
}

void sa_port_gid(const struct net *n, uint32_t row, union ib_gid *gid)
{
	uint8_t *raw = (uint8_t *)gid;

	memcpy(raw, n->ports[row].info + 8, 8); /* the prefix */
	mad_put64(raw, 8, n->ports[row].guid);
}

uint32_t sa_port_by_gid(const struct net *n, const uint8_t *gid)
{
	union ib_gid key;
	uint32_t row;

	memcpy(&key, gid, sizeof(key));
	row = subnet_port_by_gid(n->subnet, &key);
	return row != SUBNET_NONE && sa_port_there(n, row) ? row : SUBNET_NONE;
}

uint32_t sa_port_by_lid(const struct net *n, uint32_t lid)
{
	uint32_t row = subnet_port_by_lid(n->subnet, (uint16_t)lid);

	return lid && row != SUBNET_NONE && sa_port_there(n, row) ? row : SUBNET_NONE;
}

uint32_t sa_lid_of(const struct net *n, uint32_t row)
{
	return net_info(n, net_end_port(n, row), PI_LID);
}

struct sa_rows sa_rows_of(const struct sa_query *q, bool lid_asked, uint32_t lid)
{
	const struct net *n = q->net;
	const struct net_node *node;
	uint32_t row;

	if (!lid_asked)
		return (struct sa_rows){.first = 0, .count = n->nports};
	row = sa_port_by_lid(n, lid);
	if (row == SUBNET_NONE)
		return (struct sa_rows){0};
	if (!net_is_switch(n, row))
		return (struct sa_rows){.first = row, .count = 1};
	node = net_node_of(n, row);
	return (struct sa_rows){.first = node->first_port, .count = node->nports + 1u};
}

static uint32_t place_count(const struct net *n)
{
	uint32_t count = 0;

	for (uint32_t row = 0; row < n->nports; row++)
		count += sa_port_there(n, row);
	return count;
}

static size_t place_list_bytes(uint32_t count)
{
	return (count + 1ull) * sizeof(uint32_t) + sa_ways_bytes(count);
}

unsigned sa_list_ports(struct sa_query *q)
{
	const uint32_t count = place_count(q->net);

	if (q->sa->answer_bytes + place_list_bytes(count) > SA_MOST_ALL)
		return SA_NO_RESOURCES;
	q->rows = malloc((count + 1ull) * sizeof(*q->rows));
	q->ways = sa_ways_make(q->net, count);
	if (!q->rows || !q->ways) {
		free(q->rows);
		free(q->ways);
		q->rows = NULL;
		return SA_NO_RESOURCES;
	}
	q->sa->answer_bytes += place_list_bytes(count);
	for (uint32_t row = 0; row < q->net->nports && q->nrows < count; row++)
		if (sa_port_there(q->net, row))
			q->rows[q->nrows++] = row;
	return MAD_STATUS_OK;
}

void sa_list_free(struct sa_query *q)
{
	if (!q->rows)
		return;
	q->sa->answer_bytes -= place_list_bytes(q->nrows);
	free(q->rows);
	free(q->ways);
}

/* ---- partitions ---- */

#define PKEY_FULL 0x8000u
#define PKEY_BASE 0x7fffu

static bool pkeys_agree(uint16_t a, uint16_t b)
{
	return (a & PKEY_BASE) && (a & PKEY_BASE) == (b & PKEY_BASE) && ((a | b) & PKEY_FULL);
}

bool sa_has_pkey(const struct net *n, uint32_t row, uint16_t pkey)
{
	const struct subnet_port *p = &n->subnet->ports[row];

	for (uint32_t i = 0; i < SUBNET_IB_PKEYS; i++)
		if ((subnet_pkey(p, i) & PKEY_BASE) == (pkey & PKEY_BASE) && (pkey & PKEY_BASE))
			return true;
	return false;
}

bool sa_share_pkey(const struct net *n, uint32_t a, uint32_t b, uint16_t *pkey)
{
	const struct subnet_port *pa = &n->subnet->ports[a], *pb = &n->subnet->ports[b];

	for (uint32_t i = 0; i < SUBNET_IB_PKEYS; i++) {
		uint16_t key = subnet_pkey(pa, i);

		for (uint32_t j = 0; (key & PKEY_BASE) && j < SUBNET_IB_PKEYS; j++) {
			if (!pkeys_agree(key, subnet_pkey(pb, j)))
				continue;
			*pkey = key;
			return true;
		}
	}
	return false;
}

/*
 * The way between two end ports on which the tables lead, and what its links allow.  An asker for
 * all paths asks about the same ways again and again: what lies behind a host's switch is the same
 * for all hosts at it.  So this remembers it for the last switch, as long as nothing changes.
 */

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
