// SPDX-License-Identifier: BSD-2-Clause
/* The host's part: a process that controls flows, and a connection of its own that sends. */
#include <string.h>

#include "host.h"

/* ---- the process that controls ---- */

uint64_t call(struct flexio_process *p, flexio_func_t *f, uint64_t a, uint64_t b, uint64_t c,
	      uint64_t d)
{
	uint64_t result;

	OK(flexio_process_call(p, f, &result, a, b, c, d));
	return result;
}

void handler_up(struct bench *b)
{
	struct flexio_event_handler_attr attr = {.host_stub_func = &control_flows};

	OK(flexio_event_handler_create(b->p, &attr, &b->eh));
	OK(flexio_event_handler_run(b->eh, b->c));
}

void bench_up(struct bench *b, uint64_t rate, uint64_t probe, uint64_t next)
{
	struct control control = {.rate = rate, .probe = probe, .next = next};
	struct flexio_process_attr attr = {.en_pcc = 1};

	device_port_open(&b->port, "mlx5_1", -1);
	OK(flexio_process_create(b->port.ctx, congestion_app, &attr, &b->p));
	OK(flexio_copy_from_host(b->p, &control, sizeof(control), &b->c));
	handler_up(b);
}

void bench_down(struct bench *b)
{
	CHECK(!get(b, wrong));
	OK(flexio_event_handler_destroy(b->eh));
	OK(flexio_process_destroy(b->p));
	device_port_close(&b->port);
}

/* ---- a connection within this program ---- */

struct ibv_qp *qp_make(const struct line *l, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = l->cq,
		.recv_cq = l->cq,
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
	};
	struct ibv_qp *qp = ibv_create_qp(l->pd, &attr);

	CHECK(qp);
	return qp;
}

void line_up_of(struct line *l, const struct device_port *port, enum ibv_qp_type type)
{
	struct device_connection how = device_default_connection;
	struct device_address from, to;

	how.access = IBV_ACCESS_REMOTE_WRITE;
	how.rnr_retry = 7;
	how.mtu = IBV_MTU_1024;
	l->memory = calloc(2, ROOM);
	l->pd = ibv_alloc_pd(port->ctx);
	l->cq = ibv_create_cq(port->ctx, 256, NULL, NULL, 0);
	CHECK(l->memory && l->pd && l->cq);
	l->mr = ibv_reg_mr(l->pd, l->memory, 2 * ROOM,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(l->mr);
	l->from = qp_make(l, type);
	l->to = qp_make(l, type);
	from = device_address(port, l->from, 100);
	to = device_address(port, l->to, 200);
	device_qp_init(l->from, &how);
	device_qp_init(l->to, &how);
	device_qp_connect(port, l->from, &how, &to, 100);
	device_qp_connect(port, l->to, &how, &from, 200);
}

void line_down(struct line *l)
{
	CHECK(!ibv_destroy_qp(l->from) && !ibv_destroy_qp(l->to) && !ibv_destroy_cq(l->cq));
	CHECK(!ibv_dereg_mr(l->mr) && !ibv_dealloc_pd(l->pd));
	free(l->memory);
}

void line_post(struct line *l, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)l->memory, bytes, l->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = opcode,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {(uintptr_t)l->memory + ROOM, l->mr->rkey},
				 };

	CHECK(!ibv_post_send(l->from, &wr, &bad));
}

