// SPDX-License-Identifier: BSD-2-Clause
/* Queue pairs: a pair of one process that is connected with itself. */
#include <stdlib.h>
#include <string.h>

#include "host.h"

#define SEND_ERROR     13u
#define FLUSHED	       0x05u
#define REMOTE_INVALID 0x12u
#define RQ_BYTES       (16u << LOG_DEPTH)
#define RIGHTS	       (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE)

struct pair {
	struct bench b;
	struct ring end[2];
	struct flexio_qp *qp[2];
	uint32_t qpn[2];
	uint64_t rings[2];
	uint16_t lid;
	struct outside outside; /* if it has an area, with rings and records */
	struct flexio_rmp *rmp;
};

/* Where they lie in the host's memory, and those of the pool. */
#define RINGS_AT(i)  (4096u * (1 + (i)) + 64)
#define RECORD_AT(i) (16u + 8 * (i))
#define POOL_AT	     (12288u + 128)
#define POOL_RECORD  32u
#define ENTRY_BYTES  32u

static struct flexio_qp_attr qp_attr_of(struct pair *p, unsigned i)
{
	struct flexio_qp_attr attr = {
		.transport_type = FLEXIO_QPC_ST_RC,
		.uar_id = p->b.sq_attr.uar_id,
		.user_index = USER_INDEX,
		.log_sq_depth = LOG_DEPTH,
		.sq_cqn = p->end[i].cqn,
		.log_rq_depth = LOG_DEPTH,
		.rq_cqn = p->end[i].cqn,
		.qp_wq_buff_qmem.daddr = p->rings[i],
		.qp_wq_dbr_qmem.daddr = p->end[i].record,
	};

	if (p->outside.area) {
		attr.qp_wq_buff_qmem = outside_at(&p->outside, RINGS_AT(i));
		attr.qp_wq_dbr_qmem = outside_at(&p->outside, RECORD_AT(i));
	}
	if (p->rmp) {
		attr.rq_type = FLEXIO_QP_QPC_RQ_TYPE_SRQ_RMP_XRC_SRQ_XRQ;
		attr.rmpqn = flexio_rmp_get_wq_num(p->rmp);
	}
	return attr;
}

static void end_up(struct pair *p, unsigned i)
{
	struct flexio_qp_attr attr;

	ring_memory(&p->b, &p->end[i], false);
	OK(flexio_buf_dev_alloc(p->b.p, RQ_BYTES + (64u << LOG_DEPTH), &p->rings[i]));
	attr = qp_attr_of(p, i);
	OK(flexio_qp_create(p->b.p, NULL, &attr, &p->qp[i]));
	p->qpn[i] = flexio_qp_get_qp_num(p->qp[i]);
	CHECK(p->qpn[i] && p->qpn[i] < 1u << 24);
	CHECK(flexio_qp_state_get(p->qp[i]) == FLEXIO_QP_STATE_RST);
}

static void pair_open(struct pair *p)
{
	struct ibv_port_attr port;

	memset(p, 0, sizeof(*p));
	bench_up_on(&p->b, IBV_LINK_LAYER_INFINIBAND);
	CHECK(!ibv_query_port(p->b.ctx, 1, &port));
	p->lid = port.lid;
}

static void pair_up(struct pair *p)
{
	pair_open(p);
	for (unsigned i = 0; i < 2; i++)
		end_up(p, i);
}

static void pair_down(struct pair *p)
{
	for (unsigned i = 0; i < 2; i++) {
		OK(flexio_qp_destroy(p->qp[i]));
		ring_down(&p->b, &p->end[i]);
		OK(flexio_buf_dev_free(p->b.p, p->rings[i]));
	}
	if (p->rmp)
		OK(flexio_rmp_destroy(p->rmp));
	if (p->outside.area)
		outside_down(&p->outside);
	bench_down(&p->b);
}

static struct flexio_qp_attr step(const struct pair *p, unsigned i, enum flexio_qp_state next,
				  int rights)
{
	return (struct flexio_qp_attr){
		.next_state = next,
		.qp_access_mask = rights,
		.remote_qp_num = p->qpn[!i],
		.rlid = p->lid,
		.fl = 1,
		.path_mtu = FLEXIO_QP_QPC_MTU_BYTES_1K,
		.min_rnr_nak_timer = 0x12,
		.retry_count = 7,
		.vhca_port_num = 1,
		.next_rcv_psn = 100 + !i,
		.next_send_psn = 100 + i,
	};
}

