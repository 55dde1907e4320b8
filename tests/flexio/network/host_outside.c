// SPDX-License-Identifier: BSD-2-Clause
/* Rings and doorbell records in memory of the host, at places that are no beginning of a page. */
#include <stdlib.h>
#include <string.h>

#include "host.h"

#define RQ_AT	     (4096u + 64)
#define RQ_RECORD_AT (8192u + 24)
#define SQ_AT	     (12288u + 192)
#define BYTES	     700u

void outside_up(struct outside *o, struct bench *b)
{
	o->area = aligned_alloc(4096, OUTSIDE_BYTES);
	CHECK(o->area);
	memset(o->area, 0, OUTSIDE_BYTES);
	o->umem = mlx5dv_devx_umem_reg(b->ctx, o->area, OUTSIDE_BYTES, IBV_ACCESS_LOCAL_WRITE);
	o->mr = ibv_reg_mr(b->pd, o->area, OUTSIDE_BYTES, IBV_ACCESS_LOCAL_WRITE);
	CHECK(o->umem && o->mr);
	OK(flexio_window_create(b->p, b->pd, &o->window));
}

void outside_down(struct outside *o)
{
	OK(flexio_window_destroy(o->window));
	CHECK(!ibv_dereg_mr(o->mr) && !mlx5dv_devx_umem_dereg(o->umem));
	free(o->area);
}

struct flexio_qmem outside_at(const struct outside *o, uint64_t offset)
{
	return (struct flexio_qmem){.memtype = FLEXIO_MEMTYPE_HOST,
				    .umem_id = o->umem->umem_id,
				    .humem_offset = offset};
}

void outside_record(const struct outside *o, uint64_t offset, uint32_t value)
{
	__atomic_store_n((uint32_t *)(void *)(o->area + offset), htobe32(value), __ATOMIC_RELEASE);
}

void outside_requests(const struct outside *o, struct request *r, uint64_t offset)
{
	r->ring = (uintptr_t)o->area + offset;
	r->window = flexio_window_get_id(o->window);
	r->window_key = o->mr->lkey;
}

static void receives(struct bench *b, const struct outside *o, struct raw_peer *peer)
{
	struct completion c;

	for (unsigned i = 0; i < DEPTH; i++)
		mlx5dv_set_data_seg((void *)(o->area + RQ_AT + 16 * i), SLOT_BYTES,
				    flexio_mkey_get_id(b->in.key), b->in.data + i * SLOT_BYTES);
	b->rq_attr.wq_ring_qmem = outside_at(o, RQ_AT);
	b->rq_attr.wq_dbr_qmem = outside_at(o, RQ_RECORD_AT);
	OK(flexio_rq_create(b->p, NULL, b->in.cqn, &b->rq_attr, &b->in.rq));
	rule_up(b, &b->rule, flexio_rq_get_tir(b->in.rq));
	for (unsigned i = 0; i < 3 * DEPTH; i++) {
		/* each frame finds the one receive that there is */
		outside_record(o, RQ_RECORD_AT, i + 1);
		raw_peer_send(peer, BYTES, (uint8_t)(i + 1));
		cq_next(b, &b->in, &c);
		CHECK(c.opcode == 2 && c.bytes == BYTES && c.counter == i);
		CHECK(call1(b->p, &peek, b->in.data + i % DEPTH * SLOT_BYTES + 32) ==
		      0x0101010101010101u * (i + 1));
	}
}

static void sends(struct bench *b, const struct outside *o, struct raw_peer *peer)
{
	struct request r = {.ce = 2, .kind = REQUEST_SEND, .data = b->out.data, .bytes = BYTES};
	uint8_t frame[BYTES];
	struct completion c;

	b->sq_attr.wq_ring_qmem = outside_at(o, SQ_AT);
	OK(flexio_sq_create(b->p, NULL, b->out.cqn, &b->sq_attr, &b->out.sq));
	r.sqn = flexio_sq_get_wq_num(b->out.sq);
	r.key = flexio_mkey_get_id(b->out.key);
	outside_requests(o, &r, SQ_AT);
	for (unsigned i = 0; i < 3 * DEPTH; i++) {
		raw_frame(frame, PEER_MAC, DPA_MAC, BYTES, (uint8_t)i);
		OK(flexio_host2dev_memcpy(b->p, frame, BYTES, b->out.data));
		requests(b, &r, 1);
		raw_peer_expect(peer, BYTES, (uint8_t)i);
		cq_next(b, &b->out, &c);
		CHECK(c.opcode == 0 && c.counter == i);
	}
}

static void outside(void)
{
	struct raw_peer *peer = raw_peer_make();
	struct outside o;
	struct bench b;

	bench_up(&b);
	outside_up(&o, &b);
	ring_memory(&b, &b.in, false);
	ring_memory(&b, &b.out, false);
	receives(&b, &o, peer);
	sends(&b, &o, peer);
	/* it is not taken away from queues that are there */
	CHECK(mlx5dv_devx_umem_dereg(o.umem));
	raw_peer_free(peer);
	rule_down(&b.rule);
	ring_down(&b, &b.in);
	ring_down(&b, &b.out);
	b.in.cq = b.out.cq = NULL;
	outside_down(&o);
	bench_down(&b);
}

const struct host_case outside_cases[] = {
	{"outside", outside},
	{NULL, NULL},
};
