// SPDX-License-Identifier: BSD-2-Clause
#include "made_net.h"

#include <sys/mman.h>

#include "base/text.h"
#include "check.h"

#define GUID	  0x0002000000000100ull
#define MOST_HOPS 64

uint32_t made_net_random(struct made_net *m, uint32_t below)
{
	m->random = m->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(m->random >> 33) % below;
}

static uint32_t made_node(struct made_net *m, enum smp_node_type type)
{
	uint32_t number = m->subnet.nnodes, row = m->subnet.nports;
	bool is_switch = type == SMP_NODE_SWITCH;
	struct subnet_node row_of = {
		.kind = is_switch ? SUBNET_SWITCH : SUBNET_HCA,
		.host = is_switch ? SUBNET_NONE : number,
		.nports = is_switch ? MADE_PORTS + 1 : 1,
		.guid = GUID * (number + 1),
		.system_guid = GUID * (number + 1),
	};
	struct net_node node = {
		.type = type,
		.guid = row_of.guid,
		.system_guid = row_of.guid,
		.partition_cap = SUBNET_IB_PKEYS,
		.vendor_id = 0x2c9,
		.device_id = 0x1021,
	};

	text_copy(node.description, sizeof(node.description), is_switch ? "switch" : "host");
	CHECK(subnet_add_node(&m->subnet, &row_of, false, SUBNET_IB_GIDS) == number);
	CHECK(!net_add_node(&m->net, number, &node));
	return row;
}

/* A port of the switch without a cable, or SUBNET_NONE. */
static uint32_t made_free_port(const struct made_net *m, uint32_t sw)
{
	for (uint32_t port = 1; port <= MADE_PORTS; port++)
		if (m->net.ports[m->switches[sw] + port].cable == SUBNET_NONE)
			return m->switches[sw] + port;
	return SUBNET_NONE;
}

static void made_join(struct made_net *m, uint32_t a, uint32_t b)
{
	uint32_t end_a = made_free_port(m, a), end_b;

	if (a == b || end_a == SUBNET_NONE)
		return;
	end_b = made_free_port(m, b);
	if (end_b != SUBNET_NONE)
		net_cable(&m->net, end_a, end_b);
}

void made_net_open(struct made_net *m, uint64_t seed)
{
	const struct subnet_shape shape = {
		.nodes = MADE_HOSTS + MADE_SWITCHES,
		.ports = MADE_HOSTS + MADE_SWITCHES * (MADE_PORTS + 1),
		.gids = (MADE_HOSTS + MADE_SWITCHES) * SUBNET_IB_GIDS,
		.switches = MADE_SWITCHES,
	};
	void *p = mmap(NULL, subnet_bytes(&shape), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	*m = (struct made_net){.random = seed * 2 + 1};
	CHECK(p != MAP_FAILED);
	subnet_format(&m->subnet, p, &shape);
	CHECK(!net_open(&m->net, &m->subnet));
	for (uint32_t i = 0; i < MADE_HOSTS; i++)
		m->hosts[i] = made_node(m, SMP_NODE_CA);
	for (uint32_t i = 0; i < MADE_SWITCHES; i++)
		m->switches[i] = made_node(m, SMP_NODE_SWITCH);
	/* Each has at most five below it, so every one finds a port. */
	for (uint32_t i = 1; i < MADE_SWITCHES; i++) {
		uint32_t least = i > 5 ? i - 5 : 0;

		made_join(m, i, least + made_net_random(m, i - least));
	}
	for (uint32_t i = made_net_random(m, 20); i; i--) {
		uint32_t a = made_net_random(m, MADE_SWITCHES);

		made_join(m, a, made_net_random(m, MADE_SWITCHES));
	}
	for (uint32_t i = 0; i < MADE_HOSTS; i++) {
		uint32_t port = made_free_port(m, made_net_random(m, MADE_SWITCHES));

		if (port == SUBNET_NONE)
			continue;
		net_cable(&m->net, m->hosts[i], port);
		m->hosts[m->nhosts++] = m->hosts[i];
	}
}

void made_net_close(struct made_net *m)
{
	net_close(&m->net);
	munmap(m->subnet.head, m->subnet.head->bytes);
}

int made_net_walk(const struct net *n, uint32_t from, uint32_t lid)
{
	for (int hops = 0; hops < MOST_HOPS; hops++) {
		uint32_t out, port;

		if (net_info(n, net_end_port(n, from), PI_LID) == lid)
			return hops;
		out = from;
		if (net_is_switch(n, from)) {
			port = net_lft(net_node_of(n, from)->sw, lid);
			if (port == NET_DROP)
				return -1;
			out = net_port_row(n, net_node_of(n, from), port);
		} else if (hops) {
			return -1; /* arrived at another's */
		}
		from = out == SUBNET_NONE ? out : net_peer(n, out, IB_PORT_INIT);
		if (from == SUBNET_NONE)
			return -1;
	}
	return -1;
}
