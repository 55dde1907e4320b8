// SPDX-License-Identifier: BSD-2-Clause
/* Faults of links, and packets for groups: both make packets go on by themselves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fabric/daemon/mad/impair.h"
#include "test_mad.h"

#define GROUP 0xc001u

static struct test_mad m;

struct seen {
	struct port_agent agent;
	uint32_t count[32]; /* by row */
	uint32_t all;
	uint64_t last_ns;
	bool answers;
};

static enum mad_verdict seen_handle(struct port_agent *a, uint32_t row, struct mad_packet *p)
{
	struct seen *s = container_of(a, struct seen, agent);

	s->count[row]++;
	s->all++;
	s->last_ns = m.loop.still_ns;
	if (!s->answers)
		return MAD_SILENT;
	mad_answer(p->mad, MAD_GET_RESP, 0);
	return MAD_ANSWERED;
}

static struct seen perf;

static void open_net(uint64_t seed)
{
	test_mad_open(&m);
	test_net_raise(&m.t);
	perf = (struct seen){.agent.handle = seen_handle};
	mad_port_agent(&m.mad, MAD_CLASS_PERF, &perf.agent);
	if (seed)
		m.mad.impair = impair_open(seed);
	CHECK(!seed == !m.mad.impair);
}

static void send_to(uint16_t lid)
{
	struct mad_packet *p = mad_packet_get(&m.mad);

	CHECK(p);
	p->row = m.t.h1;
	p->slid = 1;
	p->dlid = lid;
	p->pkey = 0xffff;
	p->sqpn = p->dqpn = 1;
	p->qkey = MAD_QKEY_WELL_KNOWN;
	p->grh = lid >= MAD_LID_MULTICAST;
	p->mad[MAD_AT_BASE_VERSION] = 1;
	p->mad[MAD_AT_CLASS] = MAD_CLASS_PERF;
	p->mad[MAD_AT_METHOD] = MAD_GET;
	mad_emit(&m.mad, p);
	test_mad_run(&m, 0);
}

static uint32_t count_of(uint32_t seed, const struct impair_link *how, uint32_t row,
			 uint32_t packets)
{
	uint32_t all;

	open_net(seed);
	CHECK(!impair_set(m.mad.impair, row, how));
	for (uint32_t i = 0; i < packets; i++)
		send_to(4);
	all = perf.all;
	test_mad_close(&m);
	return all;
}

static void test_loss(void)
{
	const struct impair_link half = {.loss_ppm = 500000}, none = {0};
	const struct impair_link twice = {.duplicate_ppm = 1000000}, gone = {.loss_ppm = 1000000};
	uint32_t first;

	open_net(1);
	CHECK(impair_set(m.mad.impair, SUBNET_NONE, &(struct impair_link){.loss_ppm = 1000001}) ==
	      -EINVAL);
	test_mad_close(&m);
	CHECK(count_of(1, &none, SUBNET_NONE, 1000) == 1000);
	CHECK(count_of(1, &gone, SUBNET_NONE, 1000) == 0);
	/* On one of the three links of the way; on all. */
	first = count_of(7, &half, m.t.s1 + 8, 1000);
	CHECK(first > 400 && first < 600);
	CHECK(count_of(7, &half, m.t.s1 + 8, 1000) == first);
	CHECK(count_of(8, &half, m.t.s1 + 8, 1000) != first);
	CHECK(count_of(7, &half, m.t.s1 + 7, 1000) == 1000);
	first = count_of(7, &half, SUBNET_NONE, 1000);
	CHECK(first > 70 && first < 180);
	CHECK(count_of(1, &twice, m.t.h1, 10) == 20);
	CHECK(count_of(1, &twice, SUBNET_NONE, 10) == 80);
}

static void test_delay(void)
{
	const struct impair_link late = {.delay_us = 2000}, jitter = {.jitter_us = 50000};
	uint64_t began;

	open_net(1);
	CHECK(!impair_set(m.mad.impair, m.t.h1, &late));
	CHECK(!impair_set(m.mad.impair, m.t.s2 + 1, &late));
	began = m.loop.still_ns;
	send_to(4);
	CHECK(!perf.all);
	test_mad_run(&m, 3);
	CHECK(!perf.all);
	test_mad_run(&m, 3);
	CHECK(perf.all == 1 && perf.last_ns - began >= 4000000);
	/* One that waits when the net ends. */
	send_to(4);
	CHECK(!impair_set(m.mad.impair, SUBNET_NONE, &jitter));
	for (uint32_t i = 0; i < 100; i++)
		send_to(4);
	CHECK(perf.all < 30);
	test_mad_run(&m, 200);
	CHECK(perf.all == 102);
	send_to(4);
	test_mad_close(&m);
}

