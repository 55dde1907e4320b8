// SPDX-License-Identifier: BSD-2-Clause
/* Nodes, cables and the states of links, tables, and what the subnet's rows say of them. */
#include <errno.h>
#include <string.h>

#include "check.h"
#include "test_net.h"

#define STEPS 10000

/* ---- start ---- */

static void test_start(void)
{
	struct test_net t;
	uint8_t lft[64], masks[64];

	test_net_open(&t);
	CHECK(net_info(&t.net, t.h1, PI_STATE) == IB_PORT_INIT);
	CHECK(net_info(&t.net, t.s1, PI_STATE) == IB_PORT_ACTIVE);
	CHECK(net_info(&t.net, t.s1 + 1, PI_STATE) == IB_PORT_INIT);
	CHECK(net_info(&t.net, t.s1 + 2, PI_STATE) == IB_PORT_DOWN);
	CHECK(net_info(&t.net, t.s1 + 2, PI_PHYS_STATE) == SMP_PHYS_POLLING);
	CHECK(net_info(&t.net, t.h1, PI_EXT_SPEED_ACTIVE) == 8);
	CHECK(net_info(&t.net, t.h1, PI_WIDTH_ACTIVE) == 2);
	CHECK(net_info(&t.net, t.s1 + 1, PI_CAP_MASK) == 0);
	CHECK(t.net.ports[t.s1 + 3].guid == net_node_of(&t.net, t.s1)->guid);
	CHECK(t.net.ports[t.h1].guid == net_node_of(&t.net, t.h1)->guid + 1);
	CHECK(net_node_of(&t.net, t.s1)->sw->port_change);
	net_lft_block_get(net_node_of(&t.net, t.s2)->sw, 767, lft);
	net_mft_block_get(net_node_of(&t.net, t.s2)->sw, 31, 0, masks);
	for (unsigned i = 0; i < 64; i++)
		CHECK(lft[i] == NET_DROP && !masks[i]);
	CHECK(net_port_row(&t.net, net_node_of(&t.net, t.s1), 8) == t.s1 + 8);
	CHECK(net_port_row(&t.net, net_node_of(&t.net, t.s1), 9) == SUBNET_NONE);
	CHECK(net_port_row(&t.net, net_node_of(&t.net, t.h2), 1) == t.h2);
	CHECK(net_port_row(&t.net, net_node_of(&t.net, t.h2), 0) == SUBNET_NONE);
	CHECK(net_peer(&t.net, t.h1, IB_PORT_INIT) == t.s1 + 1);
	CHECK(net_peer(&t.net, t.h1, IB_PORT_ARMED) == SUBNET_NONE);
	CHECK(net_peer(&t.net, t.s1, IB_PORT_DOWN) == SUBNET_NONE);
	test_net_raise(&t);
	CHECK(net_peer(&t.net, t.s2 + 8, IB_PORT_ACTIVE) == t.s1 + 8);
	CHECK(subnet_port_by_lid(&t.subnet, 3) == t.s2 && subnet_port_active(&t.subnet, t.h2));
	test_net_close(&t);
}

/* ---- the state machine ---- */

