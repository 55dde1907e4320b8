// SPDX-License-Identifier: BSD-2-Clause
/*
 * Signature pipelining:
 *
 *     side 0 --- WRITE from a key whose memory has CRC32s, fenced SEND ---> side 1
 *
 * as in mlx5dv_qp_cancel_posted_send_wrs(3): the queue stops behind the bad transfer, what depends
 * on it is withdrawn by making it a NOP in the ring, and the queue goes on.
 */
#include <string.h>

#include "base/hazard.h"
#include "signed_pair.h"

#define SIGNALED WQE_CTRL_CE_ALWAYS
#define FENCED	 WQE_CTRL_FENCE

static void post_send(struct signed_pair *t, uint8_t flags, uint8_t op)
{
	struct device_qp *q = &t->side[0].q;
	struct device_wqe w;

	device_wqe_begin(q, &w, op, flags, 0);
	if (op != WQE_OP_NOP)
		device_wqe_data(&w, t->side[0].memory + SIGNED_PAIR_BYTES / 2, 16, t->side[0].lkey);
	device_wqe_end(&w);
}

static void write_block(struct signed_pair *t, unsigned k, uint8_t flags)
{
	struct signed_pair_side *peer = &t->side[1];
	struct device_wqe w;

	device_wqe_begin(&t->side[0].q, &w, WQE_OP_RDMA_WRITE, flags, 0);
	device_wqe_raddr(&w, (uintptr_t)(peer->memory + (size_t)k * BLOCK), peer->lkey);
	device_wqe_data(&w, (void *)(uintptr_t)(k * BLOCK), BLOCK, t->side[0].skey);
	device_wqe_end(&w);
}

static struct device_qp *requester_of(struct signed_pair *t)
{
	return &t->side[0].q;
}

static enum ib_qp_state state_of(struct signed_pair *t, bool *draining)
{
	struct qp_attr attr;

	qp_query(requester_of(t)->qp, &attr);
	*draining = attr.sq_draining;
	return attr.state;
}

static void wait_drained(struct signed_pair *t, int events)
{
	bool draining;

	for (unsigned i = 0; i < 10000000 && requester_of(t)->async[IB_EVENT_SQ_DRAINED] < events;
	     i++)
		signed_pair_progress(t);
	CHECK(requester_of(t)->async[IB_EVENT_SQ_DRAINED] == events);
	CHECK(state_of(t, &draining) == IB_QPS_SQD && !draining);
}

static void resume_qp(struct signed_pair *t)
{
	const struct qp_attr attr = {.state = IB_QPS_RTS, .cur_state = IB_QPS_SQD};
	bool draining;

	CHECK(!qp_modify(requester_of(t)->qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE));
	CHECK(state_of(t, &draining) == IB_QPS_RTS);
}

/* As libmlx5 does: in place, opcode only. */
static void cancel_requests(struct signed_pair *t, uint16_t block)
{
	struct wqe_ctrl *c =
		(struct wqe_ctrl *)(requester_of(t)->sq + (block % DEVICE_BLOCKS) * WQE_BLOCK);
	uint32_t v = be32_get(c->opmod_idx_opcode);

	c->opmod_idx_opcode = be32_of((v & ~0xffu) | WQE_OP_NOP);
}

static void set_counters(struct signed_pair *t, uint16_t hw, uint16_t sw)
{
	uint16_t h, s;

	qp_sq_counters(requester_of(t)->qp, &h, &s);
	CHECK(h == hw && s == sw);
}

static void all_good(struct signed_pair *t)
{
	start(t, true, 0xf0, 0);
	write_block(t, 0, 0);
	post_send(t, SIGNALED | FENCED, WQE_OP_SEND);
	CHECK(cqe_op(next(t, 0)) == CQE_OP_REQ && cqe_op(next(t, 1)) == CQE_OP_RESP_SEND);
	CHECK(idle(t) && !requester_of(t)->async[IB_EVENT_SQ_DRAINED]);
	set_counters(t, 2, 2);
}

