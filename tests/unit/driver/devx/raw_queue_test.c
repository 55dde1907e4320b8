// SPDX-License-Identifier: BSD-2-Clause
/*
 * Raw packet queues by the commands of DEVX: transport domains, TISs, TIRs, tables, receive and send
 * queues in the memory of a process of a DPA, which is a stand-in.  Frames go out by a bell that says
 * the index, and come in by a rule that leads to a TIR.
 */
#include "raw_queues.h"

#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include "driver/doorbell/doorbell.h"
#include "prm/uar.h"

static void test_frames(void)
{
	struct queue rq, sq;
	const struct cqe64 *cqe;
	uint64_t tir;
	uint32_t tirn;
	struct flow *flow;

	rq_up(&rq);
	sq_up(&sq);
	tir_request(&rq);
	tirn = made(TIR_BYTES, &tir);
	flow = rule_to(tir);
	/* 30 frames over rings of 8: each index says all before it, 2 to a bell */
	for (uint16_t i = 0; i < 30; i += 2) {
		put_frame(&sq, i, (uint8_t)i, key);
		put_frame(&sq, (uint16_t)(i + 1), (uint8_t)(i + 1), key);
		CHECK(!polled(&rq) && !polled(&sq));
		CHECK(ring(&sq, (uint16_t)(i + 2)));
		for (uint16_t n = i; n < i + 2; n++) {
			cqe = polled(&sq);
			CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ &&
			      be16_get(cqe->wqe_counter) == n);
			cqe = polled(&rq);
			CHECK(cqe && cqe->op_own >> 4 == CQE_OP_RESP_SEND &&
			      be16_get(cqe->wqe_counter) == n && be32_get(cqe->byte_cnt) == FRAME &&
			      be32_get(cqe->srqn_uidx) == 0x1234);
			CHECK(!memcmp(rq.data + n % ENTRIES * FRAME, sq.data + n % ENTRIES * FRAME,
				      FRAME));
		}
		rq.record[DBREC_RECV] = be32_of(ENTRIES + i + 2u);
	}
	/* bells of another region, or of no queue */
	put_frame(&sq, 30, 30, key);
	CHECK(!qp_bell(device.adapter[ETHERNET], duar + 1, sq.number, 31) && !polled(&sq));
	CHECK(!qp_bell(device.adapter[ETHERNET], duar, rq.number, 31));
	/* a TIR that blocks what its domain sends */
	begin(PRM_OP_MODIFY_TIR);
	prm_set(in, CMD_IN_NUMBER, tirn);
	prm_set(in, RAW_MODIFY_BITMASK, MODIFY_TIR_SELF_LB);
	prm_set(context(), TIRC_SELF_BLOCK, TIRC_BLOCK_UNICAST);
	CHECK(!modify(tir, TIR_BYTES));
	CHECK(ring(&sq, 31) && polled(&sq) && !polled(&rq));
	CHECK(!query(PRM_OP_QUERY_TIR, tir, tirn, TIR_BYTES));
	CHECK(prm_get(out + RAW_CONTEXT, TIRC_SELF_BLOCK) == TIRC_BLOCK_UNICAST &&
	      prm_get(out + RAW_CONTEXT, TIRC_RQN) == rq.number);
	/* what is in use stays */
	CHECK(destroy(rq.handle) == -EBUSY && destroy(rq.cq_handle) == -EBUSY &&
	      destroy(td_handle) == -EBUSY && destroy(tis_handle) == -EBUSY &&
	      destroy(pd_handle) == -EBUSY && destroy(duar_handle) == -EBUSY &&
	      destroy(process->uobj.handle) == -EBUSY);
	flow_destroy(flow);
	CHECK(!destroy(tir));
	queue_down(&rq);
	queue_down(&sq);
}