/* F 3.3: what a Set of the state does to a port in a state. */
static void test_states(void)
{
	static const struct {
		enum ib_port_state from, set;
		int ret;
		enum ib_port_state port, peer;
	} rows[] = {
		{IB_PORT_INIT, IB_PORT_NOP, 0, IB_PORT_INIT, IB_PORT_INIT},
		{IB_PORT_INIT, IB_PORT_DOWN, 0, IB_PORT_INIT, IB_PORT_INIT},
		{IB_PORT_INIT, IB_PORT_INIT, -EINVAL, IB_PORT_INIT, IB_PORT_INIT},
		{IB_PORT_INIT, IB_PORT_ARMED, 0, IB_PORT_ARMED, IB_PORT_INIT},
		{IB_PORT_INIT, IB_PORT_ACTIVE, -EINVAL, IB_PORT_INIT, IB_PORT_INIT},
		{IB_PORT_ARMED, IB_PORT_NOP, 0, IB_PORT_ARMED, IB_PORT_INIT},
		{IB_PORT_ARMED, IB_PORT_DOWN, 0, IB_PORT_INIT, IB_PORT_INIT},
		{IB_PORT_ARMED, IB_PORT_INIT, -EINVAL, IB_PORT_ARMED, IB_PORT_INIT},
		{IB_PORT_ARMED, IB_PORT_ARMED, 0, IB_PORT_ARMED, IB_PORT_INIT},
		{IB_PORT_ARMED, IB_PORT_ACTIVE, 0, IB_PORT_ACTIVE, IB_PORT_INIT},
		{IB_PORT_ACTIVE, IB_PORT_NOP, 0, IB_PORT_ACTIVE, IB_PORT_INIT},
		{IB_PORT_ACTIVE, IB_PORT_DOWN, 0, IB_PORT_INIT, IB_PORT_INIT},
		{IB_PORT_ACTIVE, IB_PORT_INIT, -EINVAL, IB_PORT_ACTIVE, IB_PORT_INIT},
		{IB_PORT_ACTIVE, IB_PORT_ARMED, -EINVAL, IB_PORT_ACTIVE, IB_PORT_INIT},
		{IB_PORT_ACTIVE, IB_PORT_ACTIVE, 0, IB_PORT_ACTIVE, IB_PORT_INIT},
		{IB_PORT_DOWN, IB_PORT_NOP, 0, IB_PORT_DOWN, IB_PORT_DOWN},
		{IB_PORT_DOWN, IB_PORT_DOWN, 0, IB_PORT_DOWN, IB_PORT_DOWN},
		{IB_PORT_DOWN, IB_PORT_INIT, -EINVAL, IB_PORT_DOWN, IB_PORT_DOWN},
		{IB_PORT_DOWN, IB_PORT_ARMED, -EINVAL, IB_PORT_DOWN, IB_PORT_DOWN},
		{IB_PORT_DOWN, IB_PORT_ACTIVE, -EINVAL, IB_PORT_DOWN, IB_PORT_DOWN},
	};

	for (unsigned i = 0; i < array_size(rows); i++) {
		struct test_net t;

		test_net_open(&t);
		for (uint32_t s = IB_PORT_ARMED; s <= rows[i].from; s++)
			CHECK(!net_set_state(&t.net, t.h1, (enum ib_port_state)s));
		if (rows[i].from == IB_PORT_DOWN)
			net_pull(&t.net, t.s1 + 1, true);
		CHECK(net_info(&t.net, t.h1, PI_STATE) == (uint32_t)rows[i].from);
		CHECK(net_set_state(&t.net, t.h1, rows[i].set) == rows[i].ret);
		CHECK(net_info(&t.net, t.h1, PI_STATE) == (uint32_t)rows[i].port);
		CHECK(net_info(&t.net, t.s1 + 1, PI_STATE) == (uint32_t)rows[i].peer);
		test_net_close(&t);
	}
}

/* A port that is disabled takes its peer down, and both come back when it is enabled. */
static void test_phys(void)
{
	struct test_net t;

	test_net_open(&t);
	test_net_raise(&t);
	CHECK(net_set_phys(&t.net, t.s1 + 1, SMP_PHYS_SLEEP) == -EINVAL);
	CHECK(net_set_phys(&t.net, t.s1 + 1, SMP_PHYS_LINK_UP) == -EINVAL);
	CHECK(!net_set_phys(&t.net, t.s1 + 1, 0));
	CHECK(net_info(&t.net, t.h1, PI_STATE) == IB_PORT_ACTIVE);
	CHECK(!net_set_phys(&t.net, t.s1 + 1, SMP_PHYS_DISABLED));
	CHECK(net_info(&t.net, t.s1 + 1, PI_PHYS_STATE) == SMP_PHYS_DISABLED);
	CHECK(net_info(&t.net, t.h1, PI_PHYS_STATE) == SMP_PHYS_POLLING);
	CHECK(net_info(&t.net, t.h1, PI_STATE) == IB_PORT_DOWN);
	CHECK(!net_set_state(&t.net, t.h1, IB_PORT_DOWN));
	CHECK(net_info(&t.net, t.h1, PI_STATE) == IB_PORT_DOWN);
	CHECK(!net_set_phys(&t.net, t.s1 + 1, SMP_PHYS_POLLING));
	CHECK(net_info(&t.net, t.s1 + 1, PI_STATE) == IB_PORT_INIT);
	CHECK(net_info(&t.net, t.h1, PI_STATE) == IB_PORT_INIT);
	CHECK(net_total(&t.net, t.h1, NET_LINK_DOWNED) == 1);
	/* A switch's own port has no link. */
	CHECK(!net_set_phys(&t.net, t.s1, SMP_PHYS_DISABLED));
	CHECK(!net_set_state(&t.net, t.s1, IB_PORT_DOWN));
	CHECK(net_info(&t.net, t.s1, PI_STATE) == IB_PORT_ACTIVE);
	test_net_close(&t);
}

