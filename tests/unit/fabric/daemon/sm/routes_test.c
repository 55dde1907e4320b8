// SPDX-License-Identifier: BSD-2-Clause
/* LIDs, tables and states that the built-in SM gives, on subnets of many seeds. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "check.h"
#include "fabric/daemon/sm/graph.h"
#include "fabric/daemon/sm/sm.h"
#include "made_net.h"

#define SEEDS 100u

struct made_sm {
	struct made_net m;
	struct mad_fabric fabric;
	struct sm sm;
};

static void made_sm_open(struct made_sm *s, uint64_t seed)
{
	made_net_open(&s->m, seed);
	s->fabric = (struct mad_fabric){.net = &s->m.net};
	s->sm = (struct sm){.fabric = &s->fabric, .next_lid = 1, .home = s->m.hosts[0]};
}

static void made_sm_sweep(struct made_sm *s)
{
	CHECK(!sm_assign_lids(&s->sm));
	CHECK(!sm_make_routes(&s->sm));
	sm_raise_ports(&s->sm);
}

static uint32_t lid_of(const struct made_sm *s, uint32_t row)
{
	return net_info(&s->m.net, row, PI_LID);
}

/* End ports in the order of rows; false past the last. */
static bool end_port_next(const struct made_sm *s, uint32_t *row)
{
	for (; *row < s->m.net.nports; ++*row)
		if (sm_is_end_port(&s->m.net, *row) && lid_of(s, *row))
			return true;
	return false;
}

static uint32_t distance_of(const struct graph *g, uint32_t from)
{
	return g->distance[graph_place_of(g, from).at];
}

/* Every end port reaches every other, by no longer way than there is. */
static void check_all_pairs(const struct made_sm *s)
{
	const struct net *n = &s->m.net;
	struct graph g;

	CHECK(!graph_open(&g, n));
	for (uint32_t to = 0; end_port_next(s, &to); to++) {
		graph_search(&g, graph_place_of(&g, to).at);
		for (uint32_t from = 0; end_port_next(s, &from); from++) {
			int hops = made_net_walk(n, from, lid_of(s, to));
			int least = (int)distance_of(&g, from) + !net_is_switch(n, from) +
				    !net_is_switch(n, to);

			CHECK(from == to ? !hops : hops == least);
		}
	}
	graph_close(&g);
}

static void check_states(const struct made_sm *s)
{
	const struct net *n = &s->m.net;

	for (uint32_t row = 0; row < n->nports; row++) {
		uint32_t state = net_info(n, row, PI_STATE);
		uint32_t peer = net_peer(n, row, IB_PORT_INIT);

		if (net_is_switch(n, row) && !n->ports[row].number)
			continue;
		CHECK(state == (peer == SUBNET_NONE ? IB_PORT_DOWN : IB_PORT_ACTIVE));
		if (peer == SUBNET_NONE)
			continue;
		CHECK(net_info(n, row, PI_NEIGHBOR_MTU) == net_info(n, peer, PI_NEIGHBOR_MTU));
		CHECK(net_info(n, row, PI_OPER_VLS) == net_info(n, peer, PI_OPER_VLS));
	}
	for (uint32_t row = 0; end_port_next(s, &row); row++)
		CHECK(net_info(n, row, PI_SM_LID) == lid_of(s, s->sm.home));
}

static void test_all_reach_all(void)
{
	struct made_sm s;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		made_sm_open(&s, seed);
		made_sm_sweep(&s);
		check_states(&s);
		check_all_pairs(&s);
		made_net_close(&s.m);
	}
}

/* Hosts have the LIDs from 1, in their order. */
static void test_hosts_first(void)
{
	struct made_sm s;

	made_sm_open(&s, 7);
	made_sm_sweep(&s);
	for (uint32_t i = 0; i < s.m.nhosts; i++)
		CHECK(lid_of(&s, s.m.hosts[i]) == i + 1);
	CHECK(lid_of(&s, s.m.switches[0]) == s.m.nhosts + 1);
	made_net_close(&s.m);
}

/* A sweep of what has been swept changes nothing, not even the epoch. */
static void test_again_is_nothing(void)
{
	struct made_sm s;
	uint64_t epoch;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		made_sm_open(&s, seed);
		made_sm_sweep(&s);
		epoch = subnet_epoch(&s.m.subnet);
		s.sm.afresh = seed % 2;
		s.sm.next_lid = 1 + made_net_random(&s.m, 1000);
		made_sm_sweep(&s);
		CHECK(subnet_epoch(&s.m.subnet) == epoch);
		made_net_close(&s.m);
	}
}

