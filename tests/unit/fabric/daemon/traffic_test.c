// SPDX-License-Identifier: BSD-2-Clause
/* What processes have sent becomes counts of every port on the way; on the net of test_net.h. */
#include <string.h>
#include <sys/mman.h>

#include "check.h"
#include "fabric/daemon/fabric.h"
#include "test_net.h"

#define SLOT	3u
#define LID_H1	1u
#define LID_H2	4u
#define UPLINK	8u
#define NOWHERE 5u /* a switch's port without a cable */

static struct fabric f;
static struct test_net t;
static struct registry registry;

static void settle(void *user)
{
	traffic_settle(user);
}

static uint64_t count_of_host(void *user, uint32_t row, enum port_counter counter)
{
	return port_counter_stored(user, row, counter);
}

static struct traffic *traffic_of(uint32_t slot)
{
	return (struct traffic *)((char *)f.slots + registry_traffic_offset(slot));
}

static void traffic_open(void)
{
	void *p = mmap(NULL, registry_traffic_offset(REGISTRY_SLOTS), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(p != MAP_FAILED);
	test_net_open(&t);
	test_net_raise(&t);
	f.slots = p;
	f.registry = &registry;
	f.subnet = t.subnet;
	f.base = calloc(t.subnet.nports, sizeof(*f.base));
	CHECK(f.base);
	f.net = t.net;
	f.net.settle = settle;
	f.net.host_count = count_of_host;
	f.net.user = &f;
	atomic_store(&registry.slots_used[0], UINT64_C(1) << SLOT);
}

static void traffic_close(void)
{
	munmap(f.slots, registry_traffic_offset(REGISTRY_SLOTS));
	free(f.base);
	f.net.settle = NULL;
	t.net = f.net;
	test_net_close(&t);
}

/* As a process of that slot counts it. */
static void send_words_sl(uint32_t cell, uint32_t shard, uint64_t key, uint64_t words)
{
	struct traffic *w = traffic_of(SLOT);

	atomic_store(&w->key[cell], key);
	if (atomic_load(&w->used) <= cell)
		atomic_store(&w->used, cell + 1);
	atomic_fetch_add(&w->count[shard][cell].words, words);
	atomic_fetch_add(&w->count[shard][cell].packets, 1);
}

static void send_words(uint32_t cell, uint32_t shard, uint32_t row, uint16_t dlid, uint64_t words)
{
	send_words_sl(cell, shard, traffic_key(row, dlid, 0, 0), words);
}

static bool port_has(uint32_t row, enum net_counter words, uint64_t nwords, uint64_t npackets)
{
	return net_total(&f.net, row, words) == nwords &&
	       net_total(&f.net, row, words + NET_XMIT_PACKETS - NET_XMIT_DATA) == npackets;
}

/* Both ends of the cable between the switches. */
static bool uplink_has(uint64_t nwords, uint64_t npackets)
{
	return port_has(t.s1 + UPLINK, NET_XMIT_DATA, nwords, npackets) &&
	       port_has(t.s2 + UPLINK, NET_RCV_DATA, nwords, npackets);
}

static void lft_entry(uint32_t row, uint32_t lid, uint8_t port)
{
	struct net_switch *sw = net_node_of(&f.net, row)->sw;
	uint8_t block[64];

	net_lft_block_get(sw, lid / 64, block);
	block[lid % 64] = port;
	net_lft_block_set(&f.net, sw, lid / 64, block);
}

/* All that is on the way, at both ends of each cable; once, however often somebody asks. */
static void test_way(void)
{
	send_words(0, 1, t.h1, LID_H2, 100);
	send_words(0, 0, t.h1, LID_H2, 7);
	/* What H2 has answered, counted by the process of H1. */
	send_words(1, 2, t.h2, LID_H1, 30);
	for (int i = 0; i < 2; i++) {
		CHECK(port_has(t.h1, NET_XMIT_DATA, 107, 2));
		CHECK(port_has(t.s1 + 1, NET_RCV_DATA, 107, 2));
		CHECK(uplink_has(107, 2));
		CHECK(port_has(t.h2, NET_XMIT_DATA, 30, 1));
		CHECK(port_has(t.s2 + UPLINK, NET_XMIT_DATA, 30, 1));
		CHECK(port_has(t.s1 + UPLINK, NET_RCV_DATA, 30, 1));
		CHECK(port_counter_stored(&f, t.h1, PORT_XMIT_DATA) == 107);
		CHECK(!port_counter_stored(&f, t.h1, PORT_RCV_DATA));
	}
}

/* Of a service level, at both ends of each cable; the rest is level 0's. */
static void test_service_levels(void)
{
	const uint32_t out[] = {t.h1, t.s1 + UPLINK, t.s2 + 1};
	const uint32_t in[] = {t.s1 + 1, t.s2 + UPLINK, t.h2};

	send_words_sl(0, 1, traffic_key(t.h1, LID_H2, 5, 0), 100);
	send_words_sl(1, 1, traffic_key(t.h1, LID_H2, 15, 0), 50);
	send_words(2, 1, t.h1, LID_H2, 7);
	CHECK(uplink_has(157, 3));
	for (uint32_t i = 0; i < array_size(out); i++) {
		CHECK(net_sl_total(&f.net, out[i], NET_OUT, 5) == 100);
		CHECK(net_sl_total(&f.net, in[i], NET_IN, 5) == 100);
		CHECK(net_sl_total(&f.net, out[i], NET_OUT, 15) == 50);
		CHECK(net_sl_total(&f.net, in[i], NET_IN, 15) == 50);
		CHECK(!net_sl_total(&f.net, out[i], NET_OUT, 1));
		CHECK(!net_sl_total(&f.net, in[i], NET_OUT, 5));
	}
	CHECK(net_sl_total(&f.net, t.h1, NET_OUT, 0) == 7);
	CHECK(net_sl_total(&f.net, t.s2 + UPLINK, NET_IN, 0) == 7);
}

/* Packets that a switch's port does not let pass have come as far as that, whoever has asked since. */
static void test_refused(void)
{
	const uint64_t key = traffic_key(t.h1, LID_H2, 0, 0x8001);
	uint8_t pkeys[64] = {0x80, 0x01};

	net_set_partition(&f.net, t.s2 + UPLINK, SUBNET_ENFORCES_IN);
	send_words_sl(0, 1, key, 100);
	CHECK(net_total(&f.net, t.s2 + UPLINK, NET_RCV_CONSTRAINT_ERRORS) == 1);
	CHECK(uplink_has(100, 1) && port_has(t.h1, NET_XMIT_DATA, 100, 1));
	/* All is counted as the table was, or the port, before it changes. */
	send_words_sl(0, 1, key, 100);
	CHECK(!net_pkeys_set(&f.net, t.s2 + UPLINK, 0, pkeys));
	send_words_sl(0, 1, key, 100);
	net_set_partition(&f.net, t.s1 + UPLINK, SUBNET_ENFORCES_OUT);
	CHECK(net_total(&f.net, t.s2 + UPLINK, NET_RCV_CONSTRAINT_ERRORS) == 2);
	send_words_sl(0, 1, key, 100);
	net_set_partition(&f.net, t.s1 + UPLINK, 0);
	CHECK(net_total(&f.net, t.s1 + UPLINK, NET_XMIT_CONSTRAINT_ERRORS) == 1);
	CHECK(uplink_has(300, 3) && port_has(t.h1, NET_XMIT_DATA, 400, 4));
	CHECK(!net_total(&f.net, t.s2 + 1, NET_XMIT_CONSTRAINT_ERRORS));
	net_set_partition(&f.net, t.s2 + UPLINK, 0);
}

/* What was sent before a change has gone the old way, though nobody has asked in between. */
static void test_changes(void)
{
	send_words(0, 1, t.h1, LID_H2, 1000);
	lft_entry(t.s1, LID_H2, NOWHERE);
	send_words(0, 1, t.h1, LID_H2, 5);
	CHECK(uplink_has(1107, 3));
	CHECK(port_has(t.h1, NET_XMIT_DATA, 1112, 4));
	lft_entry(t.s1, LID_H2, UPLINK);
	CHECK(uplink_has(1107, 3));
	send_words(0, 1, t.h1, LID_H2, 10000);
	net_linear_top_set(&f.net, net_node_of(&f.net, t.s1)->sw, LID_H2 - 1);
	net_linear_top_set(&f.net, net_node_of(&f.net, t.s1)->sw, LID_H2);
	send_words(0, 1, t.h1, LID_H2, 20000);
	CHECK(!net_set_lid(&f.net, t.s1, LID_H2, 0));
	CHECK(!net_set_lid(&f.net, t.s1, 2, 0));
	CHECK(!net_set_lid(&f.net, t.h2, LID_H2, 0));
	send_words(0, 1, t.h1, LID_H2, 40000);
	net_pull(&f.net, t.s2 + UPLINK, true);
	CHECK(uplink_has(71107, 6));
	CHECK(port_has(t.h1, NET_XMIT_DATA, 71112, 7));
}

/* A process that was killed takes no count with it, and leaves nothing to the next of its slot. */
static void test_end(void)
{
	struct traffic *w = traffic_of(SLOT);

	send_words(0, 3, t.h1, LID_H2, 3);
	traffic_end(&f, SLOT);
	CHECK(port_has(t.h1, NET_XMIT_DATA, 71115, 8));
	CHECK(!w->used && !w->key[0] && !w->count[1][0].words && !w->settled[0].words);
	send_words(0, 1, t.h1, LID_H2, 1);
	CHECK(port_has(t.h1, NET_XMIT_DATA, 71116, 9));
	traffic_end(&f, SLOT);
}

/* What a process writes there must not make the daemon stumble. */
static void test_nonsense(void)
{
	struct traffic *w = traffic_of(SLOT);

	send_words(0, 1, UINT32_MAX, LID_H2, 1);
	send_words(1, 1, t.s1 + 1, LID_H2, 1);
	send_words(2, 1, t.h1, 0xffff, 1);
	atomic_store(&w->used, UINT32_MAX);
	traffic_settle(&f);
	CHECK(port_has(t.h1, NET_XMIT_DATA, 71117, 10));
	traffic_end(&f, SLOT);
	CHECK(!w->used && !w->key[1]);
}

int main(void)
{
	traffic_open();
	test_service_levels();
	traffic_close();
	traffic_open();
	test_refused();
	traffic_close();
	traffic_open();
	test_way();
	test_changes();
	test_end();
	test_nonsense();
	traffic_close();
	return 0;
}