/* The slower of what both ends have enabled; it counts when the link trains next. */
static void test_rates(void)
{
	struct test_net t;

	test_net_open(&t);
	net_set_enabled(&t.net, t.h1, 1, 0, 2);
	CHECK(net_info(&t.net, t.h1, PI_WIDTH_ACTIVE) == 2);
	CHECK(!net_set_state(&t.net, t.h1, IB_PORT_DOWN));
	CHECK(net_info(&t.net, t.s1 + 1, PI_WIDTH_ACTIVE) == 1);
	CHECK(net_info(&t.net, t.s1 + 1, PI_EXT_SPEED_ACTIVE) == 2);
	CHECK(atomic_load(&t.subnet.ports[t.h1].width) == 1);
	CHECK(atomic_load(&t.subnet.ports[t.h1].speed) == (4 | 2 << 8));
	/* All bits stand for all that is supported; two ends with nothing in common use the slowest. */
	net_set_enabled(&t.net, t.h1, 255, 15, 31);
	CHECK(net_info(&t.net, t.h1, PI_WIDTH_ENABLED) == 0x13);
	net_set_enabled(&t.net, t.h1, 2, 1, 1);
	net_set_enabled(&t.net, t.s1 + 1, 1, 2, 8);
	CHECK(!net_set_state(&t.net, t.h1, IB_PORT_DOWN));
	CHECK(net_info(&t.net, t.h1, PI_WIDTH_ACTIVE) == 1);
	CHECK(net_info(&t.net, t.h1, PI_SPEED_ACTIVE) == 1);
	CHECK(net_info(&t.net, t.h1, PI_EXT_SPEED_ACTIVE) == 0);
	/* The cable may be good for less; what is named is enabled all the same. */
	net_set_enabled(&t.net, t.s1 + 2, 2, 1, 4);
	net_cable(&t.net, t.s1 + 2, t.s2 + 2);
	net_set_enabled(&t.net, t.s1 + 2, 255, 15, 31);
	CHECK(net_info(&t.net, t.s1 + 2, PI_WIDTH_ENABLED) == 2);
	CHECK(net_info(&t.net, t.s1 + 2, PI_SPEED_ENABLED) == 1);
	CHECK(net_info(&t.net, t.s1 + 2, PI_EXT_SPEED_ENABLED) == 4);
	net_set_enabled(&t.net, t.s1 + 2, 1, 4, 8);
	CHECK(net_info(&t.net, t.s1 + 2, PI_WIDTH_ENABLED) == 1);
	CHECK(net_info(&t.net, t.s1 + 2, PI_SPEED_ENABLED) == 4);
	CHECK(net_info(&t.net, t.s1 + 2, PI_EXT_SPEED_ENABLED) == 8);
	test_net_close(&t);
}

/* A node that is taken out has no links; put back, it has those whose other ends are there. */
static void test_remove(void)
{
	struct test_net t;
	uint32_t s1;

	test_net_open(&t);
	test_net_raise(&t);
	s1 = t.net.ports[t.s1].node;
	net_remove(&t.net, s1, true);
	CHECK(net_info(&t.net, t.h1, PI_STATE) == IB_PORT_DOWN);
	CHECK(net_info(&t.net, t.s2 + 8, PI_STATE) == IB_PORT_DOWN);
	CHECK(net_info(&t.net, t.h2, PI_STATE) == IB_PORT_ACTIVE);
	net_pull(&t.net, t.h1, true);
	net_remove(&t.net, s1, false);
	CHECK(net_info(&t.net, t.h1, PI_STATE) == IB_PORT_DOWN);
	CHECK(net_info(&t.net, t.s2 + 8, PI_STATE) == IB_PORT_INIT);
	net_pull(&t.net, t.h1, false);
	CHECK(net_info(&t.net, t.s1 + 1, PI_STATE) == IB_PORT_INIT);
	test_net_close(&t);
}

/* ---- what subnet managers write ---- */