/* Of two that have the same LID, one keeps it; LIDs that nobody may have are replaced. */
static void test_bad_lids(void)
{
	struct made_sm s;

	made_sm_open(&s, 3);
	CHECK(!net_set_lid(&s.m.net, s.m.hosts[4], 77, 0));
	CHECK(!net_set_lid(&s.m.net, s.m.hosts[5], 77, 0));
	made_sm_sweep(&s);
	CHECK(lid_of(&s, s.m.hosts[4]) == 77);
	CHECK(lid_of(&s, s.m.hosts[5]) != 77 && lid_of(&s, s.m.hosts[5]) != 0);
	check_all_pairs(&s);
	made_net_close(&s.m);
}

/* A link between switches fails: all that is still joined is reached, LIDs stay; then it is back. */
static void check_cut(struct made_sm *s, uint32_t row)
{
	uint32_t before[MADE_HOSTS] = {0};

	for (uint32_t i = 0; i < s->m.nhosts; i++)
		before[i] = lid_of(s, s->m.hosts[i]);
	net_pull(&s->m.net, row, true);
	made_sm_sweep(s);
	check_states(s);
	for (uint32_t i = 0; i < s->m.nhosts; i++) {
		struct graph g;
		uint32_t to = s->m.hosts[i];

		CHECK(lid_of(s, to) == before[i]);
		CHECK(!graph_open(&g, &s->m.net));
		graph_search(&g, graph_place_of(&g, to).at);
		for (uint32_t j = 0; j < s->m.nhosts; j++) {
			bool joined = distance_of(&g, s->m.hosts[j]) != GRAPH_FAR;
			int hops = made_net_walk(&s->m.net, s->m.hosts[j], lid_of(s, to));

			CHECK(joined == (hops >= 0));
		}
		graph_close(&g);
	}
	net_pull(&s->m.net, row, false);
	s->sm.afresh = true;
	made_sm_sweep(s);
	check_states(s);
	check_all_pairs(s);
}

static void test_links_fail(void)
{
	struct made_sm s;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		made_sm_open(&s, seed);
		made_sm_sweep(&s);
		for (uint32_t port = 1; port <= MADE_PORTS; port++) {
			uint32_t row = s.m.switches[seed % MADE_SWITCHES] + port;
			uint32_t peer = net_peer(&s.m.net, row, IB_PORT_INIT);

			if (peer != SUBNET_NONE && net_is_switch(&s.m.net, peer))
				check_cut(&s, row);
		}
		made_net_close(&s.m);
	}
}

/* Tables of another SM that lead everywhere stay, though ours would be others. */
static void test_tables_are_kept(void)
{
	struct made_sm s;
	uint8_t block[64];
	uint32_t lid, kept = 0;

	made_sm_open(&s, 11);
	made_sm_sweep(&s);
	lid = lid_of(&s, s.m.hosts[3]);
	for (uint32_t i = 0; i < MADE_SWITCHES; i++) {
		struct net_switch *sw = net_node_of(&s.m.net, s.m.switches[i])->sw;
		uint8_t ours;

		net_lft_block_get(sw, lid / 64, block);
		ours = block[lid % 64];
		for (uint8_t port = 1; port <= MADE_PORTS; port++) {
			uint32_t peer = net_peer(&s.m.net, s.m.switches[i] + port, IB_PORT_INIT);

			/* Another way, perhaps a longer one, but one that arrives. */
			if (port == ours || peer == SUBNET_NONE || !net_is_switch(&s.m.net, peer))
				continue;
			block[lid % 64] = port;
			net_lft_block_set(&s.m.net, sw, lid / 64, block);
			if (made_net_walk(&s.m.net, s.m.switches[i], lid) > 0) {
				made_sm_sweep(&s);
				CHECK(net_lft(sw, lid) == port);
				kept++;
			}
			block[lid % 64] = ours;
			net_lft_block_set(&s.m.net, sw, lid / 64, block);
		}
	}
	CHECK(kept > 0);
	/* A loop is no way: it is mended. */
	for (uint32_t i = 0; i < MADE_SWITCHES; i++) {
		struct net_switch *sw = net_node_of(&s.m.net, s.m.switches[i])->sw;

		net_lft_block_get(sw, lid / 64, block);
		block[lid % 64] = 1;
		net_lft_block_set(&s.m.net, sw, lid / 64, block);
	}
	made_sm_sweep(&s);
	check_all_pairs(&s);
	made_net_close(&s.m);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{"all ports reach all others", test_all_reach_all},
	{"hosts have the first LIDs", test_hosts_first},
	{"a second sweep changes nothing", test_again_is_nothing},
	{"LIDs that two have are mended", test_bad_lids},
	{"links fail and come back", test_links_fail},
	{"tables of others are kept", test_tables_are_kept},
};

int main(void)
{
	for (uint32_t i = 0; i < array_size(tests); i++) {
		tests[i].run();
		printf("%s\n", tests[i].name);
	}
	return 0;
}
