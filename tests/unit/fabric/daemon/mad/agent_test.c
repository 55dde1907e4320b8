// SPDX-License-Identifier: BSD-2-Clause
/* Agents: what may be registered, who gets what, and how each send ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "test_mad.h"

#define METHOD(m) (1ull << (m))

static struct test_mad m;
static uint32_t all_received, all_timed_out;

struct user {
	struct mad_agent agent;
	struct mad_scope scope;
	uint32_t received, sent, last_note;
	int status;
	uint8_t mad[MAD_BYTES], header[MAD_HEADER_BYTES];
	struct mad_address from;
};

static void user_receive(struct mad_agent *a, struct mad_message *msg)
{
	struct user *u = container_of(a, struct user, agent);

	CHECK(msg->length == MAD_BYTES);
	memcpy(u->mad, msg->data, MAD_BYTES);
	u->from = msg->from;
	u->received++;
	all_received++;
}

static void user_sent(struct mad_agent *a, const uint8_t note[64], const uint8_t *header,
		      int status)
{
	struct user *u = container_of(a, struct user, agent);

	memcpy(&u->last_note, note, sizeof(u->last_note));
	memcpy(u->header, header, sizeof(u->header));
	u->status = status;
	u->sent++;
	all_timed_out += status == -ETIMEDOUT;
}

static const struct mad_agent_ops ops = {user_receive, user_sent};

static int try_register(struct user *u, struct mad_agent_attr attr)
{
	memset(u, 0, sizeof(*u));
	return mad_agent_register(&m.mad, &u->agent, &attr, &ops, &u->scope);
}

static void open_net(void)
{
	test_mad_open(&m);
	test_net_raise(&m.t);
}

static struct mad_agent_attr attr_of(uint8_t class, uint64_t methods)
{
	return (struct mad_agent_attr){.row = m.t.h1,
				       .qpn = class != MAD_CLASS_SMP_LID &&
					      class != MAD_CLASS_SMP_DIRECTED,
				       .class = class,
				       .class_version = 1,
				       .methods = {methods}};
}

/* ---- registration ---- */

static void expect(struct mad_agent_attr attr, int status)
{
	struct user u;
	int ret = try_register(&u, attr);

	CHECK(ret == status);
	if (!ret)
		mad_agent_unregister(&u.agent);
}

static void test_register_checks(void)
{
	struct mad_agent_attr attr;

	open_net();
	attr = attr_of(MAD_CLASS_SA, METHOD(MAD_GET));
	expect(attr, 0);
	attr.rmpp_version = 2;
	expect(attr, -EINVAL);
	attr.rmpp_version = 1;
	expect(attr, 0);
	attr.class_version = 0x83;
	expect(attr, -EINVAL);
	attr.class_version = 0x82;
	expect(attr, 0);
	expect(attr_of(0x50, 0), -EINVAL);
	expect(attr_of(0x4f, 0), -EINVAL); /* no OUI */
	attr = attr_of(0x4f, 0);
	attr.oui[2] = 1;
	expect(attr, 0);
	attr = attr_of(MAD_CLASS_PERF, 0);
	attr.rmpp_version = 1;
	expect(attr, -EINVAL);
	attr = attr_of(MAD_CLASS_SA, 0);
	attr.qpn = 0;
	expect(attr, -EINVAL);
	attr = attr_of(MAD_CLASS_SMP_LID, 0);
	expect(attr, 0);
	attr.qpn = 1;
	expect(attr, -EINVAL);
	attr = attr_of(MAD_CLASS_SMP_DIRECTED, 0);
	expect(attr, 0);
	attr.qpn = 1;
	expect(attr, -EINVAL);
	/* Without a class nothing of it is looked at, save one flag. */
	attr = attr_of(0, ~0ull);
	attr.class_version = 0xff;
	attr.rmpp_version = 1;
	expect(attr, 0);
	attr.user_rmpp = true;
	expect(attr, -EINVAL);
	test_mad_close(&m);
}