static void test_lids(void)
{
	struct test_net t;

	test_net_open(&t);
	CHECK(!net_set_lid(&t.net, t.h1, 8, 2) && !net_set_lid(&t.net, t.h2, 4, 0));
	CHECK(subnet_port_by_lid(&t.subnet, 11) == t.h1);
	CHECK(net_set_lid(&t.net, t.h1, 9, 1) == -EINVAL);
	CHECK(net_set_lid(&t.net, t.h1, 0xc000, 0) == -EINVAL);
	/* Who comes last has it; the other's leaving takes nothing from him. */
	CHECK(!net_set_lid(&t.net, t.h2, 10, 0));
	CHECK(subnet_port_by_lid(&t.subnet, 10) == t.h2 &&
	      subnet_port_by_lid(&t.subnet, 4) == SUBNET_NONE);
	CHECK(net_info(&t.net, t.h1, PI_LID) == 8);
	CHECK(!net_set_lid(&t.net, t.h1, 16, 0));
	CHECK(subnet_port_by_lid(&t.subnet, 10) == t.h2 &&
	      subnet_port_by_lid(&t.subnet, 9) == SUBNET_NONE);
	CHECK(!net_set_lid(&t.net, t.h1, 10, 0) && subnet_port_by_lid(&t.subnet, 10) == t.h1);
	/* Saying it again takes it back. */
	CHECK(!net_set_lid(&t.net, t.h2, 10, 0) && subnet_port_by_lid(&t.subnet, 10) == t.h2);
	test_net_close(&t);
}

static void test_gids(void)
{
	struct test_net t;
	uint8_t block[64] = {0};
	union ib_gid gid = {.raw = {0xfe, 0xc0}};

	test_net_open(&t);
	mad_put64(block, 0, 1);
	mad_put64(block, 16, 0x1234);
	CHECK(!net_guids_set(&t.net, t.h1, 0, block));
	CHECK(!net_guids_get(&t.net, t.h1, 0, block));
	CHECK(mad_get64(block, 0) == t.net.ports[t.h1].guid && mad_get64(block, 16) == 0x1234);
	CHECK(!net_set_prefix(&t.net, t.h1, 0xfec0ull << 48));
	mad_put64(gid.raw, 8, 0x1234);
	CHECK(subnet_port_by_gid(&t.subnet, &gid) == t.h1);
	CHECK(net_guids_set(&t.net, t.h1, 1, block) == -ERANGE);
	CHECK(net_guids_get(&t.net, t.s1 + 1, 0, block) == -ERANGE);
	mad_put64(block, 16, 0);
	CHECK(!net_guids_set(&t.net, t.h1, 0, block));
	CHECK(subnet_port_by_gid(&t.subnet, &gid) == SUBNET_NONE);
	test_net_close(&t);
}

/* Whatever is set is what is got, and the epoch rises if and only if something has changed. */
static void test_tables(void)
{
	uint8_t in[64], out[64];
	struct net_switch *sw;
	struct test_net t;
	uint64_t epoch;

	test_net_open(&t);
	sw = net_node_of(&t.net, t.s1)->sw;
	for (unsigned i = 0; i < 64; i++)
		in[i] = (uint8_t)(i * 3 + 1);
	epoch = subnet_epoch(&t.subnet);
	net_lft_block_set(&t.net, sw, 767, in);
	CHECK(subnet_epoch(&t.subnet) == ++epoch);
	net_lft_block_get(sw, 767, out);
	CHECK(!memcmp(in, out, 64) && net_lft(sw, 767 * 64) == NET_DROP);
	net_linear_top_set(&t.net, sw, 0xbfff);
	CHECK(net_lft(sw, 767 * 64 + 5) == 16 && subnet_epoch(&t.subnet) == ++epoch);
	net_lft_block_set(&t.net, sw, 767, in);
	net_lft_block_set(&t.net, sw, 768, in);
	CHECK(subnet_epoch(&t.subnet) == epoch);
	net_mft_block_set(&t.net, sw, 1, 0, in);
	CHECK(subnet_epoch(&t.subnet) == ++epoch);
	net_mft_block_get(sw, 1, 0, out);
	CHECK(!memcmp(in, out, 64));
	/* 0x0104: ports 2 and 8 */
	CHECK(net_mft(sw, 0xc020, 2) && net_mft(sw, 0xc020, 8) && !net_mft(sw, 0xc020, 1));
	CHECK(!net_mft(sw, 0xc020, 18) && !net_mft(sw, 0xc400, 2) && !net_mft(sw, 0x20, 2));
	CHECK(!net_pkeys_set(&t.net, t.s1 + 8, 0, in) && subnet_epoch(&t.subnet) == ++epoch);
	CHECK(!net_pkeys_get(&t.net, t.s1 + 8, 0, out) && !memcmp(in, out, 64));
	CHECK(!net_pkeys_set(&t.net, t.s1 + 8, 0, in) && subnet_epoch(&t.subnet) == epoch);
	CHECK(net_pkeys_set(&t.net, t.s1 + 8, SUBNET_IB_PKEYS / 32, in) == -ERANGE);
	CHECK(!net_sl2vl_set(&t.net, t.s1 + 1, 8, in) &&
	      net_sl2vl_set(&t.net, t.s1 + 1, 9, in) == -ERANGE);
	net_sl2vl_get(&t.net, t.s1 + 1, 8, out);
	CHECK(!memcmp(in, out, 8));
	net_sl2vl_get(&t.net, t.s1 + 1, 7, out);
	CHECK(out[0] == 0x01 && out[7] == 0xe7);
	CHECK(!net_vlarb_set(&t.net, t.h1, 4, in) && net_vlarb_set(&t.net, t.h1, 5, in) == -ERANGE);
	net_vlarb_get(&t.net, t.h1, 4, out);
	CHECK(!memcmp(in, out, 64) && net_vlarb_set(&t.net, t.h1, 0, in) == -ERANGE);
	test_net_close(&t);
}

