// SPDX-License-Identifier: BSD-2-Clause
/* What cannot be made, what stays, and tables over several queues. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "prm/cmd_qp.h"

#define FRAMES 16u

static void in_use(void)
{
	struct raw_peer *peer = raw_peer_make();
	struct bench b;

	bench_up(&b);
	reflector_up(&b);
	FAILS(flexio_cq_destroy(b.in.cq));
	FAILS(flexio_cq_destroy(b.out.cq));
	FAILS(flexio_rq_destroy(b.in.rq));
	/* all is as it was */
	raw_peer_send(peer, 100, 3);
	raw_peer_expect(peer, 100, 3);
	raw_peer_free(peer);
	bench_down(&b);
}

static void left(void)
{
	struct raw_peer *peer = raw_peer_make();
	struct bench b;

	bench_up(&b);
	reflector_up(&b);
	rule_down(&b.rule);
	OK(flexio_process_destroy(b.p));
	CHECK(!ibv_close_device(b.ctx));
	/* the rule leads to a queue that nobody has any more */
	bench_up(&b);
	reflector_up(&b);
	OK(flexio_process_destroy(b.p));
	raw_peer_send(peer, 100, 3);
	rule_down(&b.rule);
	raw_peer_send(peer, 100, 3);
	CHECK(!ibv_close_device(b.ctx));
	raw_peer_free(peer);
}

static void rq_refused(struct bench *b, struct flexio_wq_attr attr)
{
	struct flexio_rq *rq = (void *)8;

	FAILS(flexio_rq_create(b->p, NULL, b->in.cqn, &attr, &rq));
	CHECK(!rq);
}

static void sq_refused(struct bench *b, struct flexio_wq_attr attr)
{
	struct flexio_sq *sq = (void *)8;

	FAILS(flexio_sq_create(b->p, NULL, b->in.cqn, &attr, &sq));
	CHECK(!sq);
}

#define RQ_REFUSED(b, field, value)                        \
	do {                                               \
		struct flexio_wq_attr attr = (b)->rq_attr; \
		attr.field = (value);                      \
		rq_refused(b, attr);                       \
	} while (0)
#define SQ_REFUSED(b, field, value)                        \
	do {                                               \
		struct flexio_wq_attr attr = (b)->sq_attr; \
		attr.field = (value);                      \
		sq_refused(b, attr);                       \
	} while (0)

/* Rings and records that are longer than what is there, in memory of the DPA and of the host. */
static void too_small(void)
{
	uint8_t *page = aligned_alloc(4096, 4096);
	struct flexio_heap_mem_info heap;
	struct mlx5dv_devx_umem *umem;
	flexio_uintptr_t end;
	struct flexio_rq *rq;
	struct flexio_sq *sq;
	struct bench b;

	bench_up(&b);
	ring_memory(&b, &b.in, false);
	OK(flexio_process_mem_info_get(b.p, &heap));
	end = heap.base_addr + heap.size;
	b.rq_attr.wq_ring_qmem.daddr = b.sq_attr.wq_ring_qmem.daddr = b.in.ring;
	b.rq_attr.wq_dbr_qmem.daddr = b.in.record;
	RQ_REFUSED(&b, wq_ring_qmem.daddr, end - (16u << LOG_DEPTH) + 64);
	RQ_REFUSED(&b, wq_dbr_qmem.daddr, end);
	SQ_REFUSED(&b, wq_ring_qmem.daddr, end - (64u << LOG_DEPTH) + 64);
	umem = page ? mlx5dv_devx_umem_reg(b.ctx, page, 4096, IBV_ACCESS_LOCAL_WRITE) : NULL;
	CHECK(umem);
	b.rq_attr.wq_ring_qmem = b.sq_attr.wq_ring_qmem =
		(struct flexio_qmem){.memtype = FLEXIO_MEMTYPE_HOST, .umem_id = umem->umem_id};
	RQ_REFUSED(&b, wq_ring_qmem.humem_offset, 4096 - (16u << LOG_DEPTH) + 64);
	SQ_REFUSED(&b, wq_ring_qmem.humem_offset, 4096 - (64u << LOG_DEPTH) + 64);
	/* as much as there is */
	b.rq_attr.wq_ring_qmem.humem_offset = 4096 - (16u << LOG_DEPTH);
	b.sq_attr.wq_ring_qmem.humem_offset = 4096 - (64u << LOG_DEPTH);
	OK(flexio_rq_create(b.p, NULL, b.in.cqn, &b.rq_attr, &rq));
	OK(flexio_sq_create(b.p, NULL, b.in.cqn, &b.sq_attr, &sq));
	OK(flexio_rq_destroy(rq));
	OK(flexio_sq_destroy(sq));
	CHECK(!mlx5dv_devx_umem_dereg(umem));
	bench_down(&b);
	free(page);
}