/* To that state, from RST on. */
static void end_to(struct pair *p, unsigned i, enum flexio_qp_state last, int rights)
{
	for (int s = FLEXIO_QP_STATE_INIT; s <= (int)last; s++) {
		struct flexio_qp_attr attr = step(p, i, (enum flexio_qp_state)s, rights);

		OK(flexio_qp_modify(p->qp[i], &attr, NULL));
		CHECK(flexio_qp_state_get(p->qp[i]) == (enum flexio_qp_state)s);
	}
}

/* The first writes bytes of its memory there; the syndrome of its completion, 0 for success. */
static uint32_t write_to(struct pair *p, struct request *r, uint64_t remote, uint32_t key)
{
	struct completion c;

	*r = (struct request){
		.sqn = p->qpn[0],
		.ring = p->rings[0] + RQ_BYTES,
		.pi = r->pi,
		.ce = 2,
		.kind = REQUEST_WRITE,
		.data = p->end[0].data,
		.bytes = 1500,
		.key = flexio_mkey_get_id(p->end[0].key),
		.remote = remote,
		.remote_key = key,
	};
	requests(&p->b, r, 1);
	cq_next(&p->b, &p->end[0], &c);
	CHECK(c.qpn == p->qpn[0]);
	return c.opcode == SEND_ERROR ? c.syndrome : 0;
}

static void pair(void)
{
	static uint8_t memory[SLOT_BYTES];
	uint8_t bytes[1500];
	struct request r = {0};
	struct ibv_mr *mr;
	struct pair p;

	pair_up(&p);
	for (unsigned i = 0; i < 2; i++)
		end_to(&p, i, FLEXIO_QP_STATE_RTS, RIGHTS);
	mr = ibv_reg_mr(p.b.pd, memory, sizeof(memory), RIGHTS);
	CHECK(mr);
	/* several times around the ring */
	for (unsigned n = 0; n < 3 * DEPTH; n++) {
		memset(bytes, (int)n + 1, sizeof(bytes));
		OK(flexio_host2dev_memcpy(p.b.p, bytes, sizeof(bytes), p.end[0].data));
		CHECK(!write_to(&p, &r, p.end[1].data, flexio_mkey_get_id(p.end[1].key)));
		CHECK(call1(p.b.p, &peek, p.end[1].data + 1488) == 0x0101010101010101u * (n + 1));
		CHECK(!write_to(&p, &r, (uintptr_t)memory, mr->rkey));
		CHECK(!memcmp(memory, bytes, sizeof(bytes)));
	}
	CHECK(!ibv_dereg_mr(mr));
	pair_down(&p);
}

/* ---- rings and records of the host's ---- */

/* A list of receives, which goes round. */
static void pool_up(struct pair *p)
{
	struct flexio_wq_attr attr = {
		.log_wq_stride = 5,
		.log_wq_depth = LOG_DEPTH,
		.rq.wq_type = FLEXIO_WQ_TYPE_LINKED_LIST,
		.wq_ring_qmem = outside_at(&p->outside, POOL_AT),
		.wq_dbr_qmem = outside_at(&p->outside, POOL_RECORD),
	};

	for (unsigned i = 0; i < DEPTH; i++)
		p->outside.area[POOL_AT + ENTRY_BYTES * i + 3] = (uint8_t)((i + 1) % DEPTH);
	OK(flexio_rmp_create(p->b.p, NULL, &attr, &p->rmp));
}

/* The receive of that number, at its place of the queue or of the list. */
static void receive_outside(struct pair *p, unsigned n)
{
	unsigned slot = n % DEPTH;
	uint32_t at = p->rmp ? POOL_AT + ENTRY_BYTES * slot + 16 : RINGS_AT(1) + 16 * slot;

	mlx5dv_set_data_seg((void *)(p->outside.area + at), SLOT_BYTES,
			    flexio_mkey_get_id(p->end[1].key), p->end[1].data + slot * SLOT_BYTES);
	outside_record(&p->outside, p->rmp ? POOL_RECORD : RECORD_AT(1), n + 1);
}

