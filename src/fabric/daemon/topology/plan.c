// SPDX-License-Identifier: BSD-2-Clause
/* The arrays of a plan; see plan.h. */
#include "fabric/daemon/topology/plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
