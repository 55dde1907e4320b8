// SPDX-License-Identifier: BSD-2-Clause
/* The nodes of the subnet, and who listens to their changes; see net.h. */
#include "fabric/daemon/node/net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static int switch_add(struct net *n, struct net_node *node, uint32_t index)
{
	struct net_switch *sw = calloc(1, sizeof(*sw));

	if (!sw)
		return -ENOMEM;
	*sw = (struct net_switch){
		.mft_slices = (uint8_t)((node->nports + 16u) / 16u),
		.enhanced_port0 = node->sw && node->sw->enhanced_port0,
		.tables = &n->subnet->switches[index],
	};
	node->sw = sw;
	return 0;
}

/* ---- the whole ---- */

int net_open(struct net *n, struct subnet *s)
{
	*n = (struct net){
		.subnet = s,
		.nnodes = s->head->table[SUBNET_TABLE_NODES].count,
		.nports = s->head->table[SUBNET_TABLE_PORTS].count,
	};
	n->nodes = calloc(n->nnodes, sizeof(*n->nodes));
	n->ports = calloc(n->nports, sizeof(*n->ports));
	if (n->nodes && n->ports)
		return 0;
	net_close(n);
	return -ENOMEM;
}

void net_close(struct net *n)
{
	for (uint32_t i = 0; n->ports && i < n->nports; i++) {
		free(n->ports[i].counters);
		free(n->ports[i].counters_cleared);
		free(n->ports[i].sl_words);
		free(n->ports[i].sl2vl);
		free(n->ports[i].vlarb);
	}
	for (uint32_t i = 0; n->nodes && i < n->nnodes; i++)
		free(n->nodes[i].sw);
	free(n->ports);
	free(n->nodes);
	*n = (struct net){0};
}

/* ---- nodes ---- */

uint32_t net_port_row(const struct net *n, const struct net_node *node, uint32_t number)
{
	return subnet_node_port(&n->subnet->nodes[n->ports[node->first_port].node], number);
}

static void port_describe(struct net *n, uint32_t node_row, uint32_t row)
{
	const struct net_node *node = &n->nodes[node_row];
	struct subnet_port *p = &n->subnet->ports[row];

	if (!p->guid)
		p->guid = node->guid + (node->sw ? 0 : p->number);
	n->ports[row] = (struct net_port){
		.node = node_row,
		.number = (uint8_t)p->number,
		.cable = SUBNET_NONE,
		.guid = p->guid,
	};
}

static int node_ports_add(struct net *n, uint32_t node_row)
{
	const struct subnet_node *s = &n->subnet->nodes[node_row];
	int ret = 0;

	for (uint32_t row = s->first_port; row < s->first_port + s->nports && !ret; row++) {
		port_describe(n, node_row, row);
		if (n->subnet->ports[row].ethernet)
			continue;
		net_port_start(n, row);
		if (net_end_port(n, row) == row)
			ret = net_set_prefix(n, row, 0xfe80ull << 48);
	}
	return ret;
}

int net_add_node(struct net *n, uint32_t node_row, const struct net_node *node)
{
	struct subnet_node *s = &n->subnet->nodes[node_row];
	struct net_node *to = &n->nodes[node_row];
	int ret = 0;

	*to = *node;
	to->first_port = s->first_port;
	to->nports = (uint8_t)(s->nports - (node->type == SMP_NODE_SWITCH));
	if (node->type == SMP_NODE_SWITCH)
		ret = switch_add(n, to, s->switch_index);
	if (ret) {
		to->sw = NULL;
		return ret;
	}
	s->type = node->type;
	memcpy(s->id, node->id, sizeof(s->id));
	memcpy(s->description, node->description, sizeof(s->description));
	return node_ports_add(n, node_row);
}

/* Tells it at each end port, because each has an agent that says so. */
static void node_tell_description(const struct net *n, const struct net_node *node)
{
	uint32_t ports = node->sw ? 1 : node->nports;

	for (uint32_t row = node->first_port; row < node->first_port + ports; row++)
		if (!n->subnet->ports[row].ethernet)
			net_tell(n, NET_DESCRIPTION, row, 0);
}

int net_set_description(struct net *n, uint32_t row, const char *text)
{
	struct net_node *node = net_node_of(n, row);
	char padded[sizeof(node->description)] = {0};
	size_t bytes = strlen(text);

	if (bytes > sizeof(padded))
		return -EINVAL;
	for (size_t i = 0; i < bytes; i++)
		padded[i] = text[i];
	if (!memcmp(padded, node->description, sizeof(padded)))
		return 0;
	memcpy(node->description, padded, sizeof(padded));
	memcpy(n->subnet->nodes[n->ports[row].node].description, padded, sizeof(padded));
	node_tell_description(n, node);
	return 0;
}

/* ---- listeners ---- */

void net_listen(struct net *n, struct net_listener *l)
{
	struct net_listener **at = &n->listeners;

	/* Adds the listener behind the others, because they hear in the order in which they
	 * came. */
	while (*at)
		at = &(*at)->next;
	l->next = NULL;
	*at = l;
}

void net_tell(const struct net *n, enum net_event event, uint32_t row, uint32_t what)
{
	for (struct net_listener *l = n->listeners; l; l = l->next)
		l->event(l, event, row, what);
}
