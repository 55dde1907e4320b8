// SPDX-License-Identifier: BSD-2-Clause
/* What users do to the subnet's hardware: cables that are pulled, nodes that are taken out. */
#include <errno.h>
#include <string.h>

#include "fabric/daemon/answer.h"

/* Row of a node of InfiniBand by the name of its host, its id, or its description. */
static int64_t node_find(const struct fabric *f, const char *name)
{
	const struct subnet *s = &f->subnet;
	int64_t host = topology_find_host(&f->topology, name);

	if (host >= 0 && !s->ports[f->hosts[host].first_port].ethernet)
		return f->hosts[host].first_node;
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (!strncmp(s->nodes[i].id, name, sizeof(s->nodes[i].id)) && name[0])
			return i;
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (!strncmp(s->nodes[i].description, name, sizeof(s->nodes[i].description)) &&
		    name[0])
			return i;
	return -ENOENT;
}

int answer_link(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct fabric *f = s->fabric;
	struct msg_link link = m->link;
	uint32_t row;
	int64_t node;

	(void)c, (void)a;
	link.node[sizeof(link.node) - 1] = '\0';
	node = node_find(f, link.node);
	if (node < 0)
		return (int)node;
	row = subnet_node_port(&f->subnet.nodes[node], link.port);
	if (row == SUBNET_NONE)
		return -ENXIO;
	if (f->net.ports[row].cable == SUBNET_NONE)
		return -ENOLINK;
	port_pull(f, row, !link.up);
	return 0;
}

int answer_node(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct msg_node node = m->node;
	int64_t row;

	(void)c, (void)a;
	node.node[sizeof(node.node) - 1] = '\0';
	row = node_find(s->fabric, node.node);
	if (row < 0)
		return (int)row;
	net_remove(&s->fabric->net, (uint32_t)row, !node.there);
	manage_links(s->fabric);
	return 0;
}
