// SPDX-License-Identifier: BSD-2-Clause
/*
 * Queue pair 1 of ports as the daemon has it: it answers queue pairs of processes, believes only what
 * a process may say, and has no trouble with one that does not read its answers.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "prm/cm.h"
#include "subnet/subnet.h"
#include "test_daemon.h"

#define CHANGES 60 /* states of a port, each of which is told */

static _Atomic(int) answers;
static struct gsi_datagram answer;

static void on_gsi(void *user, const struct gsi_datagram *d)
{
	(void)user;
	answer = *d;
	answers++;
}

/* Asks a port of our host for its ClassPortInfo of performance management. */
static struct gsi_datagram question(const struct subnet *s, uint32_t row, uint32_t qpn, uint8_t tid)
{
	const struct subnet_port *p = &s->ports[row];
	struct gsi_datagram d = {
		.row = row,
		.qpn = qpn,
		.qkey = MAD_QKEY_WELL_KNOWN,
		.slid = (uint16_t)atomic_load(&p->lid),
		.dlid = (uint16_t)atomic_load(&p->lid),
		.pkey = SUBNET_PKEY_DEFAULT,
		.mad = {1, MAD_CLASS_PERF, 1, MAD_GET, [MAD_AT_TID + 7] = tid, [17] = 1},
	};

	return d;
}

static struct fabric_client *client_open(struct client_told *t)
{
	struct fabric_client_ops ops = test_client_ops(t);
	struct fabric_client *c;

	memset(t, 0, sizeof(*t));
	ops.gsi = on_gsi;
	CHECK(!fabric_client_open(&ops, &c));
	return c;
}

static void ask(struct fabric_client *c, struct gsi_datagram d)
{
	CHECK(fabric_send_gsi(c, &d));
}

static void answers_come(void)
{
	struct client_told t;
	struct fabric_client *c = client_open(&t);
	const struct subnet *s = fabric_subnet(c);
	uint32_t rows[SLOT_PORTS], qpn = (uint32_t)fabric_number_chunk(c, NUMBER_QPN) + 5, other;
	struct gsi_datagram d;

	CHECK(fabric_host_ports(c, rows, SLOT_PORTS) == 2 && !s->ports[rows[0]].ethernet);
	for (other = 0; other == rows[0] || other == rows[1]; other++)
		;
	/* Of the first six, each of which has a fault, none is answered. */
	d = question(s, rows[0], qpn - 4096, 1); /* nobody's number, or somebody else's */
	ask(c, d);
	d = question(s, rows[0], 1, 2);
	ask(c, d);
	d = question(s, rows[0], UINT32_MAX, 3);
	ask(c, d);
	d = question(s, rows[0], qpn, 4);
	d.row = other; /* no port of our host */
	ask(c, d);
	d.row = UINT32_MAX;
	ask(c, d);
	d = question(s, rows[0], qpn, 5);
	d.dlid = MAD_LID_PERMISSIVE;
	ask(c, d);
	ask(c, question(s, rows[0], qpn, 6));
	test_client_await(&answers, 1);
	CHECK(answer.row == rows[0] && answer.qpn == qpn && answer.qkey == MAD_QKEY_WELL_KNOWN);
	CHECK(answer.slid == d.slid && answer.pkey == SUBNET_PKEY_DEFAULT && !answer.grh);
	CHECK(answer.mad[MAD_AT_METHOD] == MAD_GET_RESP && answer.mad[MAD_AT_TID + 7] == 6);
	fabric_client_close(c);
	test_daemon_await_end();
}

/* It asks much and reads nothing: most answers are lost, but nothing else that it is told. */
static void answers_not_read(void)
{
	struct client_told t;
	struct fabric_client *c = client_open(&t);
	uint32_t rows[SLOT_PORTS], told = 0, answered = 0;
	struct msg m = {.numbers.kind = NUMBER_QPN};
	int fds[MSG_MAX_FDS], sock, ret;
	struct gsi_datagram d;
	uint16_t slot;

	CHECK(fabric_host_ports(c, rows, SLOT_PORTS) == 2);
	sock = stranger_hello("", &slot);
	CHECK(!stranger_call(sock, &m, MSG_NUMBERS));
	d = question(fabric_subnet(c), rows[0], m.numbers_reply.first, 1);
	for (int i = 0; i < 5000; i++) {
		m.gsi.datagram = d;
		msg_prepare(&m, MSG_GSI, MSG_REQUEST, 1, 0);
		CHECK(!msg_send(sock, &m, NULL, 0, 0));
	}
	for (uint32_t i = 0; i < CHANGES; i++)
		CHECK(!test_daemon_set_port(rows[1], i & 1 ? IB_PORT_ACTIVE : IB_PORT_DOWN));
	CHECK(fabric_number_chunk(c, NUMBER_QPN) > 0 && !t.lost);
	while (told < CHANGES) {
		CHECK(!msg_recv(sock, &m, fds, 1u << MSG_NOTE, 0));
		told += m.head.type == MSG_PORT;
		answered += m.head.type == MSG_GSI;
	}
	CHECK(answered > 0 && answered < 5000);
	/* Now that it has read, it gets answers again. */
	do
		ret = msg_recv(sock, &m, fds, 1u << MSG_NOTE, MSG_DONTWAIT);
	while (!ret);
	CHECK(ret == -EAGAIN);
	m.gsi.datagram = d;
	msg_prepare(&m, MSG_GSI, MSG_REQUEST, 1, 0);
	CHECK(!msg_send(sock, &m, NULL, 0, 0));
	CHECK(!msg_recv(sock, &m, fds, 1u << MSG_NOTE, 0) && m.head.type == MSG_GSI);
	close(sock);
	fabric_client_close(c);
	test_daemon_await_end();
}

