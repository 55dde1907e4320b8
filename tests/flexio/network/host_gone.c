// SPDX-License-Identifier: BSD-2-Clause
/*
 * Queues that go while device code posts to them, rings and arms them, by their numbers and by those of the queues
 * before them; and queues whose memory is freed under them.
 */
#include <string.h>
#include <unistd.h>

#include "host.h"

#define ROUNDS	    400u /* so many that numbers come again */
#define FRAMES_EACH 16u	 /* rounds from one frame of the peer to the next */
#define BYTES	    100u
#define RIGHTS	    (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE)
#define GUARD_BYTES 64u
#define GUARD	    0xa5u
#define CQ_BYTES    (64u << LOG_DEPTH)
#define SQ_BYTES    (64u << LOG_DEPTH)
#define RQ_BYTES    (16u << LOG_DEPTH)

/* One block, where each part has a guard in front of it and behind it. */
enum {
	CQ_AT = GUARD_BYTES,
	SQ_AT = CQ_AT + CQ_BYTES + GUARD_BYTES,
	RQ_AT = SQ_AT + SQ_BYTES + GUARD_BYTES,
	QP_AT = RQ_AT + RQ_BYTES + GUARD_BYTES,
	RECORDS_AT = QP_AT + RQ_BYTES + SQ_BYTES + GUARD_BYTES,
	DATA_AT = RECORDS_AT + 64 + GUARD_BYTES,
	REMOTE_AT = DATA_AT + 128 + GUARD_BYTES,
	AREA_BYTES = REMOTE_AT + 128 + GUARD_BYTES,
};

static const struct {
	uint32_t at, bytes;
} parts[] = {
	{CQ_AT, CQ_BYTES}, {SQ_AT, SQ_BYTES}, {RQ_AT, RQ_BYTES}, {QP_AT, RQ_BYTES + SQ_BYTES},
	{RECORDS_AT, 64},  {DATA_AT, 128},    {REMOTE_AT, 128},
};

/* The records of the queues, in their part. */
#define CQ_RECORD (RECORDS_AT + 0u)
#define RQ_RECORD (RECORDS_AT + 16u)
#define QP_RECORD (RECORDS_AT + 32u)

struct gone {
	struct bench b;
	uint64_t area, h;
	struct flexio_mkey *key;
	struct flexio_event_handler *eh;
	struct flexio_cq *cq, *start; /* start: the queue that sets the handler going */
	struct flexio_sq *sq;
	struct flexio_rq *rq;
	struct flexio_qp *qp;
	uint32_t cqn, sqn, qpn;
};

static uint64_t call3(struct gone *g, flexio_func_t *f, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t value = UINT64_MAX;

	OK(flexio_process_call(g->b.p, f, &value, a, b, c));
	return value;
}

#define hammer_set(g, field, value) \
	call3((g), &poke, (g)->h + offsetof(struct hammer, field), (value), 0)
#define hammer_get(g, field) call1((g)->b.p, &peek, (g)->h + offsetof(struct hammer, field))

static void hammer_await(struct gone *g, uint64_t turns)
{
	uint64_t end = hammer_get(g, turns) + turns;

	while (hammer_get(g, turns) < end)
		usleep(100);
}

static void guards_check(struct gone *g)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		uint64_t before = g->area + parts[i].at - GUARD_BYTES;
		uint64_t behind = g->area + parts[i].at + parts[i].bytes;

		CHECK(call3(g, &same_bytes, before, GUARD_BYTES, GUARD) == GUARD_BYTES);
		CHECK(call3(g, &same_bytes, behind, GUARD_BYTES, GUARD) == GUARD_BYTES);
	}
}

static void cq_make(struct gone *g)
{
	struct flexio_cq_attr attr = {
		.log_cq_depth = LOG_DEPTH,
		.element_type = FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ,
		.uar_id = g->b.sq_attr.uar_id,
		.overrun_ignore = 1,
		.cq_ring_qmem.daddr = g->area + CQ_AT,
		.cq_dbr_daddr = g->area + CQ_RECORD,
	};

	OK(flexio_buf_dev_memset(g->b.p, 0xff, CQ_BYTES, g->area + CQ_AT));
	OK(flexio_cq_create(g->b.p, NULL, &attr, &g->cq));
	g->cqn = flexio_cq_get_cq_num(g->cq);
	hammer_set(g, cqn, g->cqn);
}