static void test_ethernet(void)
{
	struct mad_agent_attr attr;

	open_net();
	m.t.subnet.ports[m.t.h1].ethernet = 1;
	attr = attr_of(MAD_CLASS_SMP_LID, 0);
	attr.rmpp_version = 7; /* comes later */
	expect(attr, -EPROTONOSUPPORT);
	expect(attr_of(MAD_CLASS_SA, 0), 0);
	test_mad_close(&m);
}

static void test_clashes(void)
{
	struct mad_agent_attr attr;
	struct user a, b, c;

	open_net();
	attr = attr_of(MAD_CLASS_SA, METHOD(MAD_GET) | METHOD(MAD_SET));
	CHECK(!try_register(&a, attr));
	expect(attr, -EINVAL);
	expect(attr_of(MAD_CLASS_SA, METHOD(MAD_SET) | METHOD(MAD_TRAP)), -EINVAL);
	expect(attr_of(MAD_CLASS_SA, METHOD(MAD_TRAP)), 0);
	expect(attr_of(MAD_CLASS_SA, 0), 0);
	attr.class_version = 2;
	expect(attr, 0);
	attr.class_version = 1;
	attr.row = m.t.h2;
	expect(attr, 0);
	mad_agent_unregister(&a.agent);
	attr.row = m.t.h1;
	expect(attr, 0);

	CHECK(!try_register(&a, attr_of(MAD_CLASS_SMP_LID, METHOD(MAD_GET))));
	expect(attr_of(MAD_CLASS_SMP_DIRECTED, METHOD(MAD_GET)), 0);
	mad_agent_unregister(&a.agent);

	/* Bits of the upper word; OUIs keep agents apart. */
	attr = attr_of(0x32, 0);
	attr.methods[1] = 1;
	attr.oui[1] = 9;
	CHECK(!try_register(&a, attr));
	expect(attr, -EINVAL);
	attr.oui[1] = 8;
	CHECK(!try_register(&b, attr));
	attr.methods[1] = 2;
	CHECK(!try_register(&c, attr));
	mad_agent_unregister(&a.agent);
	mad_agent_unregister(&b.agent);
	mad_agent_unregister(&c.agent);
	test_mad_close(&m);
}

static void test_ouis(void)
{
	struct user users[9];
	struct mad_agent_attr attr;

	open_net();
	attr = attr_of(0x32, METHOD(MAD_GET));
	for (uint8_t i = 0; i < 8; i++) {
		attr.oui[0] = i + 1;
		CHECK(!try_register(&users[i], attr));
	}
	attr.oui[0] = 9;
	expect(attr, -ENOMEM);
	attr.class_version = 2;
	expect(attr, 0);
	attr.class_version = 1;
	/* One more method of an OUI that is there; none at all takes no place. */
	attr.oui[0] = 8;
	attr.methods[0] = METHOD(MAD_SET);
	expect(attr, 0);
	attr.oui[0] = 9;
	attr.methods[0] = 0;
	expect(attr, 0);
	for (uint32_t i = 0; i < 8; i++)
		mad_agent_unregister(&users[i].agent);
	test_mad_close(&m);
}

/* Numbers are taken in turn, and none that is in use. */
static void test_numbers(void)
{
	struct user a, b, c;

	open_net();
	m.mad.next_tid = 0xffffff;
	CHECK(!try_register(&a, attr_of(0, 0)) && a.agent.tid == 0xffffff);
	CHECK(!try_register(&b, attr_of(0, 0)) && b.agent.tid == 1);
	mad_agent_unregister(&b.agent);
	m.mad.next_tid = 0xffffff;
	CHECK(!try_register(&c, attr_of(0, 0)) && c.agent.tid == 1);
	mad_agent_unregister(&c.agent);
	mad_agent_unregister(&a.agent);
	CHECK(!m.mad.nagents);
	test_mad_close(&m);
}

/* ---- sending ---- */

static uint8_t mad[MAD_BYTES];

