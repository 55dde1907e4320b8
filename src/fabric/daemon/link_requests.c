// SPDX-License-Identifier: BSD-2-Clause
/* What users do to the subnet's hardware: they pull cables, take nodes out and rename them. */
#include <errno.h>
#include <string.h>

#include "fabric/daemon/answer.h"
#include "fabric/daemon/mad/impair.h"

/* Finds the row of a node's port that has a cable. */
static int port_find(const struct fabric *f, const char *name, uint32_t port, uint32_t *row)
{
	int64_t node = fabric_called_node(f, name);

	if (node < 0)
		return (int)node;
	*row = subnet_node_port(&f->subnet.nodes[node], port);
	if (*row == SUBNET_NONE)
		return -ENXIO;
	return f->net.ports[*row].cable == SUBNET_NONE ? -ENOLINK : 0;
}

int answer_link(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct fabric *f = s->fabric;
	struct msg_link link = m->link;
	uint32_t row;
	int ret;

	(void)c, (void)a;
	link.node[sizeof(link.node) - 1] = '\0';
	ret = port_find(f, link.node, link.port, &row);
	if (!ret)
		port_pull(f, row, !link.up);
	return ret;
}

int answer_node(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct msg_node node = m->node;
	int64_t row;

	(void)c, (void)a;
	node.node[sizeof(node.node) - 1] = '\0';
	row = fabric_called_node(s->fabric, node.node);
	if (row < 0)
		return (int)row;
	net_remove(&s->fabric->net, (uint32_t)row, !node.there);
	manage_links(s->fabric);
	return 0;
}

int answer_describe(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct fabric *f = s->fabric;
	struct attr attr;
	uint32_t row;
	int64_t host;
	int ret;

	(void)c;
	m->attr.host[sizeof(m->attr.host) - 1] = '\0';
	m->attr.path[sizeof(m->attr.path) - 1] = '\0';
	host = fabric_find_host(f, m->attr.host);
	if (host < 0 || !attr_parse(m->attr.path, &attr) || attr.group != GROUP_DEVICE)
		return -ENOENT;
	row = fabric_find_attr(f, (uint32_t)host, &attr);
	if (row == SUBNET_NONE)
		return -ENOENT;
	ret = description_open(f, row, &a->fds[0]);
	if (ret)
		return ret;
	a->n = 1;
	a->given = true;
	return 0;
}

/* Begins anew with another seed; packets that are late at that time are lost. */
static int impair_begin(struct mad_fabric *mad, uint32_t seed)
{
	struct impair *fresh;

	if (mad->impair && !seed)
		return 0;
	fresh = impair_open(seed);
	if (!fresh)
		return -ENOMEM;
	impair_close(mad->impair);
	mad->impair = fresh;
	return 0;
}

int answer_impair(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct fabric *f = s->fabric;
	struct msg_impair want = m->impair;
	struct impair_link how = {
		.loss_ppm = want.loss_ppm,
		.duplicate_ppm = want.duplicate_ppm,
		.delay_us = want.delay_us,
		.jitter_us = want.jitter_us,
	};
	uint32_t row = SUBNET_NONE;
	int ret = 0;

	(void)c, (void)a;
	want.node[sizeof(want.node) - 1] = '\0';
	if (want.node[0])
		ret = port_find(f, want.node, want.port, &row);
	if (!ret)
		ret = impair_begin(&f->mad, want.seed);
	if (!ret)
		ret = impair_set(f->mad.impair, row, &how);
	if (!ret && row != SUBNET_NONE)
		ret = impair_set(f->mad.impair, f->net.ports[row].cable, &how);
	return ret;
}
