// SPDX-License-Identifier: BSD-2-Clause
/* Frames into receive memory pools, and many frames of one request. */
#include "raw_queues.h"

#define POOL_STRIDE 32u
#define POOL_STEP   3u /* from an entry of the list to the next one */

/* A pool with all its receives, in memory that is laid out as a queue's; q->handle is its own. */
static uint32_t pool_up(struct queue *q)
{
	uint8_t *rmpc = in + CREATE_RMP_CONTEXT, *wq = rmpc + RMPC_WQ;

	queue_begin(q);
	begin(PRM_OP_CREATE_RMP);
	prm_set(rmpc, RMPC_STATE, RMPC_STATE_RDY);
	prm_set(wq, WQ_TYPE, WQ_LINKED_LIST);
	prm_set(wq, WQ_PD, pdn);
	prm_set(wq, WQ_LOG_SIZE, LOG_ENTRIES);
	prm_set(wq, WQ_LOG_STRIDE, 5);
	prm_set(wq, WQ_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(wq, WQ_OFFSET, daddr(q->ring));
	prm_set(wq, WQ_DBR_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(wq, WQ_DBR_ADDR, daddr(q->record));
	q->number = made(CREATE_RMP_IN_BYTES, &q->handle);
	for (unsigned i = 0; i < ENTRIES; i++) {
		struct wqe_srq_next next = {.next_wqe_index = be16_of((i + POOL_STEP) % ENTRIES)};
		struct wqe_data data = {be32_of(FRAME), be32_of(key),
					be64_of((uintptr_t)q->data + i * FRAME)};

		memcpy(q->ring + i * POOL_STRIDE, &next, sizeof(next));
		memcpy(q->ring + i * POOL_STRIDE + sizeof(next), &data, sizeof(data));
	}
	q->record[DBREC_RECV] = be32_of(ENTRIES);
	return q->number;
}

/* The completion of a frame that lies in the entry of the list whose turn it is. */
static void expect_pooled(struct queue *rq, const struct queue *pool, const uint8_t *frame,
			  unsigned turn)
{
	const struct cqe64 *cqe = polled(rq);
	uint16_t at = (uint16_t)(turn * POOL_STEP % ENTRIES);

	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_RESP_SEND && be32_get(cqe->byte_cnt) == FRAME);
	CHECK(be16_get(cqe->wqe_counter) == at && be32_get(cqe->srqn_uidx) == 0x77);
	CHECK(!memcmp(pool->data + at * FRAME, frame, FRAME));
}

/* Three frames in one request: two in memory, and one that stands in the request. */
static void put_frames(const struct queue *q, uint8_t headers)
{
	struct wqe_ctrl ctrl = {
		.opmod_idx_opcode = be32_of(WQE_OP_ENHANCED_MPSW),
		.qpn_ds = be32_of(q->number << 8 | (2 + 2 + div_round_up(4 + FRAME, WQE_UNIT))),
		.fm_ce_se = WQE_CTRL_CE_ALWAYS,
	};
	be32 inlined = be32_of(WQE_DATA_INLINE | FRAME);

	for (uint16_t i = 0; i < 3; i++)
		put_frame(q, i, (uint8_t)(0x50 + i), key);
	memset(q->ring, 0, 3 * WQE_BLOCK);
	memcpy(q->ring, &ctrl, sizeof(ctrl));
	q->ring[29] = headers;
	for (uint16_t i = 0; i < 2; i++) {
		struct wqe_data data = {be32_of(FRAME), be32_of(key),
					be64_of((uintptr_t)q->data + i * FRAME)};

		memcpy(q->ring + 32 + i * sizeof(data), &data, sizeof(data));
	}
	memcpy(q->ring + 64, &inlined, sizeof(inlined));
	memcpy(q->ring + 68, q->data + 2 * FRAME, FRAME);
}

static void many_up(struct queue *sq, bool many)
{
	queue_begin(sq);
	sq_request(sq);
	prm_set(context(), SQC_MULTI_PACKET, many);
	sq->number = made(SQ_BYTES, &sq->handle);
	CHECK(!move(PRM_OP_MODIFY_SQ, sq->handle, sq->number, RAW_STATE_RST, RAW_STATE_RDY));
}

static void many_refused(bool many, uint8_t headers)
{
	const struct cqe64_err *cqe;
	struct queue sq;

	many_up(&sq, many);
	put_frames(&sq, headers);
	CHECK(ring(&sq, 3));
	cqe = (const struct cqe64_err *)polled(&sq);
	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ_ERR && cqe->syndrome == CQE_SYN_LOCAL_QP_OP);
	queue_down(&sq);
}

