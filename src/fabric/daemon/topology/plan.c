// SPDX-License-Identifier: BSD-2-Clause
/* Plans: their arrays, their GUIDs, and whether they can be built; see plan.h. */
#include "fabric/daemon/topology/plan.h"

#include "registry/registry.h"
#include "subnet/subnet.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- counts GUIDs ---- */

void guid_rule_start(struct guid_rule *g)
{
	*g = (struct guid_rule){
		.next = {[SMP_NODE_CA] = 0x100000,
			 [SMP_NODE_SWITCH] = 0x200000,
			 [SMP_NODE_ROUTER] = 0x300000},
		.base = {[SMP_NODE_CA] = 0x100000,
			 [SMP_NODE_SWITCH] = 0x200000,
			 [SMP_NODE_ROUTER] = 0x300000},
	};
}

void guid_rule_set(struct guid_rule *g, enum smp_node_type type, uint64_t guid, bool relative)
{
	if (!relative)
		g->base[type] = guid;
	g->next[type] = relative ? g->base[type] + guid : guid;
	g->given[type] = true;
}

uint64_t guid_rule_take(struct guid_rule *g, enum smp_node_type type, uint32_t nports)
{
	uint64_t guid = g->next[type];

	g->given[type] = false;
	/* Ports of a switch have its GUID; those of other nodes count up from the node's. */
	g->next[type] += type == SMP_NODE_SWITCH ? 1 : nports + 1;
	return guid;
}

/* ---- the arrays of a plan ---- */

#define PLAN_MIN_ROOM 16u

/* Makes room for 'more' elements beyond 'count'. */
static int plan_grow(void *array, uint32_t count, uint32_t more, uint32_t *room, size_t bytes)
{
	uint64_t wanted = *room ? *room : PLAN_MIN_ROOM;
	void *old, *p;

	if (count + (uint64_t)more <= *room)
		return 0;
	while (wanted < count + (uint64_t)more)
		wanted *= 2;
	if (wanted > UINT32_MAX)
		return -ENOMEM;
	memcpy(&old, array, sizeof(old));
	p = reallocarray(old, (size_t)wanted, bytes);
	if (!p)
		return -ENOMEM;
	memcpy(array, &p, sizeof(p));
	*room = (uint32_t)wanted;
	return 0;
}

void plan_free(struct plan *p)
{
	for (uint32_t i = 0; i < p->nfiles; i++)
		free(p->files[i]);
	free(p->files);
	names_free(&p->ids);
	free(p->nodes);
	free(p->ports);
	*p = (struct plan){0};
}

static const char *plan_node_id(const void *nodes, uint32_t index)
{
	return ((const struct plan_node *)nodes)[index].id;
}

static uint32_t plan_node_rows(const struct plan_node *node)
{
	return node->nports + (node->type == SMP_NODE_SWITCH ? 1u : 0u);
}

int64_t plan_add_node(struct plan *p, const struct plan_node *node)
{
	uint32_t rows = plan_node_rows(node), at = p->nnodes;
	int ret = plan_grow(&p->nodes, p->nnodes, 1, &p->nodes_room, sizeof(*p->nodes));

	if (!ret)
		ret = plan_grow(&p->ports, p->nports, rows, &p->ports_room, sizeof(*p->ports));
	if (ret)
		return ret;
	p->nodes[at] = *node;
	p->nodes[at].first_port = p->nports;
	ret = names_add(&p->ids, p->nodes, plan_node_id, node->id);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < rows; i++)
		p->ports[p->nports++] = (struct plan_port){.cable = PLAN_NONE};
	return p->nnodes++;
}

int64_t plan_find_id(const struct plan *p, const char *id)
{
	return names_find(&p->ids, p->nodes, plan_node_id, id);
}

int64_t plan_find(const struct plan *p, const char *name)
{
	int64_t at = plan_find_id(p, name);

	for (uint32_t i = 0; at < 0 && i < p->nnodes; i++)
		if (!strcmp(p->nodes[i].description, name))
			at = i;
	return at;
}