/*
 * Rings in a buffer that ends 64 bytes before them: they are made, as on a card, which does not know of buffers.
 * And rings that the buffer is just long enough for.
 */
static void ring_lengths(struct bench *b, uint32_t missing)
{
	const uint32_t qp_bytes = (16u + 64) << LOG_DEPTH;
	struct flexio_cq_attr cq_attr = {
		.log_cq_depth = LOG_DEPTH,
		.element_type = FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ,
		.uar_id = b->sq_attr.uar_id,
		.cq_dbr_daddr = b->in.cq_record,
	};
	struct flexio_qp_attr qp_attr = {
		.transport_type = FLEXIO_QPC_ST_RC,
		.uar_id = b->sq_attr.uar_id,
		.log_sq_depth = LOG_DEPTH,
		.sq_cqn = b->in.cqn,
		.log_rq_depth = LOG_DEPTH,
		.rq_cqn = b->in.cqn,
		.qp_wq_dbr_qmem.daddr = b->in.record,
	};
	struct flexio_wq_attr rmp_attr = b->rq_attr;
	flexio_uintptr_t at;
	struct flexio_rmp *rmp;
	struct flexio_cq *cq;
	struct flexio_rq *rq;
	struct flexio_sq *sq;
	struct flexio_qp *qp;

	OK(flexio_buf_dev_alloc(b->p, qp_bytes - missing, &at));
	b->rq_attr.wq_dbr_qmem.daddr = rmp_attr.wq_dbr_qmem.daddr = b->in.record;
	rmp_attr.rq.wq_type = FLEXIO_WQ_TYPE_LINKED_LIST;
	qp_attr.qp_wq_buff_qmem.daddr = at;
	/* each of them ends with the same byte as the longest */
	cq_attr.cq_ring_qmem.daddr = at + qp_bytes - (64u << LOG_DEPTH);
	b->rq_attr.wq_ring_qmem.daddr = at + qp_bytes - (16u << LOG_DEPTH);
	b->sq_attr.wq_ring_qmem.daddr = at + qp_bytes - (64u << LOG_DEPTH);
	rmp_attr.wq_ring_qmem.daddr = at + qp_bytes - (32u << LOG_DEPTH);
	OK(flexio_cq_create(b->p, NULL, &cq_attr, &cq));
	OK(flexio_rq_create(b->p, NULL, b->in.cqn, &b->rq_attr, &rq));
	OK(flexio_sq_create(b->p, NULL, b->in.cqn, &b->sq_attr, &sq));
	OK(flexio_rmp_create(b->p, NULL, &rmp_attr, &rmp));
	OK(flexio_qp_create(b->p, NULL, &qp_attr, &qp));
	OK(flexio_cq_destroy(cq));
	OK(flexio_rq_destroy(rq));
	OK(flexio_sq_destroy(sq));
	OK(flexio_rmp_destroy(rmp));
	OK(flexio_qp_destroy(qp));
	OK(flexio_buf_dev_free(b->p, at));
}

static void short_rings(void)
{
	flexio_uintptr_t at;
	struct flexio_sq *sq;
	struct bench b;

	bench_up(&b);
	ring_memory(&b, &b.in, false);
	ring_lengths(&b, 64);
	ring_lengths(&b, 0);
	/* one whose buffer has gone */
	OK(flexio_buf_dev_alloc(b.p, 64u << LOG_DEPTH, &at));
	OK(flexio_buf_dev_free(b.p, at));
	b.sq_attr.wq_ring_qmem.daddr = at;
	OK(flexio_sq_create(b.p, NULL, b.in.cqn, &b.sq_attr, &sq));
	OK(flexio_sq_destroy(sq));
	bench_down(&b);
}