/* ---- ways ---- */

static void lft_entry(struct test_net *t, uint32_t row, uint32_t lid, uint8_t port)
{
	struct net_switch *sw = net_node_of(&t->net, row)->sw;
	uint8_t block[64];

	net_lft_block_get(sw, 0, block);
	block[lid] = port;
	net_lft_block_set(&t->net, sw, 0, block);
}

/* Packets go where the tables say, over links that are active, and each change raises the epoch. */
static void test_routes(void)
{
	struct test_net t;
	const struct subnet *s = &t.subnet;
	uint64_t epoch;

	test_net_open(&t);
	CHECK(subnet_route(s, t.h1, 4, t.h2) == SUBNET_DOWN);
	test_net_raise(&t);
	CHECK(subnet_route(s, t.h1, 4, t.h2) == SUBNET_ARRIVES);
	CHECK(subnet_route(s, t.h2, 1, t.h1) == SUBNET_ARRIVES);
	CHECK(subnet_route(s, t.h1, 1, t.h1) == SUBNET_ARRIVES);
	CHECK(subnet_route(s, t.h1, 1, t.h2) == SUBNET_ELSEWHERE);
	CHECK(subnet_route(s, t.h1, 4, t.h1) == SUBNET_ELSEWHERE);
	CHECK(subnet_route(s, t.h1, 3, t.h2) == SUBNET_ELSEWHERE);
	CHECK(subnet_route(s, t.h1, 5, t.h2) == SUBNET_NO_ROUTE);
	CHECK(subnet_route(s, t.h1, 0xc000, t.h2) == SUBNET_NO_ROUTE);
	epoch = subnet_epoch(s);
	lft_entry(&t, t.s2, 4, NET_DROP);
	CHECK(subnet_route(s, t.h1, 4, t.h2) == SUBNET_NO_ROUTE && subnet_epoch(s) > epoch);
	lft_entry(&t, t.s2, 4, 8);
	CHECK(subnet_route(s, t.h1, 4, t.h2) == SUBNET_LOOP);
	lft_entry(&t, t.s2, 4, 2);
	CHECK(subnet_route(s, t.h1, 4, t.h2) == SUBNET_LINK_DOWN);
	lft_entry(&t, t.s2, 4, 200);
	CHECK(subnet_route(s, t.h1, 4, t.h2) == SUBNET_NO_ROUTE);
	lft_entry(&t, t.s2, 4, 1);
	CHECK(subnet_route(s, t.h1, 4, t.h2) == SUBNET_ARRIVES);
	net_linear_top_set(&t.net, net_node_of(&t.net, t.s1)->sw, 3);
	CHECK(subnet_route(s, t.h1, 4, t.h2) == SUBNET_NO_ROUTE);
	net_linear_top_set(&t.net, net_node_of(&t.net, t.s1)->sw, 4);
	epoch = subnet_epoch(s);
	net_pull(&t.net, t.s1 + 8, true);
	CHECK(subnet_route(s, t.h1, 4, t.h2) == SUBNET_LINK_DOWN && subnet_epoch(s) > epoch);
	net_pull(&t.net, t.s1 + 8, false);
	CHECK(subnet_route(s, t.h1, 4, t.h2) == SUBNET_LINK_DOWN);
	for (uint32_t state = IB_PORT_ARMED; state <= IB_PORT_ACTIVE; state++) {
		CHECK(!net_set_state(&t.net, t.s1 + 8, (enum ib_port_state)state));
		CHECK(!net_set_state(&t.net, t.s2 + 8, (enum ib_port_state)state));
	}
	CHECK(subnet_route(s, t.h1, 4, t.h2) == SUBNET_ARRIVES);
	/* A LID that is another port's now. */
	CHECK(!net_set_lid(&t.net, t.h2, 6, 1));
	CHECK(subnet_route(s, t.h1, 4, t.h2) == SUBNET_ELSEWHERE);
	lft_entry(&t, t.s1, 7, 8);
	lft_entry(&t, t.s2, 7, 1);
	net_linear_top_set(&t.net, net_node_of(&t.net, t.s1)->sw, 7);
	net_linear_top_set(&t.net, net_node_of(&t.net, t.s2)->sw, 7);
	CHECK(subnet_route(s, t.h1, 7, t.h2) == SUBNET_ARRIVES);
	test_net_close(&t);
}

