// SPDX-License-Identifier: BSD-2-Clause
/* How many flows a program and a table have, and that queue pairs beyond that are not controlled. */
#include <stdio.h>

#include "host.h"

#define PROGRAM	   256u
#define TABLE	   1024u
#define PATIENT_NS 30000000000u

/* Queue pairs, each of which is its own peer. */
struct many {
	struct line shared;
	struct ibv_qp *qp[PROGRAM + 1];
	unsigned n;
};

static void many_up(struct many *m, const struct device_port *port, unsigned n)
{
	struct device_connection how = device_default_connection;

	how.access = IBV_ACCESS_REMOTE_WRITE;
	how.mtu = IBV_MTU_1024;
	line_up(&m->shared, port);
	for (m->n = 0; m->n < n; m->n++) {
		struct ibv_qp *qp = m->qp[m->n] = qp_make(&m->shared, IBV_QPT_RC);
		struct device_address self = device_address(port, qp, 100);

		device_qp_init(qp, &how);
		device_qp_connect(port, qp, &how, &self, 100);
	}
}

static uint64_t many_write(struct many *m, unsigned i, unsigned n, uint32_t bytes)
{
	struct line l = m->shared;

	l.from = m->qp[i];
	return line_write(&l, n, bytes);
}

static void many_down(struct many *m)
{
	for (unsigned i = 0; i < m->n; i++)
		CHECK(!ibv_destroy_qp(m->qp[i]));
	line_down(&m->shared);
}

/* The handler gives each flow that it hears of the lowest rate.  It hears of none of that queue pair, which writes at
 * once what would take 44 s at that rate. */
static void not_controlled(struct bench *b, struct many *m, unsigned i, uint64_t events)
{
	CHECK(many_write(m, i, 1, ROOM) < PATIENT_NS);
	usleep(STILL_US);
	CHECK_SAY(get(b, events) == events, "%lu events", (unsigned long)get(b, events));
}

/* One program: the 257th queue pair has the place of another one that goes. */
static void of_program(void)
{
	static struct many m;
	struct bench b;

	bench_up(&b, 1, 0, NEXT_NONE);
	many_up(&m, &b.port, PROGRAM + 1);
	for (unsigned i = 0; i < PROGRAM; i++)
		many_write(&m, i, 1, 100);
	await(get(&b, events) == PROGRAM);
	CHECK(get(&b, flows) == PROGRAM);
	not_controlled(&b, &m, PROGRAM, PROGRAM);
	CHECK(!ibv_destroy_qp(m.qp[7]));
	m.qp[7] = m.qp[PROGRAM];
	m.n--;
	many_write(&m, 7, 1, 100);
	await(get(&b, events) == PROGRAM + 1);
	CHECK(get(&b, qpn) == m.qp[7]->qp_num && get(&b, flows) == PROGRAM + 1);
	many_down(&m);
	bench_down(&b);
}

/* Whoever started us says when to go on. */
static void say_and_hear(const char *word)
{
	puts(word);
	fflush(stdout);
	CHECK(getchar() == '\n');
}

/* A program that has all the flows it may have. */
static void flows_kept(void)
{
	struct device_port port;
	static struct many m;

	device_port_open(&port, "mlx5_1", -1);
	many_up(&m, &port, PROGRAM);
	for (unsigned i = 0; i < PROGRAM; i++)
		many_write(&m, i, 1, 100);
	say_and_hear("flows");
	many_down(&m);
	device_port_close(&port);
}

/* The table is full of flows of other programs; once one of those has gone, it has room. */
static void of_table(void)
{
	static struct many m;
	struct bench b;

	bench_up(&b, 1, 0, NEXT_NONE);
	say_and_hear("controls");
	await(get(&b, events) == TABLE);
	CHECK(get(&b, flows) == TABLE);
	many_up(&m, &b.port, 2);
	not_controlled(&b, &m, 0, TABLE);
	say_and_hear("full");
	for (unsigned i = 0; i < 2; i++) {
		many_write(&m, i, 1, 100);
		await(get(&b, events) == TABLE + 1 + i);
		CHECK(get(&b, qpn) == m.qp[i]->qp_num);
	}
	many_down(&m);
	bench_down(&b);
}

const struct host_case limit_cases[] = {
	{"of_program", of_program},
	{"flows_kept", flows_kept},
	{"of_table", of_table},
	{NULL, NULL},
};