/* ---- carriers ---- */

static union ib_gid gid_made(uint8_t last)
{
	return (union ib_gid){.raw = {[10] = 0xff, [11] = 0xff, 10, 9, 0, last}};
}

/* A DREQ of a connection that nobody knows, to which the port's communication manager answers. */
static struct gsi_datagram from_outside(uint32_t row, uint8_t from, uint8_t to, uint8_t tid)
{
	return (struct gsi_datagram){
		.row = row,
		.qpn = IB_GSI_QPN,
		.qkey = MAD_QKEY_WELL_KNOWN,
		.pkey = SUBNET_PKEY_DEFAULT,
		.grh = true,
		.sgid = gid_made(from),
		.dgid = gid_made(to),
		.mad = {1, MAD_CLASS_CM, CM_CLASS_VERSION, MAD_SEND, [MAD_AT_TID + 7] = tid,
			[MAD_AT_ATTRIBUTE + 1] = CM_DREQ},
	};
}

static bool gid_is(const struct subnet *s, uint32_t row, uint32_t index, uint8_t last)
{
	const union ib_gid gid = gid_made(last);
	struct subnet_gid_entry e;

	return subnet_gid(s, row, index, &e) && e.type == GID_ROCE_V2 &&
	       !memcmp(&e.gid, &gid, sizeof(gid));
}

/* Whoever carries for a port gives it an address, and speaks for those outside to it; nobody else
 * does. */
static void carriers_speak_for_others(void)
{
	struct client_told t, t2;
	struct fabric_client *c = client_open(&t), *other = client_open(&t2);
	const struct subnet *s = fabric_subnet(c);
	struct subnet_gid_entry own[4], now;
	uint32_t rows[SLOT_PORTS], row, foreign;
	struct msg_tie tie = {.up = 1, .mtu = IB_MTU_1024, .gid = gid_made(1), .text = "a network"};

	answers = 0;
	CHECK(fabric_host_ports(c, rows, SLOT_PORTS) == 2 && s->ports[rows[1]].ethernet);
	row = tie.row = rows[1];
	for (foreign = 0; foreign == rows[0] || foreign == rows[1] || !s->ports[foreign].ethernet;
	     foreign++)
		;
	for (uint32_t i = 0; i < array_size(own); i++)
		CHECK(subnet_gid(s, row, i, &own[i]));
	/* Nobody carries yet. */
	ask(c, from_outside(row, 2, 1, 1));
	/* An address that another port has, and an MTU that there is not. */
	CHECK(subnet_gid(s, foreign, 3, &now));
	tie.gid = now.gid;
	CHECK(fabric_carry(c, &tie) == -EADDRINUSE);
	tie.gid = gid_made(1);
	tie.mtu = IB_MTU_4096 + 1;
	CHECK(fabric_carry(c, &tie) == -EINVAL);
	tie.mtu = IB_MTU_1024;
	CHECK(!subnet_ethernet_leads_out(s, row));
	CHECK(!fabric_carry(c, &tie) && subnet_ethernet_leads_out(s, row));
	CHECK(gid_is(s, row, 0, 1) && gid_is(s, row, 3, 1));
	CHECK(!subnet_gid(s, row, 1, &now) && !subnet_gid(s, row, 2, &now));
	CHECK(atomic_load(&s->ports[row].mtu) == IB_MTU_1024);
	/* Somebody else, another port, another address of the port: none is answered. */
	ask(other, from_outside(row, 2, 1, 2));
	ask(c, from_outside(rows[0], 2, 1, 3));
	ask(c, from_outside(foreign, 2, 1, 4));
	ask(c, from_outside(UINT32_MAX, 2, 1, 5));
	ask(c, from_outside(row, 2, 3, 6));
	ask(c, from_outside(row, 2, 1, 7));
	test_client_await(&answers, 1);
	CHECK(answer.row == row && answer.qpn == IB_GSI_QPN && answer.grh && !answer.roce_v1);
	CHECK(answer.dgid.raw[15] == 2 && answer.sgid.raw[15] == 1);
	CHECK(answer.mad[MAD_AT_ATTRIBUTE + 1] == CM_DREP && answer.mad[MAD_AT_TID + 7] == 7);
	/* The network changes; another carrier has no address to give. */
	tie.gid = gid_made(9);
	tie.mtu = IB_MTU_256;
	CHECK(!fabric_carry(c, &tie) && gid_is(s, row, 0, 9) && gid_is(s, row, 3, 9));
	CHECK(atomic_load(&s->ports[row].mtu) == IB_MTU_256);
	CHECK(fabric_carry(other, &tie) == -EBUSY);
	fabric_client_close(c);
	s = fabric_subnet(other);
	tie.gid = (union ib_gid){0};
	tie.mtu = 0;
	while (fabric_carry(other, &tie) == -EBUSY)
		sched_yield();
	for (uint32_t i = 0; i < array_size(own); i++)
		CHECK(subnet_gid(s, row, i, &now) && !memcmp(&now, &own[i], sizeof(now)));
	CHECK(!atomic_load(&s->ports[row].mtu) && answers == 1);
	fabric_client_close(other);
	test_daemon_await_end();
}

int main(int argc, char **argv)
{
	test_daemon_begin(argc, argv);
	answers_come();
	answers_not_read();
	carriers_speak_for_others();
	test_daemon_end();
	return 0;
}