static void test_errors_of_requests(void)
{
	struct queue rq, sq;
	const struct cqe64 *cqe;
	uint64_t tir;
	struct flow *flow;

	rq_up(&rq);
	sq_up(&sq);
	tir_request(&rq);
	(void)made(TIR_BYTES, &tir);
	flow = rule_to(tir);
	/* a key that there is not: an error, and the next request is flushed */
	put_frame(&sq, 0, 0, key ^ 0xff00);
	put_frame(&sq, 1, 1, key);
	CHECK(ring(&sq, 2));
	cqe = polled(&sq);
	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ_ERR &&
	      ((const struct cqe64_err *)cqe)->syndrome == CQE_SYN_LOCAL_PROT);
	cqe = polled(&sq);
	CHECK(cqe && ((const struct cqe64_err *)cqe)->syndrome == CQE_SYN_WR_FLUSH);
	CHECK(!polled(&rq));
	CHECK(!query(PRM_OP_QUERY_SQ, sq.handle, sq.number, SQ_BYTES));
	CHECK(prm_get(out + RAW_CONTEXT, SQC_STATE) == RAW_STATE_ERR);
	/* by reset it begins with the first block again, whatever bells came meanwhile */
	CHECK(move(PRM_OP_MODIFY_SQ, sq.handle, sq.number, RAW_STATE_ERR, RAW_STATE_RDY) ==
	      -EREMOTEIO);
	CHECK(!move(PRM_OP_MODIFY_SQ, sq.handle, sq.number, RAW_STATE_ERR, RAW_STATE_RST));
	CHECK(ring(&sq, 5));
	CHECK(!move(PRM_OP_MODIFY_SQ, sq.handle, sq.number, RAW_STATE_RST, RAW_STATE_RDY));
	CHECK(!polled(&sq));
	put_frame(&sq, 0, 7, key);
	CHECK(ring(&sq, 1) && polled(&sq) && polled(&rq));
	/* a receive queue in error takes nothing, and what was posted is flushed */
	CHECK(!move(PRM_OP_MODIFY_RQ, rq.handle, rq.number, RAW_STATE_RDY, RAW_STATE_ERR));
	for (unsigned i = 1; i < ENTRIES; i++) {
		cqe = polled(&rq);
		CHECK(cqe && ((const struct cqe64_err *)cqe)->syndrome == CQE_SYN_WR_FLUSH);
	}
	put_frame(&sq, 1, 8, key);
	CHECK(ring(&sq, 2) && polled(&sq) && !polled(&rq));
	CHECK(!query(PRM_OP_QUERY_RQ, rq.handle, rq.number, RQ_BYTES));
	CHECK(prm_get(out + RAW_CONTEXT, RQC_STATE) == RAW_STATE_ERR);
	CHECK(move(PRM_OP_MODIFY_RQ, rq.handle, rq.number, RAW_STATE_RDY, RAW_STATE_RST) ==
	      -EREMOTEIO);
	flow_destroy(flow);
	CHECK(!destroy(tir));
	queue_down(&rq);
	queue_down(&sq);
}

static void rqt_list(const struct queue *first, const struct queue *second)
{
	prm_set(context(), RQTC_MAX, 4);
	prm_set(context(), RQTC_ACTUAL, 2);
	prm_set(context(), RQTC_ENTRY(0), first->number);
	prm_set(context(), RQTC_ENTRY(1), second->number);
}

#define RQT_BYTES (RQT_FIXED_BYTES + 2 * RQTC_ENTRY_BYTES)