/* A modification changes the limit, and is refused if it asks for anything else. */
static void pool_limit(const struct queue *pool)
{
	const uint8_t *said = out + QUERY_RMP_CONTEXT;
	uint8_t *wq = in + MODIFY_RMP_CONTEXT + RMPC_WQ;

	for (uint64_t what = 0; what <= 2 * MODIFY_RMP_LWM; what++) {
		begin(PRM_OP_MODIFY_RMP);
		prm_set(in, CMD_IN_NUMBER, pool->number);
		prm_set(in, MODIFY_RMP_STATE, RMPC_STATE_RDY);
		prm_set(in, MODIFY_RMP_BITMASK, what);
		prm_set(wq, WQ_LWM, 3 + what);
		CHECK(modify(pool->handle, MODIFY_RMP_IN_BYTES) ==
		      (what > MODIFY_RMP_LWM ? -EREMOTEIO : 0));
		CHECK(!query(PRM_OP_QUERY_RMP, pool->handle, pool->number, QUERY_RMP_OUT_BYTES));
		CHECK(prm_get(said + RMPC_WQ, WQ_LWM) == (what ? 3 + MODIFY_RMP_LWM : 0));
		CHECK(prm_get(said, RMPC_STATE) == RMPC_STATE_RDY &&
		      prm_get(said + RMPC_WQ, WQ_LOG_SIZE) == LOG_ENTRIES);
	}
}

static void test_pool(void)
{
	struct queue pool, rq, sq;
	const struct cqe64 *cqe;
	struct flow *flow;
	uint64_t tir;

	(void)pool_up(&pool);
	pool_limit(&pool);
	queue_begin(&rq);
	begin(PRM_OP_CREATE_RQ);
	prm_set(context(), RQC_CQN, rq.cqn);
	prm_set(context(), RQC_USER_INDEX, 0x77);
	prm_set(context(), RQC_FLUSH, 1);
	prm_set(context(), RQC_KEEP_VLAN, 1);
	prm_set(context(), RQC_MEMORY, RQC_OF_RMP);
	prm_set(context(), RQC_RMP, pool.number);
	rq.number = made(RQ_BYTES, &rq.handle);
	CHECK(!move(PRM_OP_MODIFY_RQ, rq.handle, rq.number, RAW_STATE_RST, RAW_STATE_RDY));
	tir_request(&rq);
	(void)made(TIR_BYTES, &tir);
	flow = rule_to(tir);
	many_up(&sq, true);
	put_frames(&sq, 0);
	CHECK(ring(&sq, 3));
	cqe = polled(&sq);
	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ && !be16_get(cqe->wqe_counter));
	CHECK(!polled(&sq));
	for (unsigned i = 0; i < 3; i++)
		expect_pooled(&rq, &pool, sq.data + i * FRAME, i);
	/* and by requests of one, until there is no receive any more */
	for (unsigned i = 3; i < ENTRIES + 1; i++) {
		put_frame(&sq, i, (uint8_t)i, key);
		CHECK(ring(&sq, (uint16_t)(i + 1)) && polled(&sq));
		if (i < ENTRIES)
			expect_pooled(&rq, &pool, sq.data + i % ENTRIES * FRAME, i);
	}
	CHECK(!polled(&rq));
	/* in error the queue takes nothing, and gives nothing of the pool back */
	pool.record[DBREC_RECV] = be32_of(2 * ENTRIES);
	CHECK(!move(PRM_OP_MODIFY_RQ, rq.handle, rq.number, RAW_STATE_RDY, RAW_STATE_ERR));
	put_frame(&sq, ENTRIES + 1, 1, key);
	CHECK(ring(&sq, ENTRIES + 2) && polled(&sq) && !polled(&rq));
	CHECK(!move(PRM_OP_MODIFY_RQ, rq.handle, rq.number, RAW_STATE_ERR, RAW_STATE_RST));
	CHECK(!move(PRM_OP_MODIFY_RQ, rq.handle, rq.number, RAW_STATE_RST, RAW_STATE_RDY));
	put_frame(&sq, ENTRIES + 2, 2, key);
	CHECK(ring(&sq, ENTRIES + 3) && polled(&sq));
	expect_pooled(&rq, &pool, sq.data + 2 * FRAME, ENTRIES);
	CHECK(destroy(pool.handle) == -EBUSY);
	flow_destroy(flow);
	CHECK(!destroy(tir));
	queue_down(&rq);
	queue_down(&sq);
	queue_down(&pool);
	/* not from a queue that was made without it, and not with headers in the request */
	many_refused(false, 0);
	many_refused(true, 2);
}

int main(void)
{
	int skipped = queues_up();

	if (skipped)
		return skipped;
	test_pool();
	return queues_down();
}