static struct mad_send_attr send_attr(uint8_t class, uint8_t method, uint16_t lid, uint32_t tid)
{
	memset(mad, 0, sizeof(mad));
	mad[MAD_AT_BASE_VERSION] = 1;
	mad[MAD_AT_CLASS] = class;
	mad[MAD_AT_CLASS_VERSION] = 1;
	mad[MAD_AT_METHOD] = method;
	mad_put64(mad, MAD_AT_TID, 0xabcdef0100000000ull | tid);
	mad[200] = 0x77;
	return (struct mad_send_attr){.to = {.lid = lid, .qpn = 1},
				      .mad = mad,
				      .length = MAD_BYTES,
				      .timeout_ms = 100,
				      .retries = 2,
				      .note = {1, 2, 3, 4}};
}

/* A question, and its answer by another program. */
static void test_question(void)
{
	struct mad_agent_attr attr;
	struct mad_message request;
	struct mad_send_attr s;
	struct user asker, server;

	open_net();
	CHECK(!try_register(&asker, attr_of(0, 0)));
	attr = attr_of(0x10, METHOD(MAD_GET));
	attr.row = m.t.h2;
	CHECK(!try_register(&server, attr));
	s = send_attr(0x10, MAD_GET, 4, 0x1234);
	CHECK(!mad_agent_send(&asker.agent, &s));
	test_mad_run(&m, 0);
	CHECK(server.received == 1 && !asker.sent);
	CHECK(server.from.lid == 1 && server.from.qpn == 1 && !server.from.grh);
	CHECK(mad_get32(server.mad, MAD_AT_TID) == asker.agent.tid);
	CHECK(mad_get32(server.mad, MAD_AT_TID + 4) == 0x1234);
	CHECK(server.mad[200] == 0x77);

	request = (struct mad_message){.from = server.from};
	mad_answer(server.mad, MAD_GET_RESP, 0);
	CHECK(!mad_agent_reply(&server.agent, &request, server.mad, MAD_BYTES));
	test_mad_run(&m, 0);
	CHECK(server.sent == 1 && !server.status);
	CHECK(asker.received == 1 && asker.sent == 1 && !asker.status);
	CHECK(asker.last_note == 0x04030201);
	CHECK(asker.from.lid == 4 && mad_get32(asker.mad, MAD_AT_TID + 4) == 0x1234);
	/* A second answer is nobody's, and no timer is left. */
	CHECK(!mad_agent_reply(&server.agent, &request, server.mad, MAD_BYTES));
	test_mad_run(&m, 1000);
	CHECK(asker.received == 1 && asker.sent == 1 && !m.loop.ntimers);
	mad_agent_unregister(&asker.agent);
	mad_agent_unregister(&server.agent);
	test_mad_close(&m);
}

/* ---- queue pairs of processes ---- */

#define QPN 0x777u

static struct mad_packet given;
static uint32_t ngiven, nviolated;

static void to_queue_pair(void *user, const struct mad_packet *p)
{
	CHECK(user == &ngiven);
	given = *p;
	ngiven++;
}

static void qkey_violated(void *user, const struct mad_packet *p)
{
	(void)user;
	CHECK(p->row == m.t.h2 && p->sqpn == QPN);
	nviolated++;
}

/* As gsi_take makes it of a datagram of a queue pair at H1. */
static void datagram_emit(uint32_t qkey, uint32_t tid)
{
	struct mad_send_attr s = send_attr(0x10, MAD_GET, 4, tid);
	struct mad_packet *p = mad_packet_get(&m.mad);

	CHECK(p != NULL);
	p->row = m.t.h1;
	p->sqpn = QPN;
	p->dqpn = 1;
	p->qkey = qkey;
	p->slid = 1;
	p->dlid = s.to.lid;
	p->pkey = SUBNET_PKEY_DEFAULT;
	memcpy(p->mad, s.mad, MAD_BYTES);
	mad_emit(&m.mad, p);
	test_mad_run(&m, 0);
}