static void test_tables(void)
{
	struct queue a, b, sq;
	uint64_t rqt, tir;
	uint32_t rqtn, tirn;
	struct flow *flow;
	unsigned to_a = 0, to_b = 0;

	rq_up(&a);
	rq_up(&b);
	sq_up(&sq);
	begin(PRM_OP_CREATE_RQT);
	rqt_list(&a, &b);
	rqtn = made(RQT_BYTES, &rqt);
	tir_request(&a);
	prm_set(context(), TIRC_DOMAIN, 0); /* none */
	prm_set(context(), TIRC_RQN, 0);
	prm_set(context(), TIRC_INDIRECT, TIRC_BY_TABLE);
	prm_set(context(), TIRC_RQT, rqtn);
	prm_set(context(), TIRC_HASH, TIRC_HASH_TOEPLITZ);
	for (unsigned i = 0; i < RSS_KEY_BYTES; i++)
		context()[TIRC_HASH_KEY + i] = (uint8_t)(i * 37 + 11);
	prm_set(context(), TIRC_OUTER_FIELDS, TIRC_SRC_IP | TIRC_DST_IP);
	tirn = made(TIR_BYTES, &tir);
	flow = rule_to(tir);
	for (uint16_t i = 0; i < ENTRIES; i++) {
		put_frame(&sq, i, (uint8_t)(i * 29), key);
		CHECK(ring(&sq, (uint16_t)(i + 1)) && polled(&sq));
		to_a += polled(&a) != NULL;
		to_b += polled(&b) != NULL;
		CHECK(to_a + to_b == i + 1u);
	}
	CHECK(to_a && to_b);
	a.record[DBREC_RECV] = be32_of(to_a + ENTRIES);
	b.record[DBREC_RECV] = be32_of(to_b + ENTRIES);
	/* what the hash does not look at is the first queue's */
	begin(PRM_OP_MODIFY_TIR);
	prm_set(in, CMD_IN_NUMBER, tirn);
	prm_set(in, RAW_MODIFY_BITMASK, MODIFY_TIR_HASH);
	prm_set(context(), TIRC_HASH, TIRC_HASH_TOEPLITZ);
	prm_set(context(), TIRC_OUTER_L3, 1);
	prm_set(context(), TIRC_OUTER_FIELDS, TIRC_SRC_IP);
	CHECK(!modify(tir, TIR_BYTES));
	prm_set(context(), TIRC_HASH, TIRC_HASH_NONE); /* nothing would choose */
	CHECK(modify(tir, TIR_BYTES) == -EREMOTEIO);
	for (uint16_t i = 0; i < ENTRIES; i++) {
		put_frame(&sq, (uint16_t)(ENTRIES + i), (uint8_t)(i * 29), key);
		CHECK(ring(&sq, (uint16_t)(ENTRIES + i + 1)) && polled(&sq) && polled(&a));
	}
	CHECK(!query(PRM_OP_QUERY_TIR, tir, tirn, TIR_BYTES));
	CHECK(prm_get(out + RAW_CONTEXT, TIRC_OUTER_L3) &&
	      prm_get(out + RAW_CONTEXT, TIRC_OUTER_FIELDS) == TIRC_SRC_IP);
	/* the table changes under the TIR: all to one, and the other one is free */
	CHECK(destroy(a.handle) == -EBUSY);
	begin(PRM_OP_MODIFY_RQT);
	prm_set(in, CMD_IN_NUMBER, rqtn);
	prm_set(in, RAW_MODIFY_BITMASK, MODIFY_RQT_LIST);
	rqt_list(&b, &b);
	CHECK(!modify(rqt, RQT_BYTES));
	queue_down(&a);
	for (uint16_t i = 0; i < ENTRIES; i++) {
		put_frame(&sq, (uint16_t)(2 * ENTRIES + i), (uint8_t)(i * 29), key);
		CHECK(ring(&sq, (uint16_t)(2 * ENTRIES + i + 1)) && polled(&sq) && polled(&b));
	}
	CHECK(!query(PRM_OP_QUERY_RQT, rqt, rqtn, RQT_BYTES));
	CHECK(prm_get(out + RAW_CONTEXT, RQTC_ACTUAL) == 2 &&
	      prm_get(out + RAW_CONTEXT, RQTC_ENTRY(0)) == b.number);
	/* lists that are too long, too short or of nothing leave it */
	begin(PRM_OP_MODIFY_RQT);
	prm_set(in, CMD_IN_NUMBER, rqtn);
	prm_set(in, RAW_MODIFY_BITMASK, MODIFY_RQT_LIST);
	rqt_list(&b, &a);
	CHECK(modify(rqt, RQT_BYTES) == -EREMOTEIO);
	rqt_list(&b, &b);
	CHECK(modify(rqt, RQT_BYTES - 4) == -EREMOTEIO);
	prm_set(context(), RQTC_ACTUAL, 8);
	CHECK(modify(rqt, RQT_BYTES) == -EREMOTEIO);
	CHECK(destroy(rqt) == -EBUSY && destroy(b.handle) == -EBUSY);
	/* lists of another length, the last one of one queue */
	for (uint32_t n = 4; n; n /= 4) {
		begin(PRM_OP_MODIFY_RQT);
		prm_set(in, CMD_IN_NUMBER, rqtn);
		prm_set(in, RAW_MODIFY_BITMASK, MODIFY_RQT_LIST);
		prm_set(context(), RQTC_ACTUAL, n);
		for (uint32_t i = 0; i < n; i++)
			prm_set(context(), RQTC_ENTRY(i), b.number);
		CHECK(!modify(rqt, (uint16_t)(RQT_FIXED_BYTES + n * RQTC_ENTRY_BYTES)));
		CHECK(!query(PRM_OP_QUERY_RQT, rqt, rqtn, RQT_FIXED_BYTES + 4 * RQTC_ENTRY_BYTES));
		CHECK(prm_get(out + RAW_CONTEXT, RQTC_ACTUAL) == n);
	}
	flow_destroy(flow);
	CHECK(!destroy(tir) && !destroy(rqt));
	queue_down(&b);
	queue_down(&sq);
}

