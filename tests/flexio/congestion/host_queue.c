// SPDX-License-Identifier: BSD-2-Clause
/* Queues of device code: a queue pair is a flow as any other, and a send queue of frames is none. */
#include <string.h>

#include "host.h"

#define CQE_BYTES 64u
#define DATA	  (1u << 18)
#define NS	  1000000000u
#define FRAME	  1024u
#define FRAMES	  4000u
#define PACKET	  120u /* more than the headers of one have */

struct dpa_queue {
	struct flexio_cq *cq;
	struct flexio_mkey *key;
	struct flexio_qp *qp;
	struct flexio_sq *sq;
	struct queue q;
	uint64_t at; /* where device code has it */
};

static uint64_t heap(struct bench *b, size_t bytes, int value)
{
	flexio_uintptr_t at;

	OK(flexio_buf_dev_alloc(b->p, bytes, &at));
	OK(flexio_buf_dev_memset(b->p, value, bytes, at));
	return at;
}

static uint32_t uar_of(struct bench *b)
{
	return flexio_uar_get_id(flexio_process_get_uar(b->p));
}

/* Completions, memory and a ring; the queue itself is the caller's to make. */
static void queue_memory(struct bench *b, struct dpa_queue *d)
{
	struct flexio_cq_attr cq = {
		.log_cq_depth = LOG_DEPTH,
		.element_type = FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ,
		.uar_id = uar_of(b),
	};
	struct flexio_mkey_attr key = {
		.pd = flexio_process_get_pd(b->p),
		.len = DATA,
		.access = IBV_ACCESS_LOCAL_WRITE,
	};

	memset(d, 0, sizeof(*d));
	cq.cq_ring_qmem.daddr = d->q.cq_ring = heap(b, CQE_BYTES << LOG_DEPTH, 0xff);
	cq.cq_dbr_daddr = d->q.cq_record = heap(b, 8, 0);
	OK(flexio_cq_create(b->p, NULL, &cq, &d->cq));
	key.daddr = d->q.data = heap(b, DATA, 0x5a);
	OK(flexio_device_mkey_create(b->p, &key, &d->key));
	d->q.key = flexio_mkey_get_id(d->key);
	d->q.ring = heap(b, 64u << LOG_DEPTH, 0);
}

static void queue_ready(struct bench *b, struct dpa_queue *d)
{
	OK(flexio_copy_from_host(b->p, &d->q, sizeof(d->q), &d->at));
}

static void queue_down(struct bench *b, struct dpa_queue *d)
{
	const uint64_t all[] = {d->q.cq_ring, d->q.cq_record, d->q.data, d->q.ring, d->at};

	if (d->qp)
		OK(flexio_qp_destroy(d->qp));
	if (d->sq)
		OK(flexio_sq_destroy(d->sq));
	OK(flexio_device_mkey_destroy(d->key));
	OK(flexio_cq_destroy(d->cq));
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		OK(flexio_buf_dev_free(b->p, all[i]));
}

/* Sends so many bytes, and waits until that has completed; how long it took. */
static uint64_t queue_run(struct bench *b, struct dpa_queue *d, uint64_t bytes)
{
	uint64_t begin = device_now_ns(), done;

	call(b->p, &poke, d->at + offsetof(struct queue, bytes), bytes, 0, 0);
	CHECK(!call(b->p, &queue_send, d->at, 0, 0, 0));
	await((done = call(b->p, &queue_done, d->at, 0, 0, 0)));
	CHECK(done == 1);
	return device_now_ns() - begin;
}

/* A queue pair of device code that writes to one of verbs, whose line has that as its 'to'. */
static void pair_up(struct bench *b, struct dpa_queue *d, struct line *l)
{
	struct flexio_qp_attr attr = {
		.transport_type = FLEXIO_QPC_ST_RC,
		.uar_id = uar_of(b),
		.log_sq_depth = LOG_DEPTH,
		.rq_type = FLEXIO_QP_QPC_RQ_TYPE_ZERO_SIZE_RQ,
	};
	struct device_connection how = device_default_connection;
	struct device_address from = {.gid = b->port.gid, .lid = b->port.attr.lid, .psn = 100};
	uint8_t mac[6];

	queue_memory(b, d);
	attr.sq_cqn = flexio_cq_get_cq_num(d->cq);
	attr.qp_wq_buff_qmem.daddr = d->q.ring;
	attr.qp_wq_dbr_qmem.daddr = heap(b, 8, 0);
	OK(flexio_qp_create(b->p, NULL, &attr, &d->qp));
	d->q.number = from.qpn = flexio_qp_get_qp_num(d->qp);
	d->q.remote = (uintptr_t)l->memory;
	d->q.rkey = l->mr->rkey;
	how.access = IBV_ACCESS_REMOTE_WRITE;
	how.mtu = IBV_MTU_1024;
	device_qp_init(l->to, &how);
	device_qp_connect(&b->port, l->to, &how, &from, 200);
	/* the last 64 bits of an address of the link are made of the MAC */
	for (unsigned i = 0; i < 6; i++)
		mac[i] = b->port.gid.raw[8 + i + (i >= 3 ? 2 : 0)];
	mac[0] ^= 2;
	attr = (struct flexio_qp_attr){
		.remote_qp_num = l->to->qp_num,
		.gid_table_index = (uint8_t)b->port.gid_index,
		.rgid_or_rip = b->port.gid,
		.dest_mac = mac,
		.path_mtu = FLEXIO_QP_QPC_MTU_BYTES_1K,
		.retry_count = 7,
		.vhca_port_num = 1,
		.next_rcv_psn = 200,
		.next_send_psn = 100,
	};
	for (unsigned s = FLEXIO_QP_STATE_INIT; s <= FLEXIO_QP_STATE_RTS; s++) {
		attr.next_state = (enum flexio_qp_state)s;
		OK(flexio_qp_modify(d->qp, &attr, NULL));
	}
	queue_ready(b, d);
}