/* A queue pair asks a program, and a program asks a queue pair. */
static void test_queue_pairs(void)
{
	struct mad_agent_attr attr;
	struct mad_message request;
	struct mad_send_attr s;
	struct user server, manager;

	open_net();
	m.mad.to_queue_pair = to_queue_pair;
	m.mad.queue_pair_user = &ngiven;
	m.mad.qkey_violated = qkey_violated;
	attr = attr_of(0x10, METHOD(MAD_GET));
	attr.row = m.t.h2;
	CHECK(!try_register(&server, attr));
	datagram_emit(0x1234, 8);
	CHECK(!server.received && nviolated == 1);
	datagram_emit(MAD_QKEY_WELL_KNOWN, 9);
	CHECK(server.received == 1 && nviolated == 1 && server.from.qpn == QPN);
	CHECK(server.from.lid == 1 && mad_get32(server.mad, MAD_AT_TID + 4) == 9);

	request = (struct mad_message){.from = server.from};
	mad_answer(server.mad, MAD_GET_RESP, 0);
	CHECK(!mad_agent_reply(&server.agent, &request, server.mad, MAD_BYTES));
	test_mad_run(&m, 0);
	CHECK(ngiven == 1 && given.row == m.t.h1 && given.dqpn == QPN && given.sqpn == 1);
	CHECK(given.qkey == MAD_QKEY_WELL_KNOWN && given.slid == 4 && given.dlid == 1);
	CHECK(given.pkey == SUBNET_PKEY_DEFAULT && given.mad[MAD_AT_METHOD] == MAD_GET_RESP);

	/* From queue pair 0 nothing leads there. */
	s = send_attr(0x10, MAD_SEND, 1, 10);
	s.to.qpn = QPN;
	s.timeout_ms = 0;
	CHECK(!mad_agent_send(&server.agent, &s));
	test_mad_run(&m, 0);
	CHECK(ngiven == 2 && mad_get32(given.mad, MAD_AT_TID + 4) == 10);
	attr = attr_of(MAD_CLASS_SMP_LID, 0);
	attr.row = m.t.h2;
	CHECK(!try_register(&manager, attr));
	s = send_attr(MAD_CLASS_SMP_LID, MAD_GET, 1, 11);
	s.to.qpn = QPN;
	s.timeout_ms = 0;
	CHECK(!mad_agent_send(&manager.agent, &s));
	test_mad_run(&m, 0);
	CHECK(ngiven == 2);
	mad_agent_unregister(&server.agent);
	mad_agent_unregister(&manager.agent);
	test_mad_close(&m);
}

/* The same bytes again and again, then one report. */
static void test_timeout(void)
{
	struct mad_agent_attr attr;
	struct mad_send_attr s;
	struct user asker, server;

	open_net();
	CHECK(!try_register(&asker, attr_of(0, 0)));
	attr = attr_of(0x10, METHOD(MAD_GET));
	attr.row = m.t.h2;
	CHECK(!try_register(&server, attr));
	s = send_attr(0x10, MAD_GET, 4, 5);
	CHECK(!mad_agent_send(&asker.agent, &s));
	test_mad_run(&m, 99);
	CHECK(server.received == 1);
	test_mad_run(&m, 2);
	CHECK(server.received == 2 && mad_get32(server.mad, MAD_AT_TID + 4) == 5);
	test_mad_run(&m, 100);
	CHECK(server.received == 3 && !asker.sent);
	test_mad_run(&m, 100);
	CHECK(server.received == 3 && asker.sent == 1 && asker.status == -ETIMEDOUT);
	CHECK(asker.header[MAD_AT_METHOD] == MAD_GET);
	CHECK(mad_get32(asker.header, MAD_AT_TID) == asker.agent.tid);
	/* An answer that comes late. */
	mad_answer(server.mad, MAD_GET_RESP, 0);
	s = (struct mad_send_attr){.to = server.from, .mad = server.mad, .length = MAD_BYTES};
	CHECK(!mad_agent_send(&server.agent, &s));
	test_mad_run(&m, 1000);
	CHECK(!asker.received && asker.sent == 1);
	/* Without a timeout the send is over when it has left. */
	s = send_attr(0x10, MAD_GET, 4, 6);
	s.timeout_ms = 0;
	CHECK(!mad_agent_send(&asker.agent, &s));
	test_mad_run(&m, 0);
	CHECK(asker.sent == 2 && asker.status == 0 && server.received == 4);
	mad_agent_unregister(&asker.agent);
	mad_agent_unregister(&server.agent);
	test_mad_close(&m);
}