static void set_rows_random(void)
{
	struct impair_link how[20] = {{0}};

	srand(4);
	for (uint32_t i = 0; i < 2000; i++) {
		uint32_t row = (uint32_t)rand() % 20;
		uint64_t delay;

		if (rand() % 2) {
			how[row].delay_us = (uint32_t)rand() % 1000;
			CHECK(!impair_set(m.mad.impair, row, &how[row]));
		}
		CHECK(impair_decide(m.mad.impair, row, &delay) == 1);
		CHECK(delay == how[row].delay_us * 1000ull);
	}
}

static void test_rows(void)
{
	uint64_t delay;

	open_net(1);
	set_rows_random();
	CHECK(!impair_set(m.mad.impair, SUBNET_NONE, &(struct impair_link){.delay_us = 5}));
	for (uint32_t row = 0; row < 20; row++)
		CHECK(impair_decide(m.mad.impair, row, &delay) == 1 && delay == 5000);
	CHECK(!impair_set(m.mad.impair, SUBNET_NONE, &(struct impair_link){0}));
	for (uint32_t row = 0; row < 20; row++)
		CHECK(impair_decide(m.mad.impair, row, &delay) == 1 && !delay);
	test_mad_close(&m);
}

/* ---- groups ---- */

static void set_members(uint32_t switch_row, uint16_t mask)
{
	uint8_t block[64] = {0};

	mad_put16(block, (GROUP & 31) * 2, mask);
	net_mft_block_set(&m.t.net, net_node_of(&m.t.net, switch_row)->sw, 0, 0, block);
}

static void test_group(void)
{
	open_net(0);
	send_to(GROUP);
	CHECK(!perf.all && m.mad.dropped == 1);
	/* The switches themselves, the other host, and back to the asker never. */
	set_members(m.t.s1, 1u << 0 | 1u << 1 | 1u << 8);
	set_members(m.t.s2, 1u << 0 | 1u << 1 | 1u << 8);
	send_to(GROUP);
	CHECK(perf.all == 3 && perf.count[m.t.h2] == 1);
	CHECK(perf.count[m.t.s1 + 1] == 1 && perf.count[m.t.s2 + 8] == 1);
	CHECK(net_total(&m.t.net, m.t.s1 + 8, NET_MULTICAST_XMIT_PACKETS) == 1);
	CHECK(net_total(&m.t.net, m.t.h2, NET_MULTICAST_RCV_PACKETS) == 1);
	/* An answer is from the LID of who answers. */
	perf.answers = true;
	send_to(GROUP);
	CHECK(perf.all == 6 && m.mad.dropped == 1);
	test_mad_close(&m);
}

/* Two links between the switches, and tables that lead in a circle: it ends. */
static void test_circle(void)
{
	open_net(0);
	for (uint32_t i = 2; i < 8; i++)
		net_cable(&m.t.net, m.t.s1 + i, m.t.s2 + i);
	for (uint32_t i = 2; i < 8; i++) {
		CHECK(!net_set_state(&m.t.net, m.t.s1 + i, IB_PORT_ARMED));
		CHECK(!net_set_state(&m.t.net, m.t.s1 + i, IB_PORT_ACTIVE));
		CHECK(!net_set_state(&m.t.net, m.t.s2 + i, IB_PORT_ARMED));
		CHECK(!net_set_state(&m.t.net, m.t.s2 + i, IB_PORT_ACTIVE));
	}
	set_members(m.t.s1, 0x1fd);
	set_members(m.t.s2, 0x1fd);
	send_to(GROUP);
	CHECK(!m.mad.queued && m.mad.dropped > 0 && perf.all > 1000);
	test_mad_close(&m);
}

int main(void)
{
	/* The rows are the same in each net. */
	open_net(0);
	test_mad_close(&m);
	test_loss();
	test_delay();
	test_rows();
	test_group();
	test_circle();
	return 0;
}