/* Partitions that switches' ports enforce, in either direction; and MTUs of links. */
static void test_enforcement(void)
{
	struct subnet_packet p = {.dlid = 4, .pkey = 0x8001, .mtu = IB_MTU_2048};
	uint8_t keys[64] = {0xff, 0xff, 0x00, 0x01};
	struct test_net t;
	const struct subnet *s = &t.subnet;
	uint64_t epoch;

	test_net_open(&t);
	test_net_raise(&t);
	epoch = subnet_epoch(s);
	net_set_partition(&t.net, t.s1 + 1, SUBNET_ENFORCES_OUT);
	CHECK(subnet_epoch(s) > epoch);
	CHECK(subnet_route_packet(s, t.h1, &p, t.h2) == SUBNET_ARRIVES);
	net_set_partition(&t.net, t.s1 + 1, SUBNET_ENFORCES_IN);
	CHECK(net_info(&t.net, t.s1 + 1, PI_PARTITION_FLAGS) == SUBNET_ENFORCES_IN);
	CHECK(subnet_route_packet(s, t.h1, &p, t.h2) == SUBNET_PARTITION);
	/* Where the table has a limited member, full and limited ones pass; who is of no partition does not. */
	CHECK(!net_pkeys_set(&t.net, t.s1 + 1, 0, keys));
	CHECK(subnet_route_packet(s, t.h1, &p, t.h2) == SUBNET_ARRIVES);
	p.pkey = 0x0001;
	CHECK(subnet_route_packet(s, t.h1, &p, t.h2) == SUBNET_ARRIVES);
	p.pkey = 0x8000;
	CHECK(subnet_route_packet(s, t.h1, &p, t.h2) == SUBNET_PARTITION);
	p.pkey = SUBNET_PKEY_DEFAULT;
	CHECK(subnet_route_packet(s, t.h1, &p, t.h2) == SUBNET_ARRIVES);
	p.pkey = 0x8001;
	net_set_partition(&t.net, t.s2 + 1, SUBNET_ENFORCES_OUT);
	CHECK(subnet_route_packet(s, t.h1, &p, t.h2) == SUBNET_PARTITION);
	net_set_partition(&t.net, t.s2 + 1, 0);
	CHECK(subnet_route_packet(s, t.h1, &p, t.h2) == SUBNET_ARRIVES);
	net_set_mtu(&t.net, t.s1 + 8, IB_MTU_1024);
	CHECK(subnet_route_packet(s, t.h1, &p, t.h2) == SUBNET_MTU);
	p.mtu = IB_MTU_1024;
	CHECK(subnet_route_packet(s, t.h1, &p, t.h2) == SUBNET_ARRIVES);
	test_net_close(&t);
}

/* A group's packets come to the ports that the tables lead to, if tables decide. */
static void test_groups(void)
{
	const struct subnet_packet p = {.dlid = 0xc001};
	uint8_t masks[64] = {0};
	struct test_net t;
	const struct subnet *s = &t.subnet;

	test_net_open(&t);
	test_net_raise(&t);
	CHECK(subnet_group_reaches(s, t.h1, &p, t.h2));
	atomic_store(&s->head->groups_by_table, 1);
	CHECK(!subnet_group_reaches(s, t.h1, &p, t.h2) && subnet_group_reaches(s, t.h1, &p, t.h1));
	mad_put16(masks, 2, 1u << 8);
	net_mft_block_set(&t.net, net_node_of(&t.net, t.s1)->sw, 0, 0, masks);
	CHECK(!subnet_group_reaches(s, t.h1, &p, t.h2));
	mad_put16(masks, 2, 1u << 8 | 1u << 1);
	net_mft_block_set(&t.net, net_node_of(&t.net, t.s2)->sw, 0, 0, masks);
	CHECK(subnet_group_reaches(s, t.h1, &p, t.h2));
	CHECK(!subnet_group_reaches(s, t.h2, &p, t.h1));
	net_multicast_top_set(&t.net, net_node_of(&t.net, t.s2)->sw, 0xc000);
	CHECK(!subnet_group_reaches(s, t.h1, &p, t.h2));
	net_multicast_top_set(&t.net, net_node_of(&t.net, t.s2)->sw, 0xc001);
	net_carry(&t.net, t.h1, &(struct net_carried){.dlid = 0xc001, .words = 70, .packets = 2});
	CHECK(net_total(&t.net, t.s1 + 8, NET_XMIT_DATA) == 70);
	CHECK(net_total(&t.net, t.s2 + 8, NET_MULTICAST_RCV_PACKETS) == 2);
	net_set_mtu(&t.net, t.s1 + 8, IB_MTU_256);
	CHECK(!subnet_group_reaches(s, t.h1, &(struct subnet_packet){0xc001, 0, IB_MTU_512}, t.h2));
	test_net_close(&t);
}