static void messages_outside(struct pair *p)
{
	struct request r = {.sqn = p->qpn[0],
			    .ce = 2,
			    .kind = REQUEST_MESSAGE,
			    .data = p->end[0].data,
			    .bytes = 1500,
			    .key = flexio_mkey_get_id(p->end[0].key)};
	uint8_t bytes[1500];
	struct completion c;

	outside_requests(&p->outside, &r, RINGS_AT(0) + RQ_BYTES * !p->rmp);
	for (unsigned n = 0; n < 3 * DEPTH; n++) {
		memset(bytes, (int)n + 1, sizeof(bytes));
		OK(flexio_host2dev_memcpy(p->b.p, bytes, sizeof(bytes), p->end[0].data));
		receive_outside(p, n);
		outside_record(&p->outside, RECORD_AT(0) + 4, n + 1);
		requests(&p->b, &r, 1);
		cq_next(&p->b, &p->end[1], &c);
		CHECK(c.opcode == 2 && c.bytes == 1500 && c.counter == (p->rmp ? n % DEPTH : n));
		CHECK(call1(p->b.p, &peek, p->end[1].data + n % DEPTH * SLOT_BYTES + 1488) ==
		      0x0101010101010101u * (n + 1));
		cq_next(&p->b, &p->end[0], &c);
		CHECK(c.opcode == 0 && c.counter == n);
	}
}

static void pair_outside(void)
{
	for (unsigned pooled = 0; pooled < 2; pooled++) {
		struct pair p;

		pair_open(&p);
		outside_up(&p.outside, &p.b);
		if (pooled)
			pool_up(&p);
		for (unsigned i = 0; i < 2; i++)
			end_up(&p, i);
		for (unsigned i = 0; i < 2; i++)
			end_to(&p, i, FLEXIO_QP_STATE_RTS, RIGHTS);
		messages_outside(&p);
		pair_down(&p);
	}
}

static void pair_rights(void)
{
	struct flexio_qp_attr_opt_param_mask mask = {.qp_access_mask = true};
	struct flexio_qp_attr attr;
	struct request r = {0};
	struct pair p;

	pair_up(&p);
	end_to(&p, 0, FLEXIO_QP_STATE_RTS, RIGHTS);
	end_to(&p, 1, FLEXIO_QP_STATE_RTS, 0);
	/* named by the mask they change, and without it they stay */
	attr = step(&p, 1, FLEXIO_QP_STATE_RTS, RIGHTS);
	OK(flexio_qp_modify(p.qp[1], &attr, &mask));
	CHECK(!write_to(&p, &r, p.end[1].data, flexio_mkey_get_id(p.end[1].key)));
	attr.qp_access_mask = 0;
	OK(flexio_qp_modify(p.qp[1], &attr, NULL));
	CHECK(!write_to(&p, &r, p.end[1].data, flexio_mkey_get_id(p.end[1].key)));
	OK(flexio_qp_modify(p.qp[1], &attr, &mask));
	CHECK(write_to(&p, &r, p.end[1].data, flexio_mkey_get_id(p.end[1].key)) == REMOTE_INVALID);
	CHECK(flexio_qp_state_get(p.qp[0]) == FLEXIO_QP_STATE_ERR);
	pair_down(&p);
}