/* Nobody asked for a check, nobody for a drain: nothing happens, or only the error is told. */
static void not_asked_for(struct signed_pair *t)
{
	start(t, true, 0, 1);
	write_block(t, 0, SIGNALED);
	CHECK(cqe_op(next(t, 0)) == CQE_OP_REQ && idle(t));
	start(t, false, 0xf0, 1);
	write_block(t, 0, SIGNALED);
	post_send(t, SIGNALED | FENCED, WQE_OP_SEND);
	expect_error(t, 0, 0);
	CHECK(cqe_op(next(t, 0)) == CQE_OP_REQ && cqe_op(next(t, 0)) == CQE_OP_REQ);
	CHECK(cqe_op(next(t, 1)) == CQE_OP_RESP_SEND && idle(t));
	CHECK(!requester_of(t)->async[IB_EVENT_SQ_DRAINED]);
}

/* rdma-core's test_mkey_sig_pipelining_bad, and then the same once more. */
static void cancelled_and_resumed(struct signed_pair *t)
{
	start(t, true, 0xf0, 1 | 4);
	write_block(t, 0, 0);
	post_send(t, SIGNALED | FENCED, WQE_OP_SEND);
	wait_drained(t, 1);
	/* the error lies there before the event */
	CHECK(cqe_op(&t->side[0].q.cq.ring[t->side[0].q.cq.ci % DEVICE_CQES]) == CQE_OP_SIG_ERR);
	expect_error(t, 0, 0);
	CHECK(idle(t));
	set_counters(t, 1, 2);
	/* data has arrived all the same */
	CHECK(!memcmp(t->side[1].memory, t->side[0].memory, BLOCK));

	cancel_requests(t, 1);
	post_send(t, SIGNALED, WQE_OP_SEND);
	CHECK(idle(t)); /* doorbells are of no use */
	set_counters(t, 1, 3);
	resume_qp(t);
	CHECK(be32_get(next(t, 0)->sop_drop_qpn) >> 24 == WQE_OP_NOP);
	CHECK(be32_get(next(t, 0)->sop_drop_qpn) >> 24 == WQE_OP_SEND);
	CHECK(cqe_op(next(t, 1)) == CQE_OP_RESP_SEND && idle(t));

	/* not armed: the key's errors are silent, and stop nobody */
	write_block(t, 0, SIGNALED);
	CHECK(cqe_op(next(t, 0)) == CQE_OP_REQ && idle(t));
	/* armed */
	hazard_enter();
	key_up(t, 0, 0xf0);
	hazard_leave();
	write_block(t, 1, 0);
	write_block(t, 2, SIGNALED);
	post_send(t, FENCED, WQE_OP_SEND);
	wait_drained(t, 2);
	expect_error(t, 0, 2);
	CHECK(cqe_op(next(t, 0)) == CQE_OP_REQ && idle(t));
	set_counters(t, 6, 7);
	resume_qp(t);
	CHECK(cqe_op(next(t, 1)) == CQE_OP_RESP_SEND && idle(t));
	CHECK(requester_of(t)->async[IB_EVENT_SQ_DRAINED] == 2);
}