static int send_as(struct user *u, struct mad_send_attr s)
{
	return mad_agent_send(&u->agent, &s);
}

static void test_send_checks(void)
{
	struct mad_send_attr s;
	struct user a, rmpp, smi;

	open_net();
	CHECK(!try_register(&a, attr_of(0, 0)));
	s = send_attr(0x10, MAD_GET, 60, 1);
	s.to.sl = 16;
	CHECK(send_as(&a, s) == -EINVAL);
	s.to.sl = 15;
	s.to.grh = true;
	s.to.gid_index = SUBNET_IB_GIDS;
	CHECK(send_as(&a, s) == -EINVAL);
	s.to.grh = false;
	s.length = 63; /* of this class 64 are headers */
	CHECK(send_as(&a, s) == -EINVAL);
	s.length = 64;
	CHECK(send_as(&a, s) == 0);
	/* The same once more; another class, another low half. */
	s = send_attr(0x10, MAD_GET, 4, 1);
	CHECK(send_as(&a, s) == -EINVAL);
	CHECK(send_as(&a, send_attr(0x11, MAD_GET, 60, 1)) == 0);
	CHECK(send_as(&a, send_attr(0x10, MAD_GET, 60, 2)) == 0);
	/* Answers are told apart by where they go as well. */
	CHECK(send_as(&a, send_attr(0x10, MAD_GET_RESP, 60, 3)) == 0);
	CHECK(send_as(&a, send_attr(0x10, MAD_GET_RESP, 60, 3)) == -EINVAL);
	CHECK(send_as(&a, send_attr(0x10, MAD_GET_RESP, 61, 3)) == 0);
	test_mad_run(&m, 1000);
	CHECK(a.sent == 5 && a.status == -ETIMEDOUT);
	CHECK(send_as(&a, send_attr(0x10, MAD_GET, 60, 1)) == 0);
	mad_agent_unregister(&a.agent);
	CHECK(a.sent == 6 && a.status == -ECANCELED);

	struct mad_agent_attr attr = attr_of(0, 0);
	attr.rmpp_version = 1;
	CHECK(!try_register(&rmpp, attr));
	CHECK(send_as(&rmpp, send_attr(MAD_CLASS_PERF, MAD_GET, 4, 1)) == -EINVAL);
	mad_agent_unregister(&rmpp.agent);

	CHECK(!try_register(&smi, attr_of(MAD_CLASS_SMP_DIRECTED, 0)));
	s = send_attr(MAD_CLASS_SMP_DIRECTED, MAD_GET, 0xffff, 1);
	s.to.qpn = 0;
	mad_put16(mad, MAD_AT_DR_SLID, 0xffff);
	mad_put16(mad, MAD_AT_DR_DLID, 0xffff);
	mad[MAD_AT_HOP_COUNT] = 1;
	mad[MAD_AT_DR_INITIAL + 1] = 2;
	/* There is no port 2: it is lost. */
	CHECK(send_as(&smi, s) == 0);
	test_mad_run(&m, 1000);
	CHECK(smi.sent == 1 && smi.status == -ETIMEDOUT && !m.mad.delivered);
	mad[MAD_AT_DR_INITIAL + 1] = 1;
	CHECK(send_as(&smi, s) == 0);
	mad_agent_unregister(&smi.agent);
	test_mad_close(&m);
}

