// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program that has got an answer has heard before that its question arrived: what the other side owes goes in front of
 * whatever that sends.
 *
 *     side 0, asks --- channel --- side 1, answers
 */
#include "adapter/qp/qp.h"
#include "signed_pair.h"
#include "test_fault.h"

#define MTU   1024u
#define SLOT  4096u /* a receive's part of the memory */
#define SLOTS 4u

enum answer { ANSWER_SEND, ANSWER_PIECES, ANSWER_LONG, ANSWER_WRITE, ANSWER_ELSEWHERE, ANSWERS };

static struct signed_pair pair;
/* A further connection of the same, whose completions go to the same queues; as XRC and DC need two to answer. */
static struct device_qp other[2];

static void other_up(unsigned side)
{
	struct device_qp *q = &other[side];
	const struct qp_create_attr attr = {
		.type = IB_QPT_RC,
		.pdn = pair.side[side].q.pdn,
		.send_cq = pair.side[side].q.cq.cq,
		.recv_cq = pair.side[side].q.cq.cq,
		.sq_buf = q->sq,
		.sq_blocks = DEVICE_BLOCKS,
		.rq_buf = q->rq,
		.rq_wqes = DEVICE_RECVS,
		.rq_wqe_bytes = DEVICE_RQ_BYTES,
		.dbrec = q->dbrec,
	};

	*q = (struct device_qp){.type = IB_QPT_RC, .adapter = pair.side[side].q.adapter};
	CHECK(!qp_create(q->adapter, &attr, &q->qp));
}

static void other_connect(unsigned side)
{
	struct qp_attr attr;

	qp_query(pair.side[side].q.qp, &attr);
	attr.dest_qpn = qp_number(other[!side].qp);
	device_qp_ready(&other[side], &attr);
	for (unsigned i = 0; i < SLOTS; i++)
		device_recv(&other[side], pair.side[side].memory + (size_t)i * SLOT, SLOT,
			    pair.side[side].lkey);
}

/* Both channels are open at the end, and payloads go along. */
static void answer_pair_up(void)
{
	signed_pair_up(&pair, true);
	signed_pair_connect(&pair, IB_MTU_1024);
	other_up(0);
	other_up(1);
	other_connect(0);
	other_connect(1);
	for (unsigned side = 0; side < 2; side++)
		for (unsigned i = 0; i < SLOTS; i++)
			device_recv(&pair.side[side].q, pair.side[side].memory + (size_t)i * SLOT,
				    SLOT, pair.side[side].lkey);
	signed_pair_progress(&pair);
	signed_pair_progress(&pair);
}

static void look_at_side(unsigned side)
{
	(void)adapter_progress(pair.device.adapter[side], NULL);
	(void)wire_process_progress(pair.process[side].host);
}

static void expect_next(unsigned side, uint8_t op)
{
	const struct cqe64 *c = device_cq_poll(&pair.side[side].q.cq);

	CHECK(c && cqe_op(c) == op);
}

/* The question comes, and nobody polls for it. */
static void ask(void)
{
	const struct signed_pair_side *s = &pair.side[0];
	const struct qp *answering = pair.side[1].q.qp;
	struct device_wqe w;

	device_wqe_begin(&pair.side[0].q, &w, WQE_OP_SEND, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_data(&w, s->memory + SLOTS * SLOT, 8, s->lkey);
	device_wqe_end(&w);
	for (unsigned i = 0; i < 50 && !answering->resp.ack_owed; i++)
		(void)wire_process_progress(pair.process[1].host);
	CHECK(answering->resp.ack_owed);
}

static void answer(enum answer kind)
{
	struct signed_pair_side *s = &pair.side[1];
	struct device_qp *q = kind == ANSWER_ELSEWHERE ? &other[1] : &s->q;
	const uint8_t *from = s->memory + SLOTS * SLOT;
	struct device_wqe w;

	device_wqe_begin(q, &w, kind == ANSWER_WRITE ? WQE_OP_RDMA_WRITE_IMM : WQE_OP_SEND,
			 WQE_CTRL_CE_ALWAYS, 7);
	if (kind == ANSWER_WRITE)
		device_wqe_raddr(&w, (uintptr_t)pair.side[0].memory + SLOTS * SLOT,
				 pair.side[0].lkey);
	device_wqe_data(&w, from, kind == ANSWER_LONG ? 2 * MTU + 1 : 8, s->lkey);
	if (kind == ANSWER_PIECES)
		device_wqe_data(&w, from + 16, 8, s->lkey);
	device_wqe_end(&w);
}

static void test_answered_first(enum answer kind)
{
	answer_pair_up();
	ask();
	answer(kind);
	look_at_side(0);
	expect_next(0, CQE_OP_REQ);
	for (unsigned i = 0; i < 50; i++)
		look_at_side(i & 1);
	expect_next(0, kind == ANSWER_WRITE ? CQE_OP_RESP_WRITE_IMM : CQE_OP_RESP_SEND);
	CHECK(!device_cq_poll(&pair.side[0].q.cq));
	qp_destroy(other[0].qp);
	qp_destroy(other[1].qp);
	signed_pair_down(&pair);
}

int main(void)
{
	test_fault_catch();
	for (unsigned kind = 0; kind < ANSWERS; kind++)
		test_answered_first((enum answer)kind);
	return 0;
}
