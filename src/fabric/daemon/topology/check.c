// SPDX-License-Identifier: BSD-2-Clause
/* Checks that a plan can be built; see plan.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fabric/daemon/topology/plan.h"
#include "registry/registry.h"
#include "subnet/subnet.h"

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
