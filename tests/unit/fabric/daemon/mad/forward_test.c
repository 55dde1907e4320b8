// SPDX-License-Identifier: BSD-2-Clause
/* Packets on their way through two switches: by LID, by directed route, and where they are lost. */
#include <string.h>

#include "check.h"
#include "test_mad.h"

static struct test_mad m;

/* What has reached the port agent of this class, and where. */
struct seen {
	struct port_agent agent;
	struct mad_packet last;
	uint32_t row, count;
	bool answers;
};

static enum mad_verdict seen_handle(struct port_agent *a, uint32_t row, struct mad_packet *p)
{
	struct seen *s = container_of(a, struct seen, agent);

	s->last = *p;
	s->row = row;
	s->count++;
	if (!s->answers)
		return MAD_SILENT;
	mad_answer(p->mad, MAD_GET_RESP, 0);
	return MAD_ANSWERED;
}

static struct seen smp, directed, perf;

static void open_net(bool raise)
{
	smp = directed = perf = (struct seen){.agent.handle = seen_handle};
	test_mad_open(&m);
	if (raise)
		test_net_raise(&m.t);
	mad_port_agent(&m.mad, MAD_CLASS_SMP_LID, &smp.agent);
	mad_port_agent(&m.mad, MAD_CLASS_SMP_DIRECTED, &directed.agent);
	mad_port_agent(&m.mad, MAD_CLASS_PERF, &perf.agent);
}

static struct mad_packet *packet(uint32_t row, unsigned class, uint16_t slid, uint16_t dlid)
{
	struct mad_packet *p = mad_packet_get(&m.mad);

	CHECK(p);
	p->row = row;
	p->slid = slid;
	p->dlid = dlid;
	p->pkey = 0xffff;
	p->dqpn = p->sqpn = class == MAD_CLASS_PERF;
	p->qkey = p->dqpn ? MAD_QKEY_WELL_KNOWN : 0;
	p->mad[MAD_AT_BASE_VERSION] = 1;
	p->mad[MAD_AT_CLASS] = (uint8_t) class;
	p->mad[MAD_AT_CLASS_VERSION] = 1;
	p->mad[MAD_AT_METHOD] = MAD_GET;
	return p;
}

static void send_packet(struct mad_packet *p)
{
	mad_emit(&m.mad, p);
	test_mad_run(&m, 0);
}

static uint64_t total(uint32_t row, enum net_counter c)
{
	return net_total(&m.t.net, row, c);
}

static void test_by_lid(void)
{
	open_net(true);
	send_packet(packet(m.t.h1, MAD_CLASS_PERF, 1, 4));
	CHECK(perf.count == 1 && perf.row == m.t.h2 && perf.last.slid == 1);
	/* The switch's port 0 is at the port that it came in by. */
	send_packet(packet(m.t.h1, MAD_CLASS_SMP_LID, 1, 3));
	CHECK(smp.count == 1 && smp.row == m.t.s2 + 8);
	/* From the switch's own port, and to the own LID. */
	send_packet(packet(m.t.s1, MAD_CLASS_PERF, 2, 4));
	CHECK(perf.count == 2 && perf.row == m.t.h2);
	send_packet(packet(m.t.s1, MAD_CLASS_PERF, 2, 2));
	CHECK(perf.count == 3 && perf.row == m.t.s1);
	send_packet(packet(m.t.h1, MAD_CLASS_PERF, 1, 1));
	CHECK(perf.count == 4 && perf.row == m.t.h1);
	/* The permissive LID is whoever is at the other end. */
	send_packet(packet(m.t.h1, MAD_CLASS_SMP_LID, 1, MAD_LID_PERMISSIVE));
	CHECK(smp.count == 2 && smp.row == m.t.s1 + 1);
	CHECK(m.mad.dropped == 0);
	test_mad_close(&m);
}

