// SPDX-License-Identifier: BSD-2-Clause
#include "test_net.h"

#include <string.h>
#include <sys/mman.h>

#include "base/text.h"
#include "check.h"

#define SWITCH_PORTS 8u
#define UPLINK	     8u
#define GUID	     0x0002000000000100ull

/* The row of its first port. */
static uint32_t test_net_node(struct test_net *t, enum smp_node_type type, const char *id)
{
	uint32_t number = t->subnet.nnodes, row = t->subnet.nports;
	bool is_switch = type == SMP_NODE_SWITCH;
	struct subnet_node row_of = {
		.kind = is_switch ? SUBNET_SWITCH : SUBNET_HCA,
		.host = is_switch ? SUBNET_NONE : number,
		.nports = is_switch ? SWITCH_PORTS + 1 : 1,
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
		.revision = 0xa1,
	};

	text_copy(row_of.name, sizeof(row_of.name), is_switch ? "switch0" : "mlx5_0");
	text_copy(node.id, sizeof(node.id), id);
	text_copy(node.description, sizeof(node.description), id);
	CHECK(subnet_add_node(&t->subnet, &row_of, false, SUBNET_IB_GIDS) == number);
	CHECK(!net_add_node(&t->net, number, &node));
	return row;
}

void test_net_open(struct test_net *t)
{
	const struct subnet_shape shape = {
		.nodes = 4,
		.ports = 2 + 2 * (SWITCH_PORTS + 1),
		.gids = 4 * SUBNET_IB_GIDS,
		.switches = 2,
	};
	void *p = mmap(NULL, subnet_bytes(&shape), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	*t = (struct test_net){0};
	CHECK(p != MAP_FAILED);
	subnet_format(&t->subnet, p, &shape);
	CHECK(!net_open(&t->net, &t->subnet));
	t->h1 = test_net_node(t, SMP_NODE_CA, "H1");
	t->h2 = test_net_node(t, SMP_NODE_CA, "H2");
	t->s1 = test_net_node(t, SMP_NODE_SWITCH, "S1");
	t->s2 = test_net_node(t, SMP_NODE_SWITCH, "S2");
	net_cable(&t->net, t->h1, t->s1 + 1);
	net_cable(&t->net, t->s1 + UPLINK, t->s2 + UPLINK);
	net_cable(&t->net, t->h2, t->s2 + 1);
}

static void test_net_activate(struct test_net *t, uint32_t row)
{
	CHECK(!net_set_state(&t->net, row, IB_PORT_ARMED));
	CHECK(!net_set_state(&t->net, row, IB_PORT_ACTIVE));
}

void test_net_raise(struct test_net *t)
{
	const uint32_t links[] = {t->h1,	  t->s1 + 1, t->s1 + UPLINK,
				  t->s2 + UPLINK, t->h2,     t->s2 + 1};
	const uint32_t rows[] = {t->h1, t->s1, t->s2, t->h2};
	const uint8_t out[2][4] = {{1, 0, UPLINK, UPLINK}, {UPLINK, UPLINK, 0, 1}};

	for (uint32_t i = 0; i < array_size(rows); i++) {
		CHECK(!net_set_lid(&t->net, rows[i], i + 1, 0));
		net_set_sm(&t->net, rows[i], 1, 0);
	}
	for (uint32_t i = 0; i < 2; i++) {
		struct net_switch *sw = net_node_of(&t->net, i ? t->s2 : t->s1)->sw;
		uint8_t block[64];

		memset(block, NET_DROP, sizeof(block));
		memcpy(block + 1, out[i], sizeof(out[i]));
		net_lft_block_set(&t->net, sw, 0, block);
		net_linear_top_set(&t->net, sw, array_size(rows));
		sw->port_change = false;
	}
	for (uint32_t i = 0; i < array_size(links); i++)
		test_net_activate(t, links[i]);
}

void test_net_close(struct test_net *t)
{
	net_close(&t->net);
	munmap(t->subnet.head, t->subnet.head->bytes);
}