static void refused(void)
{
	struct flexio_rq *rq = (void *)8;
	struct flexio_sq *sq = (void *)8;
	struct bench b;

	bench_up(&b);
	ring_memory(&b, &b.in, false);
	b.rq_attr.wq_ring_qmem.daddr = b.in.ring;
	b.rq_attr.wq_dbr_qmem.daddr = b.in.record;
	b.sq_attr.wq_ring_qmem.daddr = b.in.ring;
	RQ_REFUSED(&b, log_wq_depth, 16);
	RQ_REFUSED(&b, log_wq_stride, 3);
	RQ_REFUSED(&b, user_index, 1u << 24);
	RQ_REFUSED(&b, wq_ring_qmem.daddr, 64);
	RQ_REFUSED(&b, wq_ring_qmem.memtype, (enum flexio_memtype)2);
	RQ_REFUSED(&b, wq_ring_qmem.memtype, FLEXIO_MEMTYPE_HOST);
	RQ_REFUSED(&b, wq_dbr_qmem.daddr, 0);
	SQ_REFUSED(&b, log_wq_depth, 16);
	SQ_REFUSED(&b, uar_id, 0xfffff1);
	SQ_REFUSED(&b, wq_ring_qmem.daddr, 0);
	FAILS(flexio_rq_create(b.p, NULL, 0xfffff1, &b.rq_attr, &rq));
	CHECK(!rq);
	FAILS(flexio_sq_create(b.p, NULL, 0xfffff1, &b.sq_attr, &sq));
	CHECK(!sq);
	FAILS(flexio_rq_create(NULL, NULL, b.in.cqn, &b.rq_attr, &rq));
	FAILS(flexio_sq_create(b.p, NULL, b.in.cqn, NULL, &sq));
	FAILS(flexio_rq_create(b.p, NULL, b.in.cqn, &b.rq_attr, NULL));
	CHECK(flexio_rq_get_wq_num(NULL) == UINT32_MAX && !flexio_rq_get_tir(NULL) &&
	      flexio_sq_get_wq_num(NULL) == UINT32_MAX);
	FAILS(flexio_rq_destroy(NULL));
	FAILS(flexio_sq_destroy(NULL));
	FAILS(flexio_rq_set_err_state(NULL));
	/* after all of that */
	rq_up(&b, &b.in);
	bench_down(&b);
}

static void pool(void)
{
	struct flexio_rmp *rmp = (void *)8;
	struct flexio_wq_attr attr;
	struct bench b;

	bench_up(&b);
	ring_memory(&b, &b.in, false);
	attr = b.rq_attr;
	attr.wq_ring_qmem.daddr = b.in.ring;
	attr.wq_dbr_qmem.daddr = b.in.record;
	attr.rq.wq_type = FLEXIO_WQ_TYPE_CYCLIC;
	FAILS(flexio_rmp_create(b.p, NULL, &attr, &rmp));
	CHECK(!rmp);
	attr.rq.wq_type = FLEXIO_WQ_TYPE_LINKED_LIST;
	attr.log_wq_stride = 3;
	FAILS(flexio_rmp_create(b.p, NULL, &attr, &rmp));
	attr.log_wq_stride = 0;
	attr.wq_dbr_qmem.daddr = 0;
	FAILS(flexio_rmp_create(b.p, NULL, &attr, &rmp));
	attr.wq_dbr_qmem.daddr = b.in.record;
	OK(flexio_rmp_create(b.p, NULL, &attr, &rmp));
	CHECK(flexio_rmp_get_wq_num(rmp) && flexio_rmp_get_wq_num(rmp) < 1u << 24);
	CHECK(flexio_rmp_get_wq_num(NULL) == UINT32_MAX);
	OK(flexio_rmp_destroy(rmp));
	FAILS(flexio_rmp_destroy(rmp));
	/* one that is left */
	OK(flexio_rmp_create(b.p, NULL, &attr, &rmp));
	OK(flexio_process_destroy(b.p));
	CHECK(flexio_rmp_get_wq_num(rmp) == UINT32_MAX && !ibv_close_device(b.ctx));
}

static struct mlx5dv_devx_obj *made(struct bench *b, uint8_t *in, size_t bytes, uint32_t *number)
{
	uint8_t out[CMD_OUT_BYTES] = {0};
	struct mlx5dv_devx_obj *obj = mlx5dv_devx_obj_create(b->ctx, in, bytes, out, sizeof(out));

	CHECK(obj);
	*number = prm_get32(out, CMD_OUT_NUMBER);
	return obj;
}