/* Each hop of a GMP counts at both ends; an SMP's does not. */
static void test_counts(void)
{
	open_net(true);
	const uint32_t rows[] = {m.t.h1, m.t.s1 + 8, m.t.s2 + 1};
	const uint32_t peers[] = {m.t.s1 + 1, m.t.s2 + 8, m.t.h2};

	send_packet(packet(m.t.h1, MAD_CLASS_SMP_LID, 1, 4));
	CHECK(smp.count == 1);
	for (uint32_t i = 0; i < 3; i++)
		CHECK(!total(rows[i], NET_XMIT_PACKETS) && !total(peers[i], NET_RCV_PACKETS));
	send_packet(packet(m.t.h1, MAD_CLASS_PERF, 1, 4));
	for (uint32_t i = 0; i < 3; i++) {
		CHECK(total(rows[i], NET_XMIT_PACKETS) == 1 && total(rows[i], NET_XMIT_DATA) == 72);
		CHECK(total(peers[i], NET_RCV_PACKETS) == 1 && total(peers[i], NET_RCV_DATA) == 72);
	}
	test_mad_close(&m);
}

static void set_lft(uint32_t switch_row, uint32_t lid, uint8_t port)
{
	struct net_switch *sw = net_node_of(&m.t.net, switch_row)->sw;
	uint8_t block[64];

	net_lft_block_get(sw, lid / 64, block);
	block[lid % 64] = port;
	net_lft_block_set(&m.t.net, sw, lid / 64, block);
}

static void test_lost(void)
{
	open_net(true);
	/* No entry; above the top; a port that the switch does not have. */
	send_packet(packet(m.t.h1, MAD_CLASS_PERF, 1, 60));
	CHECK(total(m.t.s1 + 1, NET_RCV_SWITCH_RELAY_ERRORS) == 1);
	set_lft(m.t.s1, 60, 8);
	send_packet(packet(m.t.h1, MAD_CLASS_PERF, 1, 60));
	CHECK(total(m.t.s1 + 1, NET_RCV_SWITCH_RELAY_ERRORS) == 2);
	set_lft(m.t.s1, 4, 9);
	send_packet(packet(m.t.h1, MAD_CLASS_PERF, 1, 4));
	CHECK(total(m.t.s1 + 1, NET_RCV_SWITCH_RELAY_ERRORS) == 3);
	/* No link behind the port. */
	set_lft(m.t.s1, 4, 5);
	send_packet(packet(m.t.h1, MAD_CLASS_PERF, 1, 4));
	CHECK(total(m.t.s1 + 5, NET_XMIT_DISCARDS) == 1);
	/* In a circle between the switches. */
	set_lft(m.t.s1, 4, 8);
	set_lft(m.t.s2, 4, 8);
	send_packet(packet(m.t.h1, MAD_CLASS_PERF, 1, 4));
	CHECK(total(m.t.s1 + 8, NET_XMIT_PACKETS) > 20 &&
	      total(m.t.s1 + 8, NET_XMIT_PACKETS) <= 33);
	/* Not the LID of the host that it is led to. */
	set_lft(m.t.s1, 4, 1);
	send_packet(packet(m.t.s1, MAD_CLASS_PERF, 2, 4));
	CHECK(perf.count == 0 && m.mad.dropped == 6);
	/* Another partition, and a GMP at QP 0. */
	set_lft(m.t.s1, 4, 8);
	set_lft(m.t.s2, 4, 1);
	struct mad_packet *p = packet(m.t.h1, MAD_CLASS_PERF, 1, 4);
	p->pkey = 0x8001;
	send_packet(p);
	p = packet(m.t.h1, MAD_CLASS_PERF, 1, 4);
	p->dqpn = 0;
	send_packet(p);
	p = packet(m.t.h1, MAD_CLASS_PERF, 1, 4);
	p->mad[MAD_AT_BASE_VERSION] = 2;
	send_packet(p);
	CHECK(perf.count == 0);
	send_packet(packet(m.t.h1, MAD_CLASS_PERF, 1, 4));
	CHECK(perf.count == 1);
	test_mad_close(&m);
}

/* SMPs pass links from INIT on; GMPs leave only by ACTIVE and arrive only at ARMED or ACTIVE. */
static void test_states(void)
{
	open_net(true);
	CHECK(!net_set_state(&m.t.net, m.t.h2, IB_PORT_DOWN));
	send_packet(packet(m.t.h1, MAD_CLASS_SMP_LID, 1, 4));
	send_packet(packet(m.t.h1, MAD_CLASS_PERF, 1, 4));
	CHECK(smp.count == 1 && perf.count == 0);
	CHECK(!net_set_state(&m.t.net, m.t.s2 + 1, IB_PORT_ARMED));
	CHECK(!net_set_state(&m.t.net, m.t.s2 + 1, IB_PORT_ACTIVE));
	send_packet(packet(m.t.h1, MAD_CLASS_PERF, 1, 4));
	CHECK(perf.count == 0);
	CHECK(!net_set_state(&m.t.net, m.t.h2, IB_PORT_ARMED));
	send_packet(packet(m.t.h1, MAD_CLASS_PERF, 1, 4));
	CHECK(perf.count == 1);
	net_pull(&m.t.net, m.t.h2, true);
	send_packet(packet(m.t.h1, MAD_CLASS_SMP_LID, 1, 4));
	CHECK(smp.count == 1);
	test_mad_close(&m);
}