/* The handler hears of its packets, and it is as fast as the handler says: slower where processors are
 * scarce, and never faster but for a millisecond's worth. */
static void queue_pair(void)
{
	const double megabytes[] = {2, 10};
	struct dpa_queue d;
	struct bench b;
	struct line l;
	uint64_t ccq;

	bench_up(&b, 0, 0, 0);
	line_up(&l, &b.port);
	CHECK(!ibv_destroy_qp(l.to));
	l.to = qp_make(&l, IBV_QPT_RC);
	pair_up(&b, &d, &l);
	queue_run(&b, &d, 100);
	await(get(&b, events) == 1);
	CHECK(get(&b, qpn) == d.q.number && get(&b, of_type[TX]) == 1 && get(&b, packets) == 1);
	CHECK(get(&b, bytes) > 100 && get(&b, bytes) < 100 + PACKET);
	ccq = get(&b, ccq);
	for (unsigned i = 0; i < 2; i++) {
		double per_ns = megabytes[i] / 1000;
		uint64_t ns = 0;

		CHECK(!call(b.p, &ring, ccq, rate_of(megabytes[i]), 0, NEXT_NONE));
		CHECK(call(b.p, &rate_of_flow, ccq, 0, 0, 0) == rate_of(megabytes[i]));
		queue_run(&b, &d, 20000);
		for (unsigned n = 0; n < 3; n++)
			ns += queue_run(&b, &d, 100000);
		CHECK_SAY((double)ns * per_ns > 0.97 * (300000 - per_ns * 1.1e6 - 2 * 4096),
			  "%g MB/s: %lu ns", megabytes[i], (unsigned long)ns);
	}
	CHECK(!call(b.p, &ring, ccq, RATE_MAX, 0, NEXT_MULTIPLE));
	queue_run(&b, &d, 1000);
	CHECK(!memcmp(l.memory, "\x5a\x5a\x5a\x5a", 4) && l.memory[99999] == 0x5a &&
	      !l.memory[100000]);
	await(get(&b, events) >= 2);
	queue_down(&b, &d);
	line_down(&l);
	bench_down(&b);
}

/* Frames of a send queue are no flow: they make no event, and wait for nothing. */
static void frames(void)
{
	struct flexio_wq_attr attr = {.log_wq_depth = LOG_DEPTH};
	uint8_t header[14] = {0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02, 1, 1, 1, 1, 1, 0x88, 0xb5};
	struct dpa_queue d;
	struct bench b;
	uint64_t begin;

	bench_up(&b, 1, 0, NEXT_MULTIPLE);
	queue_memory(&b, &d);
	attr.uar_id = uar_of(&b);
	attr.wq_ring_qmem.daddr = d.q.ring;
	OK(flexio_sq_create(b.p, NULL, flexio_cq_get_cq_num(d.cq), &attr, &d.sq));
	d.q.number = flexio_sq_get_wq_num(d.sq);
	OK(flexio_host2dev_memcpy(b.p, header, sizeof(header), d.q.data));
	queue_ready(&b, &d);
	/* A flow is told of with its first packet. */
	queue_run(&b, &d, FRAME);
	usleep(STILL_US);
	CHECK(!get(&b, events));
	begin = device_now_ns();
	for (unsigned i = 0; i < FRAMES; i++) {
		queue_run(&b, &d, FRAME);
		/* At the rate that flows have here all would take 170 s. */
		CHECK(device_now_ns() - begin < 100ull * NS);
	}
	usleep(STILL_US);
	CHECK(!get(&b, events));
	queue_down(&b, &d);
	bench_down(&b);
}

const struct host_case queue_cases[] = {
	{"queue_pair", queue_pair},
	{"frames", frames},
	{NULL, NULL},
};