/* A list of destinations names a TIR by its number, and keeps it. */
static void listed(struct bench *b, struct mlx5dv_devx_obj *tir)
{
	struct mlx5dv_dr_domain *domain =
		mlx5dv_dr_domain_create(b->ctx, MLX5DV_DR_DOMAIN_TYPE_NIC_RX);
	struct mlx5dv_dr_action *to = mlx5dv_dr_action_create_dest_devx_tir(tir), *list;
	struct mlx5dv_dr_action_dest_attr one = {.type = MLX5DV_DR_ACTION_DEST, .dest = to};
	struct mlx5dv_dr_action_dest_attr *both[] = {&one, &one};

	CHECK(domain && to);
	list = mlx5dv_dr_action_create_dest_array(domain, 2, both);
	CHECK(list);
	CHECK(mlx5dv_devx_obj_destroy(tir) == EBUSY);
	CHECK(!mlx5dv_dr_action_destroy(list) && !mlx5dv_dr_action_destroy(to));
	CHECK(!mlx5dv_dr_domain_destroy(domain));
}

/* A TIR of the program's, over a table of two queues. */
static void spread(void)
{
	uint8_t td[CMD_IN_BYTES] = {0}, rqt[RQT_FIXED_BYTES + 2 * RQTC_ENTRY_BYTES] = {0};
	uint8_t tir[TIR_BYTES] = {0}, *c = rqt + RAW_CONTEXT;
	struct raw_peer *peer = raw_peer_make();
	struct mlx5dv_devx_obj *objs[3];
	uint32_t tdn, rqtn, tirn, got[2] = {0};
	struct ring in[2];
	struct bench b;

	bench_up(&b);
	for (unsigned i = 0; i < 2; i++) {
		ring_memory(&b, &in[i], false);
		rq_up(&b, &in[i]);
	}
	prm_set(td, CMD_IN_OPCODE, PRM_OP_ALLOC_TRANSPORT_DOMAIN);
	objs[0] = made(&b, td, sizeof(td), &tdn);
	prm_set(rqt, CMD_IN_OPCODE, PRM_OP_CREATE_RQT);
	prm_set(c, RQTC_MAX, 2);
	prm_set(c, RQTC_ACTUAL, 2);
	for (unsigned i = 0; i < 2; i++)
		prm_set(c, RQTC_ENTRY(i), in[i].number);
	objs[1] = made(&b, rqt, sizeof(rqt), &rqtn);
	c = tir + RAW_CONTEXT;
	prm_set(tir, CMD_IN_OPCODE, PRM_OP_CREATE_TIR);
	prm_set(c, TIRC_DOMAIN, tdn);
	prm_set(c, TIRC_INDIRECT, TIRC_BY_TABLE);
	prm_set(c, TIRC_RQT, rqtn);
	prm_set(c, TIRC_HASH, TIRC_HASH_TOEPLITZ);
	for (unsigned i = 0; i < 40; i++)
		c[TIRC_HASH_KEY + i] = (uint8_t)(i * 37 + 11);
	prm_set(c, TIRC_OUTER_FIELDS, TIRC_SRC_IP | TIRC_DST_IP);
	objs[2] = made(&b, tir, sizeof(tir), &tirn);
	rule_up(&b, &b.rule, objs[2]);
	for (unsigned i = 0; i < FRAMES; i++) {
		struct completion done;

		raw_peer_send(peer, 80, (uint8_t)(i * 29));
		for (unsigned n = 0; n < 2; n++)
			got[n] += cq_look(&b, &in[n], &done);
	}
	CHECK_SAY(got[0] && got[1], "%u and %u frames", got[0], got[1]);
	raw_peer_free(peer);
	rule_down(&b.rule);
	/* the table has them */
	FAILS(flexio_rq_destroy(in[0].rq));
	listed(&b, objs[2]);
	for (unsigned i = 3; i-- > 0;)
		CHECK(!mlx5dv_devx_obj_destroy(objs[i]));
	for (unsigned i = 0; i < 2; i++)
		ring_down(&b, &in[i]);
	bench_down(&b);
}

const struct host_case refused_cases[] = {
	{"in_use", in_use},
	{"left", left},
	{"refused", refused},
	{"too_small", too_small},
	{"short_rings", short_rings},
	{"spread", spread},
	{"pool", pool},
	{NULL, NULL},
};