/* A queue pair that is its own peer, by the port's own address. */
static void qp_join(struct gone *g)
{
	union ibv_gid gid;
	uint8_t mac[6];

	CHECK(!ibv_query_gid(g->b.ctx, 1, 1, &gid));
	for (unsigned i = 0; i < 6; i++)
		mac[i] = gid.raw[8 + i + (i >= 3 ? 2 : 0)];
	mac[0] ^= 2;
	for (int s = FLEXIO_QP_STATE_INIT; s <= FLEXIO_QP_STATE_RTS; s++) {
		struct flexio_qp_attr attr = {
			.next_state = (enum flexio_qp_state)s,
			.qp_access_mask = RIGHTS,
			.remote_qp_num = g->qpn,
			.gid_table_index = 1,
			.rgid_or_rip = gid,
			.dest_mac = mac,
			.udp_sport = 0xc123,
			.fl = 1,
			.path_mtu = FLEXIO_QP_QPC_MTU_BYTES_1K,
			.retry_count = 7,
			.vhca_port_num = 1,
			.next_rcv_psn = 100,
			.next_send_psn = 100,
		};

		OK(flexio_qp_modify(g->qp, &attr, NULL));
	}
}

static void queues_make(struct gone *g)
{
	struct flexio_qp_attr attr = {
		.transport_type = FLEXIO_QPC_ST_UC,
		.uar_id = g->b.sq_attr.uar_id,
		.log_sq_depth = LOG_DEPTH,
		.log_rq_depth = LOG_DEPTH,
		.qp_wq_buff_qmem.daddr = g->area + QP_AT,
		.qp_wq_dbr_qmem.daddr = g->area + QP_RECORD,
	};

	cq_make(g);
	g->b.rq_attr.wq_ring_qmem.daddr = g->area + RQ_AT;
	g->b.rq_attr.wq_dbr_qmem.daddr = g->area + RQ_RECORD;
	OK(flexio_rq_create(g->b.p, NULL, g->cqn, &g->b.rq_attr, &g->rq));
	g->b.sq_attr.wq_ring_qmem.daddr = g->area + SQ_AT;
	OK(flexio_sq_create(g->b.p, NULL, g->cqn, &g->b.sq_attr, &g->sq));
	g->sqn = flexio_sq_get_wq_num(g->sq);
	attr.sq_cqn = attr.rq_cqn = g->cqn;
	OK(flexio_qp_create(g->b.p, NULL, &attr, &g->qp));
	g->qpn = flexio_qp_get_qp_num(g->qp);
	qp_join(g);
	hammer_set(g, sqn, g->sqn);
	hammer_set(g, qpn, g->qpn);
}

/* The numbers stay with the handler; the order changes with the round. */
static void queues_drop(struct gone *g, unsigned round)
{
	for (unsigned i = 0; i < 3; i++)
		switch ((round + i) % 3) {
		case 0:
			OK(flexio_sq_destroy(g->sq));
			break;
		case 1:
			OK(flexio_qp_destroy(g->qp));
			break;
		default:
			OK(flexio_rq_destroy(g->rq));
		}
	OK(flexio_cq_destroy(g->cq));
	hammer_set(g, old_sqn, g->sqn);
	hammer_set(g, old_qpn, g->qpn);
	hammer_set(g, old_cqn, g->cqn);
}

/* How many completions the ring has; all are of the queues that there are. */
static unsigned completions_check(struct gone *g)
{
	unsigned n = 0;

	for (unsigned i = 0; i < DEPTH; i++) {
		uint64_t last = call1(g->b.p, &peek, g->area + CQ_AT + 64ul * i + 56);
		uint32_t number = __builtin_bswap32((uint32_t)last) & 0xffffff;

		if (last == UINT64_MAX)
			continue;
		n++;
		CHECK_SAY(number == g->sqn || number == g->qpn, "0x%x, not 0x%x or 0x%x", number,
			  g->sqn, g->qpn);
	}
	return n;
}