static enum mad_verdict answer_all(struct port_agent *a, uint32_t row, struct mad_packet *p)
{
	(void)a, (void)row;
	mad_answer(p->mad, MAD_GET_RESP, 0);
	return MAD_ANSWERED;
}

/* No hops: the port agent answers, or nobody does and nobody says so. */
static void test_local(void)
{
	struct port_agent port = {answer_all};
	struct mad_send_attr s;
	struct user u;

	open_net();
	CHECK(!try_register(&u, attr_of(MAD_CLASS_SMP_DIRECTED, 0)));
	s = send_attr(MAD_CLASS_SMP_DIRECTED, MAD_GET, 0xffff, 1);
	s.to.qpn = 0;
	mad_put16(mad, MAD_AT_DR_SLID, 0xffff);
	mad_put16(mad, MAD_AT_DR_DLID, 0xffff);
	CHECK(!send_as(&u, s));
	test_mad_run(&m, 1000);
	CHECK(u.sent == 1 && !u.status && !u.received);
	mad_port_agent(&m.mad, MAD_CLASS_SMP_DIRECTED, &port);
	CHECK(!send_as(&u, s));
	test_mad_run(&m, 1000);
	CHECK(u.sent == 2 && !u.status && u.received == 1);
	CHECK(u.from.lid == 0xffff && u.from.qpn == 0);
	CHECK(mad_get16(u.mad, MAD_AT_STATUS) == MAD_STATUS_DIRECTION);
	CHECK(u.mad[MAD_AT_HOP_POINTER] == 0);
	mad_agent_unregister(&u.agent);
	test_mad_close(&m);
}

/* To the own LID: as any other, and nobody's Get is refused by a status. */
static void test_own_lid(void)
{
	struct user u;

	open_net();
	CHECK(!try_register(&u, attr_of(MAD_CLASS_SA, METHOD(MAD_SET))));
	CHECK(!send_as(&u, send_attr(MAD_CLASS_SA, MAD_GET, 1, 1)));
	test_mad_run(&m, 0);
	CHECK(u.received == 1 && u.sent == 1 && !u.status && u.from.lid == 1);
	CHECK(mad_get16(u.mad, MAD_AT_STATUS) == MAD_STATUS_BAD_METHOD_ATTRIBUTE);
	/* Its own question: it is the server, too. */
	CHECK(!send_as(&u, send_attr(MAD_CLASS_SA, MAD_SET, 1, 2)));
	test_mad_run(&m, 0);
	CHECK(u.received == 2 && u.sent == 1);
	mad_agent_unregister(&u.agent);
	test_mad_close(&m);
}

/* An answer with a GRH belongs to a question with one. */
static void test_grh(void)
{
	struct mad_agent_attr attr;
	struct mad_message request = {0};
	struct mad_send_attr s;
	struct user a, server;
	struct subnet_gid_entry gid;

	open_net();
	CHECK(!try_register(&a, attr_of(0, 0)));
	attr = attr_of(0x10, METHOD(MAD_GET));
	attr.row = m.t.h2;
	CHECK(!try_register(&server, attr));
	s = send_attr(0x10, MAD_GET, 4, 1);
	s.to.grh = true;
	s.to.hop_limit = 3;
	s.to.traffic_class = 4;
	s.to.flow_label = 5;
	CHECK(subnet_gid(&m.t.subnet, m.t.h2, 0, &gid));
	s.to.gid = gid.gid;
	CHECK(!send_as(&a, s));
	test_mad_run(&m, 0);
	CHECK(server.received == 1 && server.from.grh && !server.from.gid_index);
	CHECK(server.from.hop_limit == 3 && server.from.traffic_class == 4 &&
	      server.from.flow_label == 5);
	CHECK(subnet_gid(&m.t.subnet, m.t.h1, 0, &gid));
	CHECK(!memcmp(&server.from.gid, &gid.gid, sizeof(gid.gid)));
	CHECK(net_total(&m.t.net, m.t.h1, NET_XMIT_DATA) == 82);
	mad_answer(server.mad, MAD_GET_RESP, 0);
	request.from = server.from;
	request.from.grh = false;
	CHECK(!mad_agent_reply(&server.agent, &request, server.mad, MAD_BYTES));
	test_mad_run(&m, 0);
	CHECK(!a.received);
	request.from.grh = true;
	CHECK(!mad_agent_reply(&server.agent, &request, server.mad, MAD_BYTES));
	test_mad_run(&m, 0);
	CHECK(a.received == 1 && a.sent == 1 && !a.status);
	mad_agent_unregister(&a.agent);
	mad_agent_unregister(&server.agent);
	test_mad_close(&m);
}