/* ---- counters ---- */

/* So many words of data, and another for each row. */
static uint64_t counts_of_programs(void *user, uint32_t row, enum port_counter c)
{
	(void)user;
	if (c == PORT_XMIT_DATA)
		return 1000 + row;
	return c == PORT_RCV_DATA ? 2000 + row : 0;
}

/* A host's port counts its programs' data; the switch's port at the other end of its cable, the same. */
static void test_counters(void)
{
	struct test_net t;

	test_net_open(&t);
	t.net.host_count = counts_of_programs;
	net_count(&t.net, t.h2, NET_XMIT_DATA, 72);
	net_count(&t.net, t.s2 + 1, NET_RCV_DATA, 72);
	CHECK(net_total(&t.net, t.h2, NET_XMIT_DATA) == 1072 + t.h2);
	CHECK(net_total(&t.net, t.s2 + 1, NET_RCV_DATA) == 1072 + t.h2);
	CHECK(net_total(&t.net, t.s2 + 1, NET_XMIT_DATA) == 2000 + t.h2);
	CHECK(net_total(&t.net, t.s1 + 8, NET_XMIT_DATA) == 0);
	CHECK(net_total(&t.net, t.s1, NET_XMIT_DATA) == 0);
	CHECK(net_own(&t.net, t.h2, PORT_XMIT_DATA) == 72);
	test_net_close(&t);
}

/* ---- listeners ---- */

struct heard {
	struct net_listener listener;
	uint32_t count[NET_EVENTS];
	uint32_t what;
};

static void hear(struct net_listener *l, enum net_event event, uint32_t row, uint32_t what)
{
	struct heard *h = (struct heard *)l;

	(void)row;
	h->count[event]++;
	h->what = what;
}

/* Which Sets of state Down a switch tells its SM of. */
static void test_retrained(void)
{
	struct heard h = {.listener.event = hear};
	struct test_net t;
	bool *changed;

	test_net_open(&t);
	net_listen(&t.net, &h.listener);
	changed = &net_node_of(&t.net, t.s1)->sw->port_change;
	*changed = false;
	CHECK(!net_set_state(&t.net, t.s1 + 1, IB_PORT_DOWN));
	CHECK(!net_set_state(&t.net, t.h1, IB_PORT_DOWN));
	CHECK(net_info(&t.net, t.h1, PI_STATE) == IB_PORT_INIT);
	CHECK(h.count[NET_STATE] == 8 && !h.count[NET_SWITCH_CHANGE] && !*changed);
	CHECK(!net_total(&t.net, t.h1, NET_LINK_DOWNED));
	/* The link is in use, if only at the other end. */
	CHECK(!net_set_state(&t.net, t.s1 + 1, IB_PORT_ARMED));
	CHECK(!net_set_state(&t.net, t.h1, IB_PORT_DOWN));
	CHECK(h.count[NET_SWITCH_CHANGE] == 2 && *changed);
	CHECK(net_total(&t.net, t.h1, NET_LINK_DOWNED) == 1);
	*changed = false;
	CHECK(!net_set_phys(&t.net, t.h1, SMP_PHYS_DISABLED) && *changed);
	test_net_close(&t);
}

