// SPDX-License-Identifier: BSD-2-Clause
/* Finds ports by LID and GID, and what they have in common. */
#include "fabric/daemon/sa/sa.h"

#include <stdlib.h>
#include <string.h>

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