void line_await(struct line *l, unsigned n)
{
	struct ibv_wc wc;

	while (n) {
		int got = ibv_poll_cq(l->cq, 1, &wc);

		CHECK(got >= 0);
		if (!got)
			continue;
		CHECK_SAY(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
		n--;
	}
}

uint64_t line_write(struct line *l, unsigned n, uint32_t bytes)
{
	uint64_t begin = device_now_ns();

	for (unsigned i = 0; i < n; i++) {
		line_post(l, IBV_WR_RDMA_WRITE, bytes);
		line_await(l, 1);
	}
	return device_now_ns() - begin;
}

/* ---- cases ---- */

/* All that goes is told, of each flow by itself. */
static void events(void)
{
	struct line l[2];
	uint64_t tag = 0;
	struct bench b;

	bench_up(&b, RATE_MAX, 0, 0);
	CHECK(call(b.p, &table_of, 0, 0, 0, 0) && !call(b.p, &table_of, 1, 0, 0, 0));
	for (unsigned i = 0; i < 2; i++) {
		uint64_t bytes = get(&b, bytes), packets = get(&b, packets);

		line_up(&l[i], &b.port);
		for (unsigned n = 1; n <= 40; n++)
			line_write(&l[i], 1, n * 1000);
		/* 820000 bytes, in packets of at most 1024 and the headers of those */
		for (unsigned n = 1; n <= 40; n++)
			packets += (n * 1000 + MTU - 1) / MTU;
		await(get(&b, packets) >= packets);
		usleep(STILL_US);
		CHECK(get(&b, packets) == packets);
		bytes = get(&b, bytes) - bytes;
		CHECK_SAY(bytes > 820000 && bytes < 820000 + packets * 120, "%lu bytes",
			  (unsigned long)bytes);
		CHECK(get(&b, qpn) == l[i].from->qp_num && get(&b, port) == 1);
		CHECK(get(&b, flows) == i + 1 && get(&b, tag) != tag);
		tag = get(&b, tag);
	}
	CHECK(get(&b, events) == get(&b, of_type[TX]) && get(&b, events) >= 2);
	for (unsigned i = 0; i < 2; i++)
		line_down(&l[i]);
	bench_down(&b);
}

uint64_t rate_of(double megabytes)
{
	return (uint64_t)(megabytes * 1e6 / PORT_SPEED * RATE_MAX);
}

/* Never faster than the rate but for a millisecond's worth; slower where processors are scarce. */
static void rates(void)
{
	static const double megabytes[] = {10, 80, 3};
	struct bench b;
	struct line l;

	bench_up(&b, rate_of(megabytes[0]), 0, 0);
	line_up(&l, &b.port);
	line_write(&l, 1, 100); /* from now on it has a rate */
	await(get(&b, events) >= 1);
	for (unsigned i = 0; i < 3; i++) {
		double per_ns = (double)rate_of(megabytes[i]) * PORT_SPEED / RATE_MAX / 1e9;
		uint64_t ns;

		set(&b, rate, rate_of(megabytes[i]));
		CHECK(!call(b.p, &ring, get(&b, ccq), rate_of(megabytes[i]), 0, 0));
		line_write(&l, 1, 20000);
		ns = line_write(&l, 10, (uint32_t)(megabytes[i] * 10000));
		/* in 100 ms */
		CHECK_SAY((double)ns * per_ns > 0.97 * (megabytes[i] * 100000 - per_ns * 1.1e6),
			  "%lu ns", (unsigned long)ns);
		CHECK_SAY(ns < 10000000000u, "%lu ns", (unsigned long)ns);
	}
	line_down(&l);
	bench_down(&b);
}

static void probes(void)
{
	struct bench b;
	struct line l;

	bench_up(&b, RATE_MAX, 0, 0);
	line_up(&l, &b.port);
	line_write(&l, 20, 5000);
	await(get(&b, events) >= 1);
	usleep(STILL_US);
	CHECK(!get(&b, of_type[RTT]));
	/* It goes behind the flow's next packet. */
	for (uint64_t i = 1; i <= 5; i++) {
		CHECK(!call(b.p, &ring, get(&b, ccq), RATE_MAX, 1, 0));
		line_write(&l, 3, 100);
		await(get(&b, of_type[RTT]) >= i);
		CHECK(get(&b, round_trip) < 5000000000u);
	}
	usleep(STILL_US);
	CHECK(get(&b, of_type[RTT]) == 5);
	line_down(&l);
	bench_down(&b);
}

static void refusals(void)
{
	struct ibv_recv_wr *bad, wr = {0};
	struct bench b;
	struct line l;

	bench_up(&b, RATE_MAX, 0, 0);
	line_up(&l, &b.port);
	line_post(&l, IBV_WR_SEND, 0);
	await(get(&b, of_type[NACK]) >= 2);
	CHECK(get(&b, nack_kind) == RNR_KIND && get(&b, nacks) >= 2);
	CHECK(!ibv_post_recv(l.to, &wr, &bad));
	line_await(&l, 2);
	line_down(&l);
	bench_down(&b);
}

/* What the doorbell says of the next events; a handler that rings nothing has them one by one. */
static void next_actions(void)
{
	struct bench b;
	struct line l;
	uint64_t n;

	bench_up(&b, 0, 0, 0);
	line_up(&l, &b.port);
	line_write(&l, 10, 100000);
	await(get(&b, events) == 1);
	line_write(&l, 10, 100000);
	usleep(STILL_US);
	CHECK(get(&b, events) == 1);
	/* single: what has come meanwhile is the next, in one */
	CHECK(!call(b.p, &ring, get(&b, ccq), RATE_MAX, 0, 0));
	await(get(&b, events) == 2);
	line_write(&l, 10, 100000);
	usleep(STILL_US);
	CHECK(get(&b, events) == 2);
	/* several */
	CHECK(!call(b.p, &ring, get(&b, ccq), RATE_MAX, 0, 1));
	await(get(&b, events) == 3);
	for (n = 3; n < 8; n++) {
		line_write(&l, 1, 100000);
		await(get(&b, events) > n);
	}
	await(get(&b, packets) == 35 * 98);
	/* none */
	CHECK(!call(b.p, &ring, get(&b, ccq), RATE_MAX, 0, 2));
	usleep(STILL_US);
	n = get(&b, events);
	line_write(&l, 10, 100000);
	usleep(STILL_US);
	CHECK(get(&b, events) == n);
	line_down(&l);
	bench_down(&b);
}

static void refused(void)
{
	struct flexio_event_handler_attr handler = {.host_stub_func = &control_flows};
	struct flexio_process_attr attr = {.en_pcc = 1};
	struct flexio_outbox_attr box = {.en_pcc = 1};
	struct flexio_event_handler *second;
	struct flexio_process *plain, *other = NULL;
	struct flexio_outbox *outbox[2];
	struct device_port ib;
	struct bench b;
	struct line l;

	/* Where it cannot be. */
	device_port_open(&ib, "mlx5_0", -1);
	FAILS(flexio_process_create(ib.ctx, congestion_app, &attr, &other));
	CHECK(!other);
	device_port_close(&ib);
	bench_up(&b, rate_of(50), 0, 0);
	OK(flexio_process_create(b.port.ctx, congestion_app, NULL, &plain));
	FAILS(flexio_outbox_create(plain, &box, &outbox[0]));
	CHECK(!call(plain, &table_of, 0, 0, 0, 0));
	OK(flexio_process_destroy(plain));
	/* The port's flows have one handler. */
	OK(flexio_process_create(b.port.ctx, congestion_app, &attr, &other));
	OK(flexio_event_handler_create(other, &handler, &second));
	FAILS(flexio_event_handler_run(second, b.c));
	OK(flexio_event_handler_destroy(second));
	OK(flexio_process_destroy(other));
	OK(flexio_event_handler_create(b.p, &handler, &second));
	FAILS(flexio_event_handler_run(second, b.c));
	OK(flexio_event_handler_destroy(second));
	/* Bells for flows that there are not, with actions that there are not, by other outboxes. */
	line_up(&l, &b.port);
	line_write(&l, 1, 100);
	await(get(&b, events) >= 1);
	for (uint64_t n = 1; n < 0x10000; n *= 2)
		CHECK(!call(b.p, &ring, get(&b, ccq) ^ n, 1, 1, n & 3));
	CHECK(!call(b.p, &ring, get(&b, ccq), 1, 0, 3));
	OK(flexio_outbox_create(b.p, &box, &outbox[0]));
	box.en_pcc = 0;
	OK(flexio_outbox_create(b.p, &box, &outbox[1]));
	CHECK(!call(b.p, &ring_by, flexio_outbox_get_id(outbox[1]), get(&b, ccq), 1, 0));
	/* At the rate of 1 this would take 42 s. */
	CHECK(line_write(&l, 10, 100000) < 30000000000u);
	CHECK(!call(b.p, &ring_by, flexio_outbox_get_id(outbox[0]), get(&b, ccq), RATE_MAX, 0));
	OK(flexio_outbox_destroy(outbox[0]));
	OK(flexio_outbox_destroy(outbox[1]));
	line_down(&l);
	bench_down(&b);
}

#define OTHERS 50u

static void ends(void)
{
	struct bench b;
	struct line l;
	uint64_t n;

	bench_up(&b, 1, 0, 0); /* 24 kB a second */
	line_up(&l, &b.port);
	line_write(&l, 1, 100);
	await(get(&b, events) >= 1);
	/* In the middle of a message; it goes on, and hears nothing any more. */
	line_post(&l, IBV_WR_RDMA_WRITE, ROOM);
	usleep(STILL_US);
	OK(flexio_event_handler_destroy(b.eh));
	line_await(&l, 1);
	n = get(&b, events);
	line_write(&l, 100, ROOM / 4);
	CHECK(get(&b, events) == n);
	/* The next one has the flow again, as another. */
	set(&b, rate, RATE_MAX);
	set(&b, flows, 0);
	handler_up(&b);
	line_write(&l, 10, 10000);
	await(get(&b, flows) == 1);
	/* A queue pair that goes takes its flow along, and what is told of it later still names it. */
	for (uint64_t others = 1; others <= OTHERS; others++) {
		line_down(&l);
		line_up(&l, &b.port);
		line_write(&l, 10, 10000);
		await(get(&b, flows) == 1 + others);
	}
	line_down(&l);
	bench_down(&b);
}

static const struct host_case cases[] = {
	{"events", events},
	{"rates", rates},
	{"probes", probes},
	{"refusals", refusals},
	{"next_actions", next_actions},
	{"refused", refused},
	{"ends", ends},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	const struct host_case *const all[] = {cases, flow_cases, queue_cases, limit_cases};

	CHECK(argc == 2);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (const struct host_case *c = all[i]; c->name; c++)
			if (!strcmp(c->name, argv[1])) {
				c->run();
				return 0;
			}
	CHECK_SAY(0, "no case %s", argv[1]);
}
