// SPDX-License-Identifier: BSD-2-Clause
/*
 * Raw packet queues by the commands of DEVX: transport domains, TISs, TIRs, tables, receive and send
 * queues in the memory of a process of a DPA, which is a stand-in.  Frames go out by a bell that says
 * the index, and come in by a rule that leads to a TIR.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "adapter_device.h"
#include "check.h"
#include "devx_commands.h"
#include "driver/devx/devx.h"
#include "driver/uverbs/objects/rss.h"
#include "prm/cmd_cq.h"
#include "prm/cmd_general.h"
#include "prm/cmd_raw.h"

#define ETHERNET    1u
#define PROCESS	    0x21u
#define HEAP	    0x10000u
#define HEAP_BYTES  65536u
#define LOG_ENTRIES 3u
#define ENTRIES	    (1u << LOG_ENTRIES)
#define FRAME	    64u

static struct test_device device;
static struct uverbs_file u;
static struct devx_commands commands = {.u = &u};
static uint8_t *const in = commands.in, *const out = commands.out;
static struct devx_obj *process;
static _Alignas(64) uint8_t heap[HEAP_BYTES];
static uint32_t heap_used;
static uint32_t duar, pdn, tdn, tisn, key;
static uint64_t duar_handle, pd_handle, td_handle, tis_handle;
static struct mkey *mr;

/* ---- stand-ins ---- */

static void *fake_part(struct devx_obj *obj, uint64_t daddr, uint64_t bytes)
{
	CHECK(obj == process);
	return daddr >= HEAP && range_inside(daddr - HEAP, bytes, HEAP_BYTES)
		       ? heap + (daddr - HEAP)
		       : NULL;
}

static const struct devx_class fake_process_class = {.part = fake_part};

static void publish_process(void)
{
	process = calloc(1, sizeof(*process));
	CHECK(process);
	devx_obj_init(process, &fake_process_class, PROCESS);
	CHECK(!uobj_publish(&u.file, &process->uobj, &udevx_class));
}

/* ---- commands ---- */

static void begin(enum prm_opcode op)
{
	memset(in, 0, sizeof(commands.in));
	prm_set(in, CMD_IN_OPCODE, op);
}

static uint8_t *context(void)
{
	return in + RAW_CONTEXT;
}

static int create(uint16_t in_len, uint64_t *handle)
{
	return devx_command_create(&commands, in_len, handle);
}

static int destroy(uint64_t handle)
{
	return devx_command_destroy(&commands, handle);
}

static int modify(uint64_t handle, uint16_t in_len)
{
	return devx_command_modify(&commands, handle, in_len);
}

static int query(enum prm_opcode op, uint64_t handle, uint32_t number, uint16_t out_len)
{
	return devx_command_query(&commands, op, handle, number, out_len);
}

static uint32_t made(uint16_t in_len, uint64_t *handle)
{
	CHECK(!create(in_len, handle));
	return prm_get32(out, CMD_OUT_NUMBER);
}

static void refused(uint16_t in_len, enum cmd_status status)
{
	uint64_t handle;

	CHECK(create(in_len, &handle) == -EREMOTEIO);
	CHECK(prm_get(out, CMD_OUT_STATUS) == status);
}

static int move(enum prm_opcode op, uint64_t handle, uint32_t number, uint32_t from, uint32_t to)
{
	begin(op);
	prm_set(in, CMD_IN_NUMBER, number);
	prm_set(in, RAW_CURRENT_STATE, from);
	prm_set(context(), RQC_STATE, to);
	return modify(handle, RQ_BYTES);
}

static uint8_t *heap_take(uint32_t bytes)
{
	uint8_t *at = heap + heap_used;

	heap_used += (bytes + 63) / 64 * 64;
	CHECK(heap_used <= HEAP_BYTES);
	return at;
}

static uint64_t daddr(const void *at)
{
	return HEAP + (uint64_t)((const uint8_t *)at - heap);
}

/* ---- queues ---- */

struct queue {
	uint64_t cq_handle, handle;
	uint32_t cqn, number;
	struct cqe64 *cqes;
	uint32_t ci;
	uint8_t *ring;
	be32 *record;
	uint8_t *data; /* ENTRIES frames */
};

static void queue_down(struct queue *q)
{
	CHECK(!destroy(q->handle) && !destroy(q->cq_handle));
}