/* A field that a command is refused for. */
struct wrong {
	struct prm_field field;
	uint64_t value;
	enum cmd_status status;
};

static void expect_wrong(const struct wrong *rows, size_t n, void (*request)(const struct queue *q),
			 const struct queue *q, uint16_t bytes)
{
	for (size_t i = 0; i < n; i++) {
		request(q);
		prm_set(context(), rows[i].field, rows[i].value);
		refused(bytes, rows[i].status);
	}
}

static void test_refusals(void)
{
	static const struct wrong rq_rows[] = {
		{RQC_CQN, 0xfffff1, CMD_STATUS_BAD_PARAM},
		{RQC_STATE, RAW_STATE_RDY, CMD_STATUS_BAD_PARAM},
		{RQC_MEMORY, RQC_OF_RMP, CMD_STATUS_BAD_PARAM}, /* of no pool */
		{RQC_MEMORY, 2, CMD_STATUS_BAD_OP},
		{RQC_HAIRPIN, 1, CMD_STATUS_BAD_OP},
		{RQC_SCATTER_FCS, 1, CMD_STATUS_BAD_OP},
		{PRM_FIELD(0x180, 4), WQ_LINKED_LIST, CMD_STATUS_BAD_OP},
		{PRM_FIELD(0x180 + 0x048, 24), 0xfffff1, CMD_STATUS_BAD_PARAM}, /* PD */
		{PRM_FIELD(0x180 + 0x10c, 4), 3, CMD_STATUS_BAD_PARAM},		/* stride */
		{PRM_FIELD(0x180 + 0x10c, 4), 10, CMD_STATUS_BAD_PARAM},
		{PRM_FIELD(0x180 + 0x11b, 5), 16, CMD_STATUS_BAD_PARAM},	 /* size */
		{PRM_FIELD(0x180 + 0x140, 32), 0, CMD_STATUS_BAD_PARAM},	 /* record */
		{PRM_FIELD(0x180 + 0x160, 32), 0xfffff1, CMD_STATUS_BAD_PARAM},	 /* ring */
		{PRM_FIELD(0x180 + 0x180, 64), HEAP - 64, CMD_STATUS_BAD_PARAM}, /* its place */
	};
	static const struct wrong sq_rows[] = {
		{SQC_CQN, 0xfffff1, CMD_STATUS_BAD_PARAM},
		{SQC_TIS, 0xfffff1, CMD_STATUS_BAD_PARAM},
		{SQC_TIS_COUNT, 2, CMD_STATUS_BAD_PARAM},
		{SQC_STATE, RAW_STATE_RDY, CMD_STATUS_BAD_PARAM},
		{SQC_HAIRPIN, 1, CMD_STATUS_BAD_OP},
		{PRM_FIELD(0x180 + 0x068, 24), 0xfffff1, CMD_STATUS_BAD_PARAM}, /* region */
		{PRM_FIELD(0x180 + 0x10c, 4), 4, CMD_STATUS_BAD_PARAM},
		{PRM_FIELD(0x180 + 0x180, 64), HEAP + HEAP_BYTES - 64, CMD_STATUS_BAD_PARAM},
	};
	static const struct wrong tir_rows[] = {
		{TIRC_DOMAIN, 0xfffff1, CMD_STATUS_BAD_PARAM},
		{TIRC_RQN, 0xfffff1, CMD_STATUS_BAD_PARAM},
		{TIRC_INDIRECT, TIRC_BY_TABLE, CMD_STATUS_BAD_PARAM},
		{TIRC_INDIRECT, 7, CMD_STATUS_BAD_PARAM},
		{TIRC_HASH, 1, CMD_STATUS_BAD_OP},
		{TIRC_MERGE, 1, CMD_STATUS_BAD_OP},
		{TIRC_TUNNELED, 1, CMD_STATUS_BAD_OP},
	};
	struct queue q;

	rq_up(&q);
	expect_wrong(rq_rows, array_size(rq_rows), rq_request, &q, RQ_BYTES);
	expect_wrong(tir_rows, array_size(tir_rows), tir_request, &q, TIR_BYTES);
	expect_wrong(sq_rows, array_size(sq_rows), sq_request, &q, SQ_BYTES);
	rq_request(&q);
	refused(RQ_BYTES - 4, CMD_STATUS_BAD_INPUT_LEN);
	begin(PRM_OP_CREATE_TIS);
	prm_set(context(), TISC_DOMAIN, 0xfffff1);
	refused(TIS_BYTES, CMD_STATUS_BAD_PARAM);
	prm_set(context(), TISC_DOMAIN, tdn);
	prm_set(context(), TISC_UNDERLAY, 5);
	refused(TIS_BYTES, CMD_STATUS_BAD_OP);
	/* an InfiniBand port has none of them */
	u.port.ethernet = false;
	rq_request(&q);
	refused(RQ_BYTES, CMD_STATUS_BAD_OP);
	sq_request(&q);
	refused(SQ_BYTES, CMD_STATUS_BAD_OP);
	tir_request(&q);
	refused(TIR_BYTES, CMD_STATUS_BAD_OP);
	u.port.ethernet = true;
	queue_down(&q);
}