/* A read's check is final when its answer is here; what is fenced waits for that. */
static void test_reads(struct signed_pair *t)
{
	struct umr_klm e = signed_pair_klm(t, 0, 0, BLOCK * BLOCKS);
	struct sig_config c = {
		.side[SIG_WIRE] = {.type = SIG_CRC32, .block = BLOCK, .seed_ones = true},
		.check_mask = 0xf0,
		.data_bytes = UINT32_MAX,
	};
	struct device_wqe w;

	start(t, true, 0, 0);
	signed_pair_sign(t, 0, &c, &e, 1, BLOCK * BLOCKS);
	fill(t, 1, 2);
	for (unsigned k = 0; k < 2; k++) {
		device_wqe_begin(&t->side[0].q, &w, WQE_OP_RDMA_READ, SIGNALED, 0);
		device_wqe_raddr(&w, (uintptr_t)(t->side[1].memory + (size_t)k * UNIT),
				 t->side[1].lkey);
		device_wqe_data(&w, (void *)(uintptr_t)(k * UNIT), UNIT, t->side[0].skey);
		device_wqe_end(&w);
	}
	post_send(t, SIGNALED | FENCED, WQE_OP_SEND);
	wait_drained(t, 1);
	CHECK(cqe_op(next(t, 0)) == CQE_OP_REQ);
	expect_error(t, 0, 1);
	CHECK(cqe_op(next(t, 0)) == CQE_OP_REQ && idle(t));
	set_counters(t, 2, 3);
	CHECK(!memcmp(t->side[0].memory, t->side[1].memory, BLOCK));
	CHECK(!memcmp(t->side[0].memory + BLOCK, t->side[1].memory + UNIT, BLOCK));
	resume_qp(t);
	CHECK(cqe_op(next(t, 0)) == CQE_OP_REQ && cqe_op(next(t, 1)) == CQE_OP_RESP_SEND);
	CHECK(idle(t));
}

/* What waits in SQD is flushed like any other, NOPs too; RESET ends it all. */
static void error_in_sqd(struct signed_pair *t)
{
	const struct qp_attr err = {.state = IB_QPS_ERR};
	const struct cqe64 *cqe;
	bool draining;

	start(t, true, 0xf0, 1);
	write_block(t, 0, 0);
	post_send(t, SIGNALED | FENCED, WQE_OP_SEND);
	wait_drained(t, 1);
	expect_error(t, 0, 0);
	cancel_requests(t, 1);
	CHECK(!qp_modify(requester_of(t)->qp, &err, IB_QP_STATE));
	cqe = next(t, 0);
	CHECK(cqe_op(cqe) == CQE_OP_REQ_ERR &&
	      ((const struct cqe64_err *)cqe)->syndrome == CQE_SYN_WR_FLUSH);
	CHECK(state_of(t, &draining) == IB_QPS_ERR);
	/* RESET has switched it off */
	start(t, false, 0xf0, 1);
	write_block(t, 0, 0);
	post_send(t, SIGNALED | FENCED, WQE_OP_SEND);
	expect_error(t, 0, 0);
	CHECK(cqe_op(next(t, 0)) == CQE_OP_REQ && cqe_op(next(t, 1)) == CQE_OP_RESP_SEND);
}

/* A peer's access: the error is told on our receive CQ, and our queue does not stop. */
static void peer_access(struct signed_pair *t)
{
	struct device_wqe w;

	start(t, true, 0xf0, 8);
	device_wqe_begin(&t->side[1].q, &w, WQE_OP_RDMA_READ, SIGNALED, 0);
	device_wqe_raddr(&w, 0, t->side[0].skey);
	device_wqe_data(&w, t->side[1].memory, BLOCK * BLOCKS, t->side[1].lkey);
	device_wqe_end(&w);
	CHECK(cqe_op(next(t, 1)) == CQE_OP_REQ);
	expect_error(t, 0, 3);
	for (unsigned k = 0; k < BLOCKS; k++)
		CHECK(!memcmp(t->side[1].memory + (size_t)k * BLOCK,
			      t->side[0].memory + (size_t)k * UNIT, BLOCK));
	post_send(t, SIGNALED, WQE_OP_SEND);
	CHECK(cqe_op(next(t, 0)) == CQE_OP_REQ && cqe_op(next(t, 1)) == CQE_OP_RESP_SEND);
	CHECK(idle(t) && !requester_of(t)->async[IB_EVENT_SQ_DRAINED]);
}

int main(void)
{
	static struct signed_pair pair;

	for (int two = 0; two < 2; two++) {
		signed_pair_up(&pair, two);
		all_good(&pair);
		not_asked_for(&pair);
		cancelled_and_resumed(&pair);
		test_reads(&pair);
		error_in_sqd(&pair);
		peer_access(&pair);
		signed_pair_down(&pair);
	}
	return 0;
}