/* ---- each send ends once ---- */

#define USERS 12u

static struct user users[USERS];
static uint32_t taken[USERS];

static struct mad_agent_attr random_attr(void)
{
	struct mad_agent_attr attr = attr_of((uint8_t)(0x10 + rand() % 3), METHOD(rand() % 8));

	attr.row = rand() % 2 ? m.t.h1 : m.t.h2;
	if (rand() % 3 == 0)
		attr.class = 0;
	return attr;
}

/* The link between the switches. */
static void break_or_mend(bool broken)
{
	const uint32_t ends[] = {m.t.s1 + 8, m.t.s2 + 8};

	net_pull(&m.t.net, ends[0], broken);
	for (uint32_t i = 0; i < 2 && !broken; i++) {
		(void)!net_set_state(&m.t.net, ends[i], IB_PORT_ARMED);
		(void)!net_set_state(&m.t.net, ends[i], IB_PORT_ACTIVE);
	}
}

static void random_step(uint32_t i)
{
	struct user *u = &users[i];
	uint8_t method = (uint8_t)(rand() % 8);
	struct mad_send_attr s = send_attr((uint8_t)(0x10 + rand() % 3),
					   (uint8_t)(rand() % 4 ? method : method | MAD_RESPONSE),
					   (uint16_t)(1 + rand() % 5), (uint32_t)rand() % 8);

	switch (rand() % 8) {
	case 0:
		mad_agent_unregister(&u->agent);
		CHECK(u->sent == taken[i] && !u->scope.count);
		taken[i] = 0;
		while (try_register(u, random_attr()))
			;
		break;
	case 1:
		break_or_mend(rand() % 2);
		break;
	case 2:
		test_mad_run(&m, (uint32_t)rand() % 300);
		break;
	case 3:
		/* What it has got, back as an answer. */
		if (u->received) {
			mad_answer(u->mad, MAD_GET_RESP, 0);
			s.mad = u->mad;
			s.to = u->from;
		}
		/* fallthrough */
	default:
		s.timeout_ms = (uint32_t)rand() % 3 * 100;
		s.retries = (uint32_t)rand() % 3;
		taken[i] += !mad_agent_send(&u->agent, &s);
	}
}

static void test_all_end(void)
{
	srand(7);
	open_net();
	for (uint32_t i = 0; i < USERS; i++)
		while (try_register(&users[i], random_attr()))
			;
	for (uint32_t step = 0; step < 20000; step++)
		random_step((uint32_t)rand() % USERS);
	test_mad_run(&m, 10000);
	for (uint32_t i = 0; i < USERS; i++) {
		CHECK(users[i].sent == taken[i] && !users[i].agent.nsends && !users[i].scope.count);
		mad_agent_unregister(&users[i].agent);
	}
	CHECK(all_received > 1000 && all_timed_out > 100);
	CHECK(!m.mad.nsends && !m.mad.queued && !m.loop.ntimers);
	test_mad_close(&m);
}

int main(void)
{
	test_register_checks();
	test_ethernet();
	test_clashes();
	test_ouis();
	test_numbers();
	test_question();
	test_queue_pairs();
	test_timeout();
	test_send_checks();
	test_local();
	test_own_lid();
	test_grh();
	test_all_end();
	return 0;
}