/* ---- send queues on an ordinary UAR ---- */

struct uar {
	uint64_t handle;
	uint32_t page;
	uint8_t *regs;
};

static void uar_up(struct uar *uar)
{
	const uint64_t type = MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC;
	uint64_t offset;
	uint32_t length;
	struct ib_uverbs_attr attrs[] = {
		attr_handle(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0),
		attr_in(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, &type, sizeof(type)),
		attr_out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, &offset, sizeof(offset)),
		attr_out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, &length, sizeof(length)),
		attr_out(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, &uar->page, sizeof(uar->page)),
	};

	CHECK(!uverbs_file_ioctl(&u, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, attrs,
				 array_size(attrs)));
	uar->handle = attrs[0].data;
	uar->regs = u.file.pages + offset;
}

static void uar_down(const struct uar *uar)
{
	struct ib_uverbs_attr attrs[] = {
		attr_handle(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, uar->handle),
	};

	CHECK(!uverbs_file_ioctl(&u, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, attrs,
				 array_size(attrs)));
}

static void sq_make_on(struct queue *q, const struct uar *uar)
{
	uint8_t *wq = context() + SQC_WQ;

	queue_begin(q);
	sq_request(q);
	prm_set(wq, WQ_UAR_PAGE, uar->page);
	prm_set(wq, WQ_DBR_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(wq, WQ_DBR_ADDR, daddr(q->record));
	q->number = made(SQ_BYTES, &q->handle);
}

static void store_register(const struct queue *q, const struct uar *uar, uint16_t pi)
{
	uint64_t head;

	memcpy(&head, q->ring + (pi - 1u) % ENTRIES * WQE_BLOCK, sizeof(head));
	atomic_store((_Atomic(uint64_t) *)(void *)(uar->regs + UAR_SQ), head);
}

/* As libmlx5 and DPDK do: the doorbell record, then the first 8 bytes of the request. */
static void store_bell(const struct queue *q, const struct uar *uar, uint16_t pi)
{
	q->record[DBREC_SEND] = be32_of(pi);
	store_register(q, uar, pi);
}

static void sq_move(const struct queue *q, uint32_t from, uint32_t to)
{
	CHECK(!move(PRM_OP_MODIFY_SQ, q->handle, q->number, from, to));
}

static void test_ordinary_uar(void)
{
	struct queue a, b;
	const struct cqe64 *cqe;
	struct uar uar;

	uar_up(&uar);
	sq_make_on(&a, &uar);
	sq_make_on(&b, &uar);
	CHECK(!doorbell_any_watched());
	sq_move(&a, RAW_STATE_RST, RAW_STATE_RDY);
	sq_move(&b, RAW_STATE_RST, RAW_STATE_RDY);
	for (uint32_t i = 0; i < 2 * ENTRIES; i++) {
		/* one register for both: the second store hides the first */
		put_frame(&a, (uint16_t)i, 0, key);
		put_frame(&b, (uint16_t)i, 0, key);
		store_bell(&a, &uar, (uint16_t)(i + 1));
		store_bell(&b, &uar, (uint16_t)(i + 1));
		CHECK(doorbell_any_watched());
		while (doorbell_look(DOORBELL_WATCHED_PAGES))
			;
		CHECK(polled(&a) && polled(&b));
	}
	/* a card executes what the register says, and so without a record */
	for (uint32_t i = 2 * ENTRIES; i < 4 * ENTRIES; i++) {
		put_frame(&b, (uint16_t)i, 0, key);
		store_register(&b, &uar, (uint16_t)(i + 1));
		while (doorbell_look(DOORBELL_WATCHED_PAGES))
			;
		CHECK(polled(&b) && !polled(&b));
	}
	/* in the error state what is posted is flushed */
	sq_move(&a, RAW_STATE_RDY, RAW_STATE_ERR);
	put_frame(&a, 2 * ENTRIES, 0, key);
	store_bell(&a, &uar, 2 * ENTRIES + 1);
	while (doorbell_look(DOORBELL_WATCHED_PAGES))
		;
	cqe = polled(&a);
	CHECK(cqe && ((const struct cqe64_err *)cqe)->syndrome == CQE_SYN_WR_FLUSH);
	/* a queue that has been reset and is ready again sends, one that is reset does not */
	store_register(&b, &uar, 4 * ENTRIES);
	sq_move(&b, RAW_STATE_RDY, RAW_STATE_RST);
	CHECK(!*(volatile uint64_t *)(void *)(uar.regs + UAR_SQ));
	sq_move(&a, RAW_STATE_ERR, RAW_STATE_RST);
	CHECK(!doorbell_any_watched());
	a.record[DBREC_SEND] = be32_of(0);
	sq_move(&a, RAW_STATE_RST, RAW_STATE_RDY);
	put_frame(&a, 0, 0, key);
	store_bell(&a, &uar, 1);
	while (doorbell_look(DOORBELL_WATCHED_PAGES))
		;
	CHECK(polled(&a) && !polled(&b));
	queue_down(&a);
	CHECK(!doorbell_any_watched());
	queue_down(&b);
	uar_down(&uar);
}

int main(void)
{
	int skipped = queues_up();

	if (skipped)
		return skipped;
	test_frames();
	test_errors_of_requests();
	test_tables();
	test_refusals();
	test_ordinary_uar();
	return queues_down();
}