static struct mad_packet *directed_packet(const uint8_t *path, uint8_t hops)
{
	struct mad_packet *p =
		packet(m.t.h1, MAD_CLASS_SMP_DIRECTED, MAD_LID_PERMISSIVE, MAD_LID_PERMISSIVE);

	p->mad[MAD_AT_HOP_COUNT] = hops;
	mad_put16(p->mad, MAD_AT_DR_SLID, MAD_LID_PERMISSIVE);
	mad_put16(p->mad, MAD_AT_DR_DLID, MAD_LID_PERMISSIVE);
	for (uint8_t i = 0; i < hops; i++)
		p->mad[MAD_AT_DR_INITIAL + 1 + i] = path[i];
	return p;
}

/* Out and back over both switches, before any of them has a LID. */
static void test_directed(void)
{
	static const uint8_t path[] = {1, 8, 1};

	open_net(false);
	send_packet(directed_packet(path, 3));
	CHECK(directed.count == 1 && directed.row == m.t.h2);
	CHECK(directed.last.mad[MAD_AT_HOP_POINTER] == 4);
	CHECK(directed.last.mad[MAD_AT_DR_RETURN + 1] == 1);
	CHECK(directed.last.mad[MAD_AT_DR_RETURN + 2] == 8);
	CHECK(directed.last.mad[MAD_AT_DR_RETURN + 3] == 1);
	send_packet(directed_packet(path, 2));
	CHECK(directed.row == m.t.s2 + 8);
	send_packet(directed_packet(path, 0));
	CHECK(directed.row == m.t.h1 && directed.last.local);

	/* The answer is back at the asker with hop pointer 0; nobody there waits for it. */
	directed.answers = true;
	send_packet(directed_packet(path, 3));
	CHECK(m.mad.delivered == 5);
	test_mad_close(&m);
}

/* By LID to a switch, from there by its ports, and the other way round. */
static void test_mixed(void)
{
	static const uint8_t path[] = {8, 1};
	struct mad_packet *p;

	open_net(true);
	directed.answers = true;
	p = directed_packet(path, 2);
	mad_put16(p->mad, MAD_AT_DR_SLID, 1);
	p->slid = 1;
	p->dlid = 2;
	send_packet(p);
	CHECK(directed.count == 1 && directed.row == m.t.h2);
	CHECK(m.mad.delivered == 2 && !m.mad.dropped);

	p = directed_packet((const uint8_t[]){1}, 1);
	mad_put16(p->mad, MAD_AT_DR_DLID, 4);
	send_packet(p);
	CHECK(directed.count == 2 && directed.row == m.t.h2);
	CHECK(m.mad.delivered == 4 && !m.mad.dropped);
	test_mad_close(&m);
}

/* A question that nobody takes is answered, unless it never left the port. */
static void test_refusal(void)
{
	struct mad_packet *p;

	open_net(true);
	p = packet(m.t.h1, MAD_CLASS_PERF, 1, 4);
	p->mad[MAD_AT_CLASS] = MAD_CLASS_SA;
	send_packet(p);
	CHECK(m.mad.delivered == 2); /* and the answer */
	p = packet(m.t.h1, MAD_CLASS_PERF, 1, 4);
	p->mad[MAD_AT_CLASS] = MAD_CLASS_SA;
	p->mad[MAD_AT_METHOD] = MAD_TRAP;
	send_packet(p);
	CHECK(m.mad.delivered == 3);
	p = directed_packet(NULL, 0);
	p->mad[MAD_AT_METHOD] = MAD_SEND;
	send_packet(p);
	CHECK(m.mad.delivered == 4 && !directed.count);
	test_mad_close(&m);
}

int main(void)
{
	test_by_lid();
	test_counts();
	test_lost();
	test_states();
	test_directed();
	test_mixed();
	test_refusal();
	return 0;
}