static void queue_begin(struct queue *q)
{
	uint8_t *cqc = in + CREATE_CQ_CONTEXT;
	be32 *record = (be32 *)(void *)heap_take(8);

	q->ci = 0;
	q->cqes = (struct cqe64 *)(void *)heap_take(ENTRIES * sizeof(struct cqe64));
	memset(q->cqes, 0xff, ENTRIES * sizeof(struct cqe64));
	memset(record, 0, 8);
	begin(PRM_OP_CREATE_CQ);
	prm_set(in, CREATE_CQ_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(in, CREATE_CQ_OFFSET, daddr(q->cqes));
	prm_set(cqc, CQC_DBR_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(cqc, CQC_DBR_ADDR, daddr(record));
	prm_set(cqc, CQC_LOG_SIZE, LOG_ENTRIES);
	prm_set(cqc, CQC_UAR_PAGE, duar);
	prm_set(cqc, CQC_OVERRUN_IGNORE, 1);
	prm_set(cqc, CQC_EQN, DEVX_EQN_FIRST);
	q->cqn = made(CREATE_CQ_IN_BYTES, &q->cq_handle);
	q->ring = heap_take(ENTRIES * WQE_BLOCK);
	q->record = (be32 *)(void *)heap_take(8);
	q->data = heap_take(ENTRIES * FRAME);
	memset(q->record, 0, 8);
}

/* The next completion, or NULL. */
static const struct cqe64 *polled(struct queue *q)
{
	const struct cqe64 *cqe = &q->cqes[q->ci % ENTRIES];

	if ((cqe->op_own & 1) != (q->ci / ENTRIES & 1) || cqe->op_own >> 4 == CQE_OP_INVALID)
		return NULL;
	q->ci++;
	return cqe;
}

static void rq_request(const struct queue *q)
{
	uint8_t *wq = context() + RQC_WQ;

	begin(PRM_OP_CREATE_RQ);
	prm_set(context(), RQC_CQN, q->cqn);
	prm_set(context(), RQC_USER_INDEX, 0x1234);
	prm_set(context(), RQC_FLUSH, 1);
	prm_set(context(), RQC_KEEP_VLAN, 1);
	prm_set(wq, WQ_TYPE, WQ_CYCLIC);
	prm_set(wq, WQ_PD, pdn);
	prm_set(wq, WQ_LOG_SIZE, LOG_ENTRIES);
	prm_set(wq, WQ_LOG_STRIDE, 4);
	prm_set(wq, WQ_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(wq, WQ_OFFSET, daddr(q->ring));
	prm_set(wq, WQ_DBR_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(wq, WQ_DBR_ADDR, daddr(q->record));
}

static void rq_up(struct queue *q)
{
	queue_begin(q);
	rq_request(q);
	q->number = made(RQ_BYTES, &q->handle);
	for (unsigned i = 0; i < ENTRIES; i++)
		((struct wqe_data *)(void *)q->ring)[i] = (struct wqe_data){
			be32_of(FRAME), be32_of(key), be64_of((uintptr_t)q->data + i * FRAME)};
	q->record[DBREC_RECV] = be32_of(ENTRIES);
	CHECK(!move(PRM_OP_MODIFY_RQ, q->handle, q->number, RAW_STATE_RST, RAW_STATE_RDY));
}

static void sq_request(const struct queue *q)
{
	uint8_t *wq = context() + SQC_WQ;

	begin(PRM_OP_CREATE_SQ);
	prm_set(context(), SQC_CQN, q->cqn);
	prm_set(context(), SQC_USER_INDEX, 0x4321);
	prm_set(context(), SQC_FLUSH, 1);
	prm_set(context(), SQC_TIS_COUNT, 1);
	prm_set(context(), SQC_TIS, tisn);
	prm_set(wq, WQ_TYPE, WQ_CYCLIC);
	prm_set(wq, WQ_PD, pdn);
	prm_set(wq, WQ_LOG_SIZE, LOG_ENTRIES);
	prm_set(wq, WQ_LOG_STRIDE, 6);
	prm_set(wq, WQ_UAR_PAGE, duar);
	prm_set(wq, WQ_UMEM, DEVX_UMEM_DPA + PROCESS);
	prm_set(wq, WQ_OFFSET, daddr(q->ring));
}

static void sq_up(struct queue *q)
{
	queue_begin(q);
	sq_request(q);
	q->number = made(SQ_BYTES, &q->handle);
	CHECK(!move(PRM_OP_MODIFY_SQ, q->handle, q->number, RAW_STATE_RST, RAW_STATE_RDY));
}

/* A frame of a kind of its own; only the bell after it sends it. */
static void put_frame(const struct queue *q, uint16_t block, uint8_t kind, uint32_t lkey)
{
	uint8_t *frame = q->data + block % ENTRIES * FRAME;
	uint8_t *wqe = q->ring + block % ENTRIES * WQE_BLOCK;
	struct wqe_ctrl ctrl = {
		.opmod_idx_opcode = be32_of((uint32_t)block << 8 | WQE_OP_SEND),
		.qpn_ds = be32_of(q->number << 8 | 3),
		.fm_ce_se = WQE_CTRL_CE_ALWAYS,
	};
	struct wqe_data data = {be32_of(FRAME), be32_of(lkey), be64_of((uintptr_t)frame)};

	memset(frame, kind, FRAME);
	memcpy(frame, "\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\0", 14);
	/* IPv4 with addresses that differ by kind */
	memcpy(frame + 14, "\x45\0\0\x32\0\0\0\0\x40\x11", 10);
	memset(wqe, 0, WQE_BLOCK);
	memcpy(wqe, &ctrl, sizeof(ctrl));
	memcpy(wqe + 32, &data, sizeof(data));
}

static bool ring(const struct queue *q, uint16_t pi)
{
	return qp_bell(device.adapter[ETHERNET], duar, q->number, pi);
}

static void tir_request(const struct queue *rq)
{
	begin(PRM_OP_CREATE_TIR);
	prm_set(context(), TIRC_DOMAIN, tdn);
	prm_set(context(), TIRC_RQN, rq->number);
}

static struct flow *rule_to(uint64_t tir)
{
	struct uobj *obj = uobj_any(&u.file, tir);
	struct flow_attr attr = {
		.value.src_mac = {0x02, 0, 0, 0, 0, 0x02},
		.mask.src_mac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		.qp = obj->class->takes_frames(obj),
	};
	struct flow *flow;

	CHECK(attr.qp && !flow_create(device.adapter[ETHERNET], &attr, &flow));
	return flow;
}

/* ---- cases ---- */

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
	uint32_t rqtn;
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
	(void)made(TIR_BYTES, &tir);
	flow = rule_to(tir);
	for (uint16_t i = 0; i < ENTRIES; i++) {
		put_frame(&sq, i, (uint8_t)(i * 29), key);
		CHECK(ring(&sq, (uint16_t)(i + 1)) && polled(&sq));
		to_a += polled(&a) != NULL;
		to_b += polled(&b) != NULL;
		CHECK(to_a + to_b == i + 1u);
	}
	CHECK(to_a && to_b);
	b.record[DBREC_RECV] = be32_of(to_b + ENTRIES);
	/* the table changes under the TIR: all to one, and the other one is free */
	CHECK(destroy(a.handle) == -EBUSY);
	begin(PRM_OP_MODIFY_RQT);
	prm_set(in, CMD_IN_NUMBER, rqtn);
	prm_set(in, RAW_MODIFY_BITMASK, MODIFY_RQT_LIST);
	rqt_list(&b, &b);
	CHECK(!modify(rqt, RQT_BYTES));
	queue_down(&a);
	for (uint16_t i = 0; i < ENTRIES; i++) {
		put_frame(&sq, (uint16_t)(ENTRIES + i), (uint8_t)(i * 29), key);
		CHECK(ring(&sq, (uint16_t)(ENTRIES + i + 1)) && polled(&sq) && polled(&b));
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
		{RQC_MEMORY, RQC_OF_RMP, CMD_STATUS_BAD_OP},
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
		{SQC_MULTI_PACKET, 1, CMD_STATUS_BAD_OP},
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

static void objects_up(void)
{
	begin(PRM_OP_CREATE_GENERAL_OBJECT);
	prm_set(in, GENERAL_IN_TYPE, GENERAL_DUAR);
	CHECK(!create(CMD_IN_BYTES, &duar_handle));
	duar = prm_get32(out, GENERAL_OUT_ID);
	begin(PRM_OP_ALLOC_PD);
	pdn = made(CMD_IN_BYTES, &pd_handle);
	begin(PRM_OP_ALLOC_TRANSPORT_DOMAIN);
	tdn = made(CMD_IN_BYTES, &td_handle);
	begin(PRM_OP_CREATE_TIS);
	prm_set(context(), TISC_DOMAIN, tdn);
	prm_set(context(), TISC_PRIO, 3);
	tisn = made(TIS_BYTES, &tis_handle);
	begin(PRM_OP_MODIFY_TIS);
	prm_set(in, CMD_IN_NUMBER, tisn);
	prm_set(in, RAW_MODIFY_BITMASK, MODIFY_TIS_PRIO);
	prm_set(context(), TISC_PRIO, 5);
	CHECK(!modify(tis_handle, TIS_BYTES));
	CHECK(!query(PRM_OP_QUERY_TIS, tis_handle, tisn, QUERY_TIS_OUT_BYTES));
	CHECK(prm_get(out + QUERY_TIS_CONTEXT, TISC_PRIO) == 5 &&
	      prm_get(out + QUERY_TIS_CONTEXT, TISC_DOMAIN) == tdn);
	key = device_mr(&device, ETHERNET, pdn, heap, HEAP_BYTES, IB_ACCESS_LOCAL_WRITE, &mr);
}

int main(void)
{
	if (!uverbs_may_raw()) {
		printf("send queues need CAP_NET_RAW\n");
		return 77;
	}
	device_up(&device);
	uverbs_file_up(&u);
	u.hca.adapter = device.adapter[ETHERNET];
	u.port.ethernet = true;
	publish_process();
	objects_up();
	test_frames();
	test_errors_of_requests();
	test_tables();
	test_refusals();
	mkey_destroy(device.adapter[ETHERNET], mr);
	CHECK(!destroy(tis_handle) && !destroy(td_handle) && !destroy(pd_handle) &&
	      !destroy(duar_handle) && !destroy(process->uobj.handle));
	uverbs_file_down(&u);
	device_down(&device);
	return 0;
}
