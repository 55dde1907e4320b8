// SPDX-License-Identifier: BSD-2-Clause
/*
 * What users call nodes: by the name of a host, by a GUID (the node's or a port's), by the id in
 * the topology's file, or by the description, which several may have.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/fabric.h"

#define GUID_DIGITS 16u

/* Reads a number with 0x before it, or 16 digits; 0: the name is neither. */
static uint64_t name_guid(const char *name)
{
	bool marked = name[0] == '0' && (name[1] == 'x' || name[1] == 'X');
	const char *digits = marked ? name + 2 : name;
	size_t n = strspn(digits, "0123456789abcdefABCDEF");

	if (digits[n] || !n || n > GUID_DIGITS || (!marked && n != GUID_DIGITS))
		return 0;
	return strtoull(digits, NULL, 16);
}

static bool node_has_guid(const struct subnet *s, const struct subnet_node *node, uint64_t guid)
{
	if (node->guid == guid)
		return true;
	for (uint32_t i = 0; i < node->nports; i++)
		if (s->ports[node->first_port + i].guid == guid)
			return true;
	return false;
}

static int64_t node_by_guid(const struct subnet *s, uint64_t guid)
{
	for (uint32_t i = 0; guid && i < s->nnodes; i++)
		if (node_has_guid(s, &s->nodes[i], guid))
			return i;
	return -ENOENT;
}

static int64_t node_by_id(const struct subnet *s, const char *name)
{
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (!strncmp(s->nodes[i].id, name, sizeof(s->nodes[i].id)))
			return i;
	return -ENOENT;
}

static int64_t node_by_description(const struct subnet *s, const char *name)
{
	int64_t found = -ENOENT;

	for (uint32_t i = 0; i < s->nnodes; i++) {
		if (strncmp(s->nodes[i].description, name, sizeof(s->nodes[i].description)) != 0)
			continue;
		if (found >= 0)
			return -ENOTUNIQ;
		found = i;
	}
	return found;
}

/* Returns the row of a node that is not called by a host's name. */
static int64_t node_called(const struct subnet *s, const char *name)
{
	int64_t node = name[0] ? node_by_guid(s, name_guid(name)) : -ENOENT;

	if (node < 0 && name[0])
		node = node_by_id(s, name);
	return node < 0 && name[0] ? node_by_description(s, name) : node;
}

int64_t fabric_called_node(const struct fabric *f, const char *name)
{
	const struct subnet *s = &f->subnet;
	int64_t host = topology_find_host(&f->topology, name);
	uint32_t first = host < 0 ? 0 : f->hosts[host].first_node;
	uint32_t nhcas = host < 0 ? 0 : f->topology.hosts[host].nhcas;

	for (uint32_t i = first; i < first + nhcas; i++)
		if (!s->ports[s->nodes[i].first_port].ethernet)
			return i;
	return node_called(s, name);
}

int64_t fabric_called_host(const struct fabric *f, const char *name)
{
	int64_t host = fabric_find_host(f, name), node;

	if (host >= 0)
		return host;
	node = node_called(&f->subnet, name);
	if (node < 0)
		return node;
	/* No program runs on a router. */
	return f->subnet.nodes[node].host == SUBNET_NONE ? -ENOENT
							 : (int64_t)f->subnet.nodes[node].host;
}