static void pair_states(void)
{
	static const enum flexio_qp_state states[] = {FLEXIO_QP_STATE_RST, FLEXIO_QP_STATE_INIT,
						      FLEXIO_QP_STATE_RTR, FLEXIO_QP_STATE_RTS};
	struct flexio_qp_attr attr;
	struct request r = {0};
	struct pair p;

	for (unsigned n = 0; n < 4; n++) {
		pair_up(&p);
		end_to(&p, 0, states[n], RIGHTS);
		/* over a state, and back */
		attr = step(&p, 0,
			    states[n] >= FLEXIO_QP_STATE_RTR ? FLEXIO_QP_STATE_INIT : states[n] + 2,
			    RIGHTS);
		FAILS(flexio_qp_modify(p.qp[0], &attr, NULL));
		CHECK(flexio_qp_state_get(p.qp[0]) == states[n]);
		pair_down(&p);
		r.pi = 0;
		pair_up(&p);
		end_to(&p, 0, states[n], RIGHTS);
		attr.next_state = FLEXIO_QP_STATE_ERR;
		OK(flexio_qp_modify(p.qp[0], &attr, NULL));
		CHECK(flexio_qp_state_get(p.qp[0]) == FLEXIO_QP_STATE_ERR);
		CHECK(write_to(&p, &r, p.end[1].data, 0) == FLUSHED);
		pair_down(&p);
	}
	CHECK(flexio_qp_state_get(NULL) == FLEXIO_QP_STATE_ERR);
	CHECK(flexio_qp_get_qp_num(NULL) == UINT32_MAX);
	FAILS(flexio_qp_destroy(NULL));
	FAILS(flexio_qp_modify(NULL, &attr, NULL));
}

static void qp_made(struct pair *p, const struct flexio_qp_attr *attr)
{
	struct flexio_qp_attr copy = *attr;
	struct flexio_qp *qp;

	OK(flexio_qp_create(p->b.p, NULL, &copy, &qp));
	OK(flexio_qp_destroy(qp));
}

static void qp_refused(struct pair *p, const struct flexio_qp_attr *attr)
{
	struct flexio_qp_attr copy = *attr;
	struct flexio_qp *qp = (void *)8;

	FAILS(flexio_qp_create(p->b.p, NULL, &copy, &qp));
	CHECK(!qp);
}

static void pair_kinds(void)
{
	struct flexio_heap_mem_info heap;
	struct flexio_wq_attr list;
	struct flexio_qp_attr attr;
	struct flexio_rmp *rmp;
	struct pair p;

	pair_up(&p);
	attr = qp_attr_of(&p, 0);
	attr.no_sq = 1;
	qp_made(&p, &attr);
	attr.rq_type = FLEXIO_QP_QPC_RQ_TYPE_ZERO_SIZE_RQ;
	qp_refused(&p, &attr);
	attr.no_sq = 0;
	qp_made(&p, &attr);
	list = p.b.rq_attr;
	list.wq_ring_qmem.daddr = p.end[1].ring;
	list.wq_dbr_qmem.daddr = p.end[1].record;
	OK(flexio_rmp_create(p.b.p, NULL, &list, &rmp));
	attr.rq_type = FLEXIO_QP_QPC_RQ_TYPE_SRQ_RMP_XRC_SRQ_XRQ;
	attr.rmpqn = flexio_rmp_get_wq_num(rmp);
	qp_made(&p, &attr);
	attr.rmpqn = 0xfffff1;
	qp_refused(&p, &attr);
	OK(flexio_rmp_destroy(rmp));
	attr = qp_attr_of(&p, 0);
	attr.transport_type = FLEXIO_QPC_ST_UC;
	qp_made(&p, &attr);
	attr.transport_type = FLEXIO_QPC_ST_UD;
	qp_made(&p, &attr);
	/* the others of the header, what is between them, and what is beyond */
	for (uint32_t type = FLEXIO_QPC_ST_UD + 1; type <= FLEXIO_QPC_ST_DC_CNAK + 1; type++) {
		attr.transport_type = type;
		qp_refused(&p, &attr);
	}
	attr = qp_attr_of(&p, 0);
	attr.log_sq_depth = 16;
	qp_refused(&p, &attr);
	attr = qp_attr_of(&p, 0);
	attr.qp_wq_buff_qmem.daddr = 0;
	qp_refused(&p, &attr);
	OK(flexio_process_mem_info_get(p.b.p, &heap));
	attr.qp_wq_buff_qmem.daddr = heap.base_addr + heap.size - RQ_BYTES;
	qp_refused(&p, &attr);
	attr = qp_attr_of(&p, 0);
	attr.uar_id = 0xfffff1;
	qp_refused(&p, &attr);
	pair_down(&p);
}

const struct host_case pair_cases[] = {
	{"pair", pair},
	{"pair_outside", pair_outside},
	{"pair_rights", pair_rights},
	{"pair_states", pair_states},
	{"pair_kinds", pair_kinds},
	{NULL, NULL},
};
