/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of raw packet queues by the commands of DEVX: receive and send queues in the memory of a
 * process of a DPA, which is a stand-in, and what they are made of.
 */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "adapter_device.h"
#include "check.h"
#include "devx_commands.h"
#include "driver/devx/devx.h"
#include "driver/uverbs/objects/objects.h"
#include "prm/cmd_cq_eq.h"
#include "prm/cmd.h"
#include "prm/cmd_qp.h"

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

static inline void *fake_part(struct devx_obj *obj, uint64_t daddr, uint64_t bytes)
{
	CHECK(obj == process);
	return daddr >= HEAP && range_inside(daddr - HEAP, bytes, HEAP_BYTES)
		       ? heap + (daddr - HEAP)
		       : NULL;
}

static const struct devx_class fake_process_class = {.part = fake_part};

static inline void publish_process(void)
{
	process = calloc(1, sizeof(*process));
	CHECK(process);
	devx_obj_init(process, &fake_process_class, PROCESS);
	CHECK(!uobj_publish(&u.file, &process->uobj, &udevx_class));
}

/* ---- commands ---- */

static inline void begin(enum prm_opcode op)
{
	memset(in, 0, sizeof(commands.in));
	prm_set(in, CMD_IN_OPCODE, op);
}

static inline uint8_t *context(void)
{
	return in + RAW_CONTEXT;
}

static inline int create(uint16_t in_len, uint64_t *handle)
{
	return devx_command_create(&commands, in_len, handle);
}

static inline int destroy(uint64_t handle)
{
	return devx_command_destroy(&commands, handle);
}

static inline int modify(uint64_t handle, uint16_t in_len)
{
	return devx_command_modify(&commands, handle, in_len);
}

static inline int query(enum prm_opcode op, uint64_t handle, uint32_t number, uint16_t out_len)
{
	return devx_command_query(&commands, op, handle, number, out_len);
}

static inline uint32_t made(uint16_t in_len, uint64_t *handle)
{
	CHECK(!create(in_len, handle));
	return prm_get32(out, CMD_OUT_NUMBER);
}

static inline void refused(uint16_t in_len, enum cmd_status status)
{
	uint64_t handle;

	CHECK(create(in_len, &handle) == -EREMOTEIO);
	CHECK(prm_get(out, CMD_OUT_STATUS) == status);
}

static inline int move(enum prm_opcode op, uint64_t handle, uint32_t number, uint32_t from,
		       uint32_t to)
{
	begin(op);
	prm_set(in, CMD_IN_NUMBER, number);
	prm_set(in, RAW_CURRENT_STATE, from);
	prm_set(context(), RQC_STATE, to);
	return modify(handle, RQ_BYTES);
}

static inline uint8_t *heap_take(uint32_t bytes)
{
	uint8_t *at = heap + heap_used;

	heap_used += (bytes + 63) / 64 * 64;
	CHECK(heap_used <= HEAP_BYTES);
	return at;
}

static inline uint64_t daddr(const void *at)
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

static inline void queue_down(struct queue *q)
{
	CHECK(!destroy(q->handle) && !destroy(q->cq_handle));
}

static inline void queue_begin(struct queue *q)
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
static inline const struct cqe64 *polled(struct queue *q)
{
	const struct cqe64 *cqe = &q->cqes[q->ci % ENTRIES];

	if ((cqe->op_own & 1) != (q->ci / ENTRIES & 1) || cqe->op_own >> 4 == CQE_OP_INVALID)
		return NULL;
	q->ci++;
	return cqe;
}

static inline void rq_request(const struct queue *q)
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

static inline void rq_up(struct queue *q)
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

static inline void sq_request(const struct queue *q)
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

static inline void sq_up(struct queue *q)
{
	queue_begin(q);
	sq_request(q);
	q->number = made(SQ_BYTES, &q->handle);
	CHECK(!move(PRM_OP_MODIFY_SQ, q->handle, q->number, RAW_STATE_RST, RAW_STATE_RDY));
}

/* A frame of a kind of its own; only the bell after it sends it. */
static inline void put_frame(const struct queue *q, uint16_t block, uint8_t kind, uint32_t lkey)
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

static inline bool ring(const struct queue *q, uint16_t pi)
{
	return qp_bell(device.adapter[ETHERNET], duar, q->number, pi);
}

static inline void tir_request(const struct queue *rq)
{
	begin(PRM_OP_CREATE_TIR);
	prm_set(context(), TIRC_DOMAIN, tdn);
	prm_set(context(), TIRC_RQN, rq->number);
}

static inline struct flow *rule_to(uint64_t tir)
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

/* ---- what all have ---- */

static inline void objects_up(void)
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

/* 77 if the machine does not allow it. */
static inline int queues_up(void)
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
	return 0;
}

static inline int queues_down(void)
{
	mkey_destroy(device.adapter[ETHERNET], mr);
	CHECK(!destroy(tis_handle) && !destroy(td_handle) && !destroy(pd_handle) &&
	      !destroy(duar_handle) && !destroy(process->uobj.handle));
	uverbs_file_down(&u);
	device_down(&device);
	return 0;
}