static void gone_up(struct gone *g)
{
	static const char to[] = "\x02\x99\x99\x99\x99\x99";
	struct flexio_event_handler_attr handler = {.host_stub_func = &hammer};
	struct flexio_mkey_attr key = {.access = RIGHTS};
	uint8_t frame[BYTES];
	flexio_uintptr_t at;
	struct hammer h;

	memset(g, 0, sizeof(*g));
	bench_up(&g->b);
	reflector_up(&g->b);
	OK(flexio_buf_dev_alloc(g->b.p, AREA_BYTES, &at));
	g->area = at;
	OK(flexio_buf_dev_memset(g->b.p, GUARD, AREA_BYTES, at));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		OK(flexio_buf_dev_memset(g->b.p, 0, parts[i].bytes, at + parts[i].at));
	/* to nobody: what the peer gets is the reflector's */
	raw_frame(frame, to, DPA_MAC, BYTES, 7);
	OK(flexio_host2dev_memcpy(g->b.p, frame, BYTES, at + DATA_AT));
	key.pd = g->b.pd;
	key.daddr = at + DATA_AT;
	key.len = REMOTE_AT + 128 - DATA_AT;
	OK(flexio_device_mkey_create(g->b.p, &key, &g->key));
	h = (struct hammer){
		.sq_ring = at + SQ_AT,
		.qp_ring = at + QP_AT + RQ_BYTES,
		.rq_record = at + RQ_RECORD,
		.data = at + DATA_AT,
		.bytes = BYTES,
		.key = flexio_mkey_get_id(g->key),
		.remote = at + REMOTE_AT,
	};
	OK(flexio_copy_from_host(g->b.p, &h, sizeof(h), &at));
	g->h = at;
	OK(flexio_event_handler_create(g->b.p, &handler, &g->eh));
}

/* The handler begins with the first completion of a queue of its own, which stays. */
static void hammer_start(struct gone *g)
{
	struct flexio_cq_attr attr = {
		.log_cq_depth = LOG_DEPTH,
		.element_type = FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD,
		.thread = flexio_event_handler_get_thread(g->eh),
		.uar_id = g->b.sq_attr.uar_id,
	};
	struct request r = {.ce = 2, .kind = REQUEST_NOP};
	flexio_uintptr_t ring, record;
	struct flexio_sq *sq;

	OK(flexio_buf_dev_alloc(g->b.p, CQ_BYTES, &ring));
	OK(flexio_buf_dev_memset(g->b.p, 0xff, CQ_BYTES, ring));
	OK(flexio_buf_dev_alloc(g->b.p, 8, &record));
	OK(flexio_buf_dev_memset(g->b.p, 0, 8, record));
	attr.cq_ring_qmem.daddr = ring;
	attr.cq_dbr_daddr = record;
	OK(flexio_event_handler_run(g->eh, g->h));
	OK(flexio_cq_create(g->b.p, NULL, &attr, &g->start));
	OK(flexio_buf_dev_alloc(g->b.p, SQ_BYTES, &ring));
	g->b.sq_attr.wq_ring_qmem.daddr = ring;
	OK(flexio_sq_create(g->b.p, NULL, flexio_cq_get_cq_num(g->start), &g->b.sq_attr, &sq));
	r.ring = ring;
	r.sqn = flexio_sq_get_wq_num(sq);
	requests(&g->b, &r, 1);
	hammer_await(g, 1);
	OK(flexio_sq_destroy(sq));
}

static void gone_down(struct gone *g)
{
	OK(flexio_device_mkey_destroy(g->key));
	OK(flexio_cq_destroy(g->start));
	OK(flexio_event_handler_destroy(g->eh));
	bench_down(&g->b);
}

/* The last queues do what queues do, with nobody who disturbs them. */
static void last_work(struct gone *g)
{
	struct completion c;
	struct request r = {
		.sqn = g->sqn,
		.ring = g->area + SQ_AT,
		.ce = 2,
		.data = g->area + DATA_AT,
		.bytes = BYTES,
		.key = flexio_mkey_get_id(g->key),
	};
	struct ring in = {.cq_ring = g->area + CQ_AT};

	for (unsigned i = 0; i < 2 * DEPTH; i++) {
		requests(&g->b, &r, 1);
		cq_next(&g->b, &in, &c);
		CHECK(!c.opcode && c.counter == i && c.qpn == g->sqn);
	}
	r = (struct request){.sqn = g->qpn,
			     .ring = g->area + QP_AT + RQ_BYTES,
			     .ce = 2,
			     .kind = REQUEST_WRITE,
			     .data = g->area + DATA_AT,
			     .bytes = BYTES,
			     .key = r.key,
			     .remote = g->area + REMOTE_AT,
			     .remote_key = r.key};
	OK(flexio_buf_dev_memset(g->b.p, 0, BYTES, g->area + REMOTE_AT));
	requests(&g->b, &r, 1);
	cq_next(&g->b, &in, &c);
	CHECK(!c.opcode && c.qpn == g->qpn);
	CHECK(call1(g->b.p, &peek, g->area + REMOTE_AT + 64) ==
	      call1(g->b.p, &peek, g->area + DATA_AT + 64));
}