uint32_t plan_port_index(const struct plan_node *node, uint32_t number)
{
	uint32_t at = node->type == SMP_NODE_SWITCH ? number : number - 1;

	return at < plan_node_rows(node) ? node->first_port + at : PLAN_NONE;
}

uint64_t plan_port_guid(const struct plan *p, const struct plan_node *node, uint32_t port)
{
	bool is_switch = node->type == SMP_NODE_SWITCH;
	uint64_t guid = p->ports[is_switch ? node->first_port : port].guid;

	return guid ? guid : node->guid + (is_switch ? 0 : port - node->first_port + 1);
}

uint32_t plan_node_of(const struct plan *p, uint32_t port)
{
	uint32_t low = 0, high = p->nnodes;

	/* Finds the last node that begins at or before the port. */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (p->nodes[middle].first_port <= port)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* ---- files that it was read from ---- */

int64_t plan_add_file(struct plan *p, const char *name)
{
	int ret = plan_grow(&p->files, p->nfiles, 1, &p->files_room, sizeof(*p->files));
	char *copy;

	if (ret)
		return ret;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	p->files[p->nfiles] = copy;
	return p->nfiles++;
}

int plan_error(const struct plan *p, uint32_t file, uint32_t line, char error[PLAN_ERROR_BYTES],
	       const char *format, ...)
{
	va_list ap;
	int n = snprintf(error, PLAN_ERROR_BYTES,
			 "%.255s:%u: ", file < p->nfiles ? p->files[file] : "topology", line);

	va_start(ap, format);
	(void)vsnprintf(error + n, PLAN_ERROR_BYTES - (size_t)n, format, ap);
	va_end(ap);
	return -EINVAL;
}

/* ---- checks that a plan can be built ---- */

#define NODE_ERROR(p, node, error, ...) \
	plan_error(p, (node)->file, (node)->line, error, __VA_ARGS__)

/* ---- cables ---- */

/* Returns the port's number on its node. */
static uint32_t port_number(const struct plan_node *node, uint32_t port)
{
	return port - node->first_port + (node->type == SMP_NODE_SWITCH ? 0 : 1);
}

static int cable_check(const struct plan *p, const struct plan_node *node, uint32_t port,
		       char error[PLAN_ERROR_BYTES])
{
	uint32_t peer = p->ports[port].cable;
	const struct plan_node *other;

	if (peer == PLAN_NONE || (p->ports[peer].cable == port && peer != port))
		return 0;
	other = &p->nodes[plan_node_of(p, peer)];
	if (peer == port)
		return plan_error(p, node->file, p->ports[port].line, error,
				  "the cable leads back to its own port");
	if (p->ports[peer].cable == PLAN_NONE)
		return plan_error(p, node->file, p->ports[port].line, error,
				  "'%s' port %u does not say that a cable leads there", other->id,
				  port_number(other, peer));
	return plan_error(p, node->file, p->ports[port].line, error,
			  "the cable of '%s' port %u leads elsewhere (line %u)", other->id,
			  port_number(other, peer), p->ports[peer].line);
}

static int cables_check(const struct plan *p, const struct plan_node *node,
			char error[PLAN_ERROR_BYTES])
{
	int ret = 0;

	for (uint32_t number = 1; number <= node->nports && !ret; number++)
		ret = cable_check(p, node, plan_port_index(node, number), error);
	return ret;
}

/* ---- GUIDs ---- */

struct guid_place {
	uint64_t guid;
	uint32_t node_plus_1;
};

struct guid_set {
	struct guid_place *places;
	uint32_t mask;
};

static int guid_set_open(struct guid_set *s, uint32_t count)
{
	uint64_t size = 16;

	while (size < 2ull * count)
		size *= 2;
	s->mask = (uint32_t)(size - 1);
	s->places = calloc((size_t)size, sizeof(*s->places));
	return s->places ? 0 : -ENOMEM;
}

/* Claims the GUID for 'node'.  Returns the node that has it already, or PLAN_NONE. */
static uint32_t guid_claim(struct guid_set *s, uint64_t guid, uint32_t node)
{
	uint32_t i = (uint32_t)(guid * 0x9e3779b97f4a7c15ull >> 32) & s->mask;

	for (; s->places[i].node_plus_1; i = (i + 1) & s->mask)
		if (s->places[i].guid == guid)
			return s->places[i].node_plus_1 - 1;
	s->places[i] = (struct guid_place){guid, node + 1};
	return PLAN_NONE;
}

static int guid_error(const struct plan *p, uint32_t node, uint32_t owner, uint64_t guid,
		      const char *of, char error[PLAN_ERROR_BYTES])
{
	return NODE_ERROR(p, &p->nodes[node], error,
			  "'%s' and '%s' (line %u) have the %s GUID 0x%" PRIx64, p->nodes[node].id,
			  p->nodes[owner].id, p->nodes[owner].line, of, guid);
}

static int guids_check_node(const struct plan *p, uint32_t node, struct guid_set *nodes,
			    struct guid_set *ports, char error[PLAN_ERROR_BYTES])
{
	const struct plan_node *n = &p->nodes[node];
	bool is_switch = n->type == SMP_NODE_SWITCH;
	uint32_t owner = guid_claim(nodes, n->guid, node);

	if (!n->guid || n->guid + n->nports < n->guid)
		return NODE_ERROR(p, n, error, "0x%" PRIx64 " cannot be the GUID of '%s'", n->guid,
				  n->id);
	if (owner != PLAN_NONE)
		return guid_error(p, node, owner, n->guid, "node", error);
	for (uint32_t i = 0; i < (is_switch ? 1u : n->nports); i++) {
		uint64_t guid = plan_port_guid(p, n, n->first_port + i);

		owner = guid_claim(ports, guid, node);
		if (owner != PLAN_NONE)
			return guid_error(p, node, owner, guid, "port", error);
	}
	return 0;
}

static int guids_check(const struct plan *p, char error[PLAN_ERROR_BYTES])
{
	struct guid_set nodes = {0}, ports = {0};
	int ret = guid_set_open(&nodes, p->nnodes);

	if (!ret)
		ret = guid_set_open(&ports, p->nports);
	if (ret)
		(void)snprintf(error, PLAN_ERROR_BYTES, "topology: not enough memory");
	for (uint32_t i = 0; i < p->nnodes && !ret; i++)
		ret = guids_check_node(p, i, &nodes, &ports, error);
	free(nodes.places);
	free(ports.places);
	return ret;
}

/* ---- the whole ---- */

static int node_check(const struct plan *p, const struct plan_node *node, uint32_t *lids,
		      uint32_t *hosts, char error[PLAN_ERROR_BYTES])
{
	if (node->type == SMP_NODE_CA && node->nports > SLOT_PORTS)
		return NODE_ERROR(p, node, error, "'%s' has %u ports; a host has %u at most",
				  node->id, node->nports, SLOT_PORTS);
	*hosts += node->type == SMP_NODE_CA;
	*lids += node->type == SMP_NODE_SWITCH ? 1u : node->nports;
	if (*lids >= SUBNET_LIDS)
		return NODE_ERROR(p, node, error,
				  "no LID is left for '%s'; a subnet has %u of them", node->id,
				  SUBNET_LIDS - 1);
	return cables_check(p, node, error);
}

int plan_check(const struct plan *p, char error[PLAN_ERROR_BYTES])
{
	uint32_t lids = 0, hosts = 0;
	int ret = 0;

	for (uint32_t i = 0; i < p->nnodes && !ret; i++)
		ret = node_check(p, &p->nodes[i], &lids, &hosts, error);
	if (ret)
		return ret;
	if (!hosts) {
		(void)snprintf(error, PLAN_ERROR_BYTES, "%.255s: no Hca is in it",
			       p->nfiles ? p->files[0] : "topology");
		return -EINVAL;
	}
	return guids_check(p, error);
}