static void test_events(void)
{
	struct heard h = {.listener.event = hear};
	struct test_net t;
	char longest[65];

	test_net_open(&t);
	test_net_raise(&t);
	net_listen(&t.net, &h.listener);
	net_pull(&t.net, t.h1, true);
	CHECK(h.count[NET_STATE] == 2 && h.count[NET_SWITCH_CHANGE] == 1 && h.what == 1);
	CHECK(net_node_of(&t.net, t.s1)->sw->port_change &&
	      !net_node_of(&t.net, t.s2)->sw->port_change);
	net_pull(&t.net, t.h1, true);
	CHECK(h.count[NET_STATE] == 2);
	net_hold_issm(&t.net, t.h1, 1);
	net_hold_issm(&t.net, t.h1, 1);
	net_hold_issm(&t.net, t.h1, -1);
	CHECK(h.count[NET_CAPABILITY] == 1 && net_info(&t.net, t.h1, PI_CAP_MASK) & CAP_IS_SM);
	net_hold_issm(&t.net, t.h1, -1);
	CHECK(h.count[NET_CAPABILITY] == 2 && !(net_info(&t.net, t.h1, PI_CAP_MASK) & CAP_IS_SM));
	net_set_sm(&t.net, t.h1, 7, 1);
	net_set_sm(&t.net, t.h1, 7, 1);
	CHECK(h.count[NET_SM] == 1 && atomic_load(&t.subnet.ports[t.h1].sm_sl) == 1);
	memset(longest, 'x', 64);
	longest[64] = 0;
	CHECK(!net_set_description(&t.net, t.s1, longest) &&
	      !net_set_description(&t.net, t.s1, longest));
	CHECK(h.count[NET_DESCRIPTION] == 1 &&
	      !memcmp(t.subnet.nodes[t.net.ports[t.s1].node].description, longest, 64));
	test_net_close(&t);
}

/* ---- a random walk ---- */

static void walk_check(const struct test_net *t)
{
	for (uint32_t row = 0; row < t->subnet.nports; row++) {
		const struct subnet_port *p = &t->subnet.ports[row];
		uint32_t state = atomic_load(&p->state), cable = t->net.ports[row].cable;
		uint32_t lid = atomic_load(&p->lid),
			 owner = subnet_port_by_lid(&t->subnet, (uint16_t)lid);

		CHECK(state == net_info(&t->net, row, PI_STATE));
		CHECK(lid == net_info(&t->net, row, PI_LID));
		/* Of ports that say the same LID, the table knows one at most. */
		CHECK(!lid || owner == SUBNET_NONE ||
		      atomic_load(&t->subnet.ports[owner].lid) == lid);
		if (cable == SUBNET_NONE)
			continue;
		CHECK((state > IB_PORT_DOWN) ==
		      (net_info(&t->net, cable, PI_STATE) > IB_PORT_DOWN));
		CHECK(atomic_load(&p->peer_plus_1) == (state > IB_PORT_DOWN ? cable + 1 : 0));
		CHECK((net_info(&t->net, row, PI_PHYS_STATE) == SMP_PHYS_LINK_UP) ==
		      (state > IB_PORT_DOWN));
	}
	for (uint32_t lid = 1; lid < 32; lid++) {
		uint32_t row = subnet_port_by_lid(&t->subnet, (uint16_t)lid);

		CHECK(row == SUBNET_NONE || atomic_load(&t->subnet.ports[row].lid) == lid);
	}
}

static void walk_step(struct test_net *t, uint32_t r)
{
	uint32_t row = (r >> 8) % t->subnet.nports;

	switch (r % 6) {
	case 0:
		net_pull(&t->net, row, r >> 20 & 1);
		break;
	case 1:
		(void)!net_set_state(&t->net, row, (enum ib_port_state)((r >> 20) % 6));
		break;
	case 2:
		(void)!net_set_phys(&t->net, row, (enum smp_phys_state)((r >> 20) % 6));
		break;
	case 3:
		net_remove(&t->net, t->net.ports[row].node, r >> 20 & 1);
		break;
	case 4:
		(void)!net_set_lid(&t->net, net_end_port(&t->net, row), (r >> 20) % 32, 0);
		break;
	case 5:
		net_set_enabled(&t->net, row, r >> 20 & 3, r >> 22 & 7, r >> 25 & 15);
		break;
	}
}

static void test_walk(void)
{
	uint32_t seed = 1;
	struct test_net t;

	test_net_open(&t);
	for (int i = 0; i < STEPS; i++) {
		seed = seed * 1664525u + 1013904223u;
		walk_step(&t, seed >> 4 | seed << 28);
		walk_check(&t);
	}
	test_net_close(&t);
}

int main(void)
{
	test_start();
	test_states();
	test_phys();
	test_rates();
	test_remove();
	test_lids();
	test_gids();
	test_tables();
	test_routes();
	test_enforcement();
	test_groups();
	test_counters();
	test_events();
	test_retrained();
	test_walk();
	return 0;
}