static void gone(void)
{
	struct raw_peer *peer = raw_peer_make();
	unsigned frames = 0, again = 0;
	uint32_t first = 0;
	struct gone g;

	gone_up(&g);
	hammer_start(&g);
	for (unsigned round = 0; round < ROUNDS; round++) {
		queues_make(&g);
		if (!round)
			hammer_set(&g, first, first = g.sqn);
		else
			again += g.sqn == first || g.qpn == first ||
				 flexio_rq_get_wq_num(g.rq) == first;
		while (!completions_check(&g))
			usleep(100);
		completions_check(&g);
		queues_drop(&g, round);
		/* what has gone writes no more */
		OK(flexio_buf_dev_memset(g.b.p, 0xff, CQ_BYTES, g.area + CQ_AT));
		hammer_await(&g, 2);
		CHECK(call3(&g, &same_bytes, g.area + CQ_AT, CQ_BYTES, 0xff) == CQ_BYTES);
		if (round % FRAMES_EACH)
			continue;
		guards_check(&g);
		raw_peer_send(peer, BYTES, (uint8_t)round);
		raw_peer_expect(peer, BYTES, (uint8_t)round);
		network_await(&g.b, frames, ++frames);
	}
	hammer_set(&g, stop, 1);
	word_await(g.b.p, g.h + offsetof(struct hammer, finished), 1);
	CHECK(again && !network_get(&g.b, errors));
	queues_make(&g);
	last_work(&g);
	queues_drop(&g, 0);
	guards_check(&g);
	raw_peer_free(peer);
	gone_down(&g);
}

/* ---- memory that is freed ---- */

#define BLOCKS 4096u

/* Somebody else's block at that place, among others that are full of guard bytes. */
static void block_take(struct gone *g, uint64_t at, uint32_t bytes)
{
	flexio_uintptr_t block = 0;

	for (unsigned i = 0; i < BLOCKS && block != at; i++) {
		OK(flexio_buf_dev_alloc(g->b.p, bytes, &block));
		OK(flexio_buf_dev_memset(g->b.p, block == at ? 0xff : GUARD, bytes, block));
	}
	CHECK(block == at);
}

/* A queue knows addresses, not blocks: it goes on in its place, whoever has that, and nowhere else. */
static void freed(void)
{
	struct completion c;
	struct request r = {.ce = 2, .kind = REQUEST_NOP};
	struct ring in = {0};
	struct gone g;

	gone_up(&g);
	queues_make(&g);
	r.sqn = g.sqn;
	r.ring = g.area + SQ_AT;
	in.cq_ring = g.area + CQ_AT;
	requests(&g.b, &r, 1);
	cq_next(&g.b, &in, &c);
	CHECK(!c.opcode && c.qpn == g.sqn);
	OK(flexio_device_mkey_destroy(g.key));
	OK(flexio_buf_dev_free(g.b.p, g.area));
	FAILS(flexio_buf_dev_free(g.b.p, g.area));
	requests(&g.b, &r, 1);
	cq_next(&g.b, &in, &c);
	CHECK(!c.opcode && c.counter == 1);
	block_take(&g, g.area, AREA_BYTES);
	requests(&g.b, &r, 1);
	cq_next(&g.b, &in, &c);
	CHECK(!c.opcode && c.counter == 2);
	/* one entry of the ring, and nothing beside it */
	CHECK(call3(&g, &same_bytes, g.area, CQ_AT + 128, 0xff) == CQ_AT + 128);
	CHECK(call3(&g, &same_bytes, g.area + CQ_AT + 192, SQ_AT - CQ_AT - 192, 0xff) ==
	      SQ_AT - CQ_AT - 192);
	CHECK(call3(&g, &same_bytes, g.area + RQ_AT, AREA_BYTES - RQ_AT, 0xff) ==
	      AREA_BYTES - RQ_AT);
	queues_drop(&g, 0);
	OK(flexio_buf_dev_memset(g.b.p, 0xff, AREA_BYTES, g.area));
	requests(&g.b, &r, 0);
	CHECK(call3(&g, &same_bytes, g.area, AREA_BYTES, 0xff) == AREA_BYTES);
	CHECK(!network_get(&g.b, errors));
	OK(flexio_buf_dev_free(g.b.p, g.area));
	OK(flexio_event_handler_destroy(g.eh));
	bench_down(&g.b);
}

const struct host_case gone_cases[] = {
	{"gone", gone},
	{"freed", freed},
	{NULL, NULL},
};
