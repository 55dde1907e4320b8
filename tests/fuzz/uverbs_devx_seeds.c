// SPDX-License-Identifier: BSD-2-Clause
/*
 * Seeds of DEVX: umems, keys, and queue pairs that are connected with themselves, made by commands;
 * queries, answers through channels, and subscriptions to events.
 *
 * Numbers are those that a fresh device gives out: the first PD is 1 and the first umem the handle
 * after it.  Where they are not, as after the first input, the fuzzer still has the layouts.
 */
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <stdio.h>
#include <string.h>

#include "prm/cmd_cq_eq.h"
#include "prm/cmd_mkey.h"
#include "prm/cmd_qp.h"
#include "prm/eqe.h"
#include "prm/ib.h"
#include "uverbs_put.h"

#define MAILBOX 0x140u
#define ANSWER	0x220u
#define EQN	4u /* of the first completion vector */
#define UAR	1u
/* What is given out first. */
#define CQ_FIRST 128u
#define QP_FIRST 1024u
#define RQN	 1025u
#define TIRN	 1026u
#define SQN	 1027u

/* Handles, in the order of creation. */
enum handle { UAR_HANDLE, RING_UMEM, RECORDS_UMEM, PD, CQ, QP, RMP, MKEY, PSV };

static uint32_t umem_id(enum handle h)
{
	return h + 1;
}

static void begin_command(uint8_t in[MAILBOX], enum prm_opcode op, uint32_t number)
{
	memset(in, 0, MAILBOX);
	prm_set(in, CMD_IN_OPCODE, op);
	prm_set(in, CMD_IN_NUMBER, number);
}

static void put_create(struct seed *s, const uint8_t *in, size_t n)
{
	put_ioctl(s, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, 3);
	attr_handle(s, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0);
	attr_block(s, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, in, n, NULL, 0);
	attr_out(s, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, 64);
}

static void put_modify(struct seed *s, enum handle handle, const uint8_t *in, size_t n)
{
	put_ioctl(s, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, 3);
	attr_handle(s, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, handle);
	attr_block(s, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, in, n, NULL, 0);
	attr_out(s, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, 64);
}

static void put_query(struct seed *s, enum handle handle, enum prm_opcode op, uint32_t number)
{
	uint8_t in[MAILBOX];

	begin_command(in, op, number);
	put_ioctl(s, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, 3);
	attr_handle(s, MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, handle);
	attr_block(s, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, in, CMD_IN_BYTES, NULL, 0);
	attr_out(s, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, ANSWER);
}

static void put_general(struct seed *s, enum prm_opcode op, uint32_t op_mod)
{
	uint8_t in[MAILBOX];

	begin_command(in, op, 0);
	prm_set(in, CMD_IN_OP_MOD, op_mod);
	put_ioctl(s, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, 2);
	attr_block(s, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, in, CMD_IN_BYTES, NULL, 0);
	attr_out(s, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, ANSWER);
}

static void put_destroy(struct seed *s, enum handle handle)
{
	put_ioctl(s, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY, 1);
	attr_handle(s, MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, handle);
}

static void put_uar(struct seed *s)
{
	put_ioctl(s, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, 5);
	attr_handle(s, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0);
	attr_data(s, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, 8, 1);
	attr_out(s, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, 8);
	attr_out(s, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, 4);
	attr_out(s, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, 4);
}

/* The address of an attribute is data; a place among the areas is a block of eight bytes. */
static void put_umem(struct seed *s, unsigned area, uint64_t length)
{
	const struct patch at[] = {PLACE_AT(0, area)};
	const uint8_t address[8] = {0};

	put_ioctl(s, MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG, 5);
	attr_handle(s, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, 0);
	attr_block(s, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, address, sizeof(address), at,
		   sizeof(at) / sizeof(at[0]));
	attr_data(s, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, 8, length);
	attr_data(s, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, 4, IB_ACCESS_LOCAL_WRITE);
	attr_out(s, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, 4);
}

static void put_queues(struct seed *s, uint32_t pdn, uint32_t cqn)
{
	uint8_t in[MAILBOX], *c = in + CREATE_CQ_CONTEXT;

	begin_command(in, PRM_OP_ALLOC_PD, 0);
	put_create(s, in, CMD_IN_BYTES);

	begin_command(in, PRM_OP_CREATE_CQ, 0);
	prm_set(in, CREATE_CQ_UMEM, umem_id(RING_UMEM));
	prm_set(c, CQC_DBR_UMEM, umem_id(RECORDS_UMEM));
	prm_set(c, CQC_LOG_SIZE, 6);
	prm_set(c, CQC_UAR_PAGE, UAR);
	prm_set(c, CQC_EQN, EQN);
	put_create(s, in, CREATE_CQ_IN_BYTES);

	begin_command(in, PRM_OP_CREATE_QP, 0);
	c = in + CREATE_QP_CONTEXT;
	prm_set(in, CREATE_QP_UMEM, umem_id(RING_UMEM));
	prm_set(in, CREATE_QP_OFFSET, 8192);
	prm_set(c, QPC_PD, pdn);
	prm_set(c, QPC_LOG_RQ_SIZE, 4);
	prm_set(c, QPC_LOG_SQ_SIZE, 6);
	prm_set(c, QPC_UAR_PAGE, UAR);
	prm_set(c, QPC_CQN_SEND, cqn);
	prm_set(c, QPC_CQN_RECV, cqn);
	prm_set(c, QPC_DBR_UMEM, umem_id(RECORDS_UMEM));
	prm_set(c, QPC_DBR_ADDR, 64);
	put_create(s, in, CREATE_QP_IN_BYTES);

	begin_command(in, PRM_OP_CREATE_RMP, 0);
	c = in + CREATE_RMP_CONTEXT;
	prm_set(c, RMPC_STATE, RMPC_STATE_RDY);
	c += RMPC_WQ;
	prm_set(c, WQ_PD, pdn);
	prm_set(c, WQ_LOG_STRIDE, 5);
	prm_set(c, WQ_LOG_SIZE, 4);
	prm_set(c, WQ_UMEM, umem_id(RING_UMEM));
	prm_set(c, WQ_DBR_UMEM, umem_id(RECORDS_UMEM));
	prm_set(c, WQ_DBR_ADDR, 128);
	put_create(s, in, CREATE_RMP_IN_BYTES);
}

/* Handles and numbers follow what put_queues has made. */
static void put_raw_queues(struct seed *s, uint32_t pdn, uint32_t cqn, uint32_t rqn)
{
	uint8_t in[MAILBOX], *c = in + RAW_CONTEXT;

	begin_command(in, PRM_OP_ALLOC_TRANSPORT_DOMAIN, 0);
	put_create(s, in, CMD_IN_BYTES);
	begin_command(in, PRM_OP_CREATE_TIS, 0);
	prm_set(c, TISC_DOMAIN, 1);
	put_create(s, in, TIS_BYTES);

	begin_command(in, PRM_OP_CREATE_RQ, 0);
	prm_set(c, RQC_CQN, cqn);
	prm_set(c + RQC_WQ, WQ_TYPE, WQ_CYCLIC);
	prm_set(c + RQC_WQ, WQ_PD, pdn);
	prm_set(c + RQC_WQ, WQ_LOG_STRIDE, 4);
	prm_set(c + RQC_WQ, WQ_LOG_SIZE, 4);
	prm_set(c + RQC_WQ, WQ_UMEM, umem_id(RING_UMEM));
	prm_set(c + RQC_WQ, WQ_DBR_UMEM, umem_id(RECORDS_UMEM));
	prm_set(c + RQC_WQ, WQ_DBR_ADDR, 192);
	put_create(s, in, RQ_BYTES);

	begin_command(in, PRM_OP_CREATE_RQT, 0);
	prm_set(c, RQTC_MAX, 2);
	prm_set(c, RQTC_ACTUAL, 1);
	prm_set(c, RQTC_ENTRY(0), rqn);
	put_create(s, in, RQT_FIXED_BYTES + RQTC_ENTRY_BYTES);

	begin_command(in, PRM_OP_CREATE_TIR, 0);
	prm_set(c, TIRC_DOMAIN, 1);
	prm_set(c, TIRC_INDIRECT, TIRC_BY_TABLE);
	prm_set(c, TIRC_RQT, 1);
	prm_set(c, TIRC_HASH, TIRC_HASH_TOEPLITZ);
	prm_set(c, TIRC_OUTER_FIELDS, TIRC_SRC_IP);
	put_create(s, in, TIR_BYTES);

	begin_command(in, PRM_OP_CREATE_SQ, 0);
	prm_set(c, SQC_CQN, cqn);
	prm_set(c, SQC_TIS_COUNT, 1);
	prm_set(c, SQC_TIS, 1);
	prm_set(c + SQC_WQ, WQ_TYPE, WQ_CYCLIC);
	prm_set(c + SQC_WQ, WQ_PD, pdn);
	prm_set(c + SQC_WQ, WQ_UAR_PAGE, UAR);
	prm_set(c + SQC_WQ, WQ_LOG_STRIDE, 6);
	prm_set(c + SQC_WQ, WQ_LOG_SIZE, 4);
	prm_set(c + SQC_WQ, WQ_UMEM, umem_id(RING_UMEM));
	prm_set(c + SQC_WQ, WQ_DBR_UMEM, umem_id(RECORDS_UMEM));
	prm_set(c + SQC_WQ, WQ_DBR_ADDR, 256);
	put_create(s, in, SQ_BYTES);
}

static void put_keys(struct seed *s, uint32_t pdn, enum mkc_access_mode mode)
{
	uint8_t in[MAILBOX], *c = in + CREATE_MKEY_CONTEXT;

	begin_command(in, PRM_OP_CREATE_MKEY, 0);
	prm_set(c, MKC_PD, pdn);
	prm_set(c, MKC_QPN, IB_QPN_MASK);
	prm_set(c, MKC_ACCESS_MODE_LOW, mode);
	prm_set(c, MKC_LOCAL_READ, 1);
	prm_set(c, MKC_LOCAL_WRITE, 1);
	prm_set(c, MKC_LENGTH, 4096);
	if (mode == MKC_MODE_MTT) {
		prm_set(in, CREATE_MKEY_UMEM, umem_id(RING_UMEM));
	} else {
		prm_set(c, MKC_FREE, 1);
		prm_set(c, MKC_UMR, 1);
		prm_set(c, MKC_BSF, 1);
		prm_set(c, MKC_BSF_OCTOWORDS, 4);
		prm_set(c, MKC_LIST_OCTOWORDS, 4);
		prm_set(c, MKC_LOG_ENTRY_BYTES, 12);
	}
	put_create(s, in, CREATE_MKEY_IN_BYTES);

	begin_command(in, PRM_OP_CREATE_PSV, pdn);
	prm_set(in, CREATE_PSV_COUNT, 1);
	put_create(s, in, CMD_IN_BYTES);
}

static void put_connect(struct seed *s, uint32_t qpn)
{
	static const enum prm_opcode steps[] = {
		PRM_OP_RST2INIT_QP, PRM_OP_INIT2INIT_QP, PRM_OP_INIT2RTR_QP, PRM_OP_RTR2RTS_QP,
		PRM_OP_RTS2RTS_QP,  PRM_OP_2ERR_QP,	 PRM_OP_2RST_QP,
	};
	uint8_t in[MAILBOX], *c = in + MODIFY_QP_CONTEXT;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		begin_command(in, steps[i], qpn);
		prm_set(c, QPC_RRE, 1);
		prm_set(c, QPC_MTU, IB_MTU_1024);
		prm_set(c, QPC_REMOTE_QPN, qpn);
		prm_set(c, QPC_RETRY_COUNT, 7);
		prm_set(c, QPC_RNR_RETRY, 7);
		prm_set(c + QPC_PRIMARY_PATH, ADS_PORT, 1);
		prm_set(c + QPC_PRIMARY_PATH, ADS_HOP_LIMIT, 1);
		if (steps[i] == PRM_OP_INIT2INIT_QP) {
			prm_set(in, MODIFY_QP_OPT, QP_OPT_DRAIN_SIGERR);
			prm_set(c, QPC_DRAIN_SIGERR, 1);
		}
		put_modify(s, QP, in, MODIFY_QP_IN_BYTES);
	}
}

static void put_channels(struct seed *s, uint32_t cqn)
{
	const uint16_t types[] = {EQE_COMP, EQE_CQ_ERROR};
	const uint16_t port = EQE_PORT_CHANGE;
	uint8_t in[MAILBOX];

	put_ioctl(s, MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC, 1);
	attr_handle(s, MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE, 0);
	put_ioctl(s, MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC,
		  2);
	attr_handle(s, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, 0);
	attr_data(s, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, 4, 0);
	/* Descriptors in the order of creation: the context's events, answers, events. */
	begin_command(in, PRM_OP_QUERY_CQ, cqn);
	put_ioctl(s, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY, 5);
	attr_handle(s, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE, CQ);
	attr_block(s, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN, in, CMD_IN_BYTES, NULL, 0);
	attr_fd(s, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD, 1);
	attr_data(s, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID, 8, 77);
	attr_data(s, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN, 8, QUERY_CQ_OUT_BYTES);
	put_ioctl(s, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, 4);
	attr_fd(s, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, 2);
	attr_handle(s, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, CQ);
	attr_block(s, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, types, sizeof(types), NULL,
		   0);
	attr_data(s, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, 8, 99);
	put_ioctl(s, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, 2);
	attr_fd(s, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, 2);
	attr_block(s, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, &port, sizeof(port), NULL,
		   0);
	put_u8(s, OP_PORT_EVENT);
	put_u8(s, 0);
	put_u8(s, OP_READ_EVENT);
	put_u8(s, 2);
}

/* To ready and to the error, and what can be changed in between; then an event queue. */
static void put_raw_changes(struct seed *s, enum handle td)
{
	static const struct {
		enum prm_opcode op;
		unsigned behind; /* the domain */
		uint32_t number, state;
		uint64_t mask;
	} changes[] = {
		{PRM_OP_MODIFY_TIS, 1, 1, 0, MODIFY_TIS_PRIO},
		{PRM_OP_MODIFY_RQ, 2, RQN, RAW_STATE_RDY, MODIFY_RQ_VLAN},
		{PRM_OP_MODIFY_RQT, 3, 1, 0, MODIFY_RQT_LIST},
		{PRM_OP_MODIFY_TIR, 4, TIRN, 0, MODIFY_TIR_HASH | MODIFY_TIR_SELF_LB},
		{PRM_OP_MODIFY_SQ, 5, SQN, RAW_STATE_RDY, 0},
		{PRM_OP_MODIFY_SQ, 5, SQN, RAW_STATE_ERR, 0},
		{PRM_OP_MODIFY_RQ, 2, RQN, RAW_STATE_ERR, 0},
	};
	uint8_t in[MAILBOX], *c = in + RAW_CONTEXT;

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		begin_command(in, changes[i].op, changes[i].number);
		prm_set(in, RAW_CURRENT_STATE,
			changes[i].state == RAW_STATE_ERR ? RAW_STATE_RDY : RAW_STATE_RST);
		prm_set(in, RAW_MODIFY_BITMASK, changes[i].mask);
		if (changes[i].state)
			prm_set(c, RQC_STATE, changes[i].state);
		if (changes[i].op == PRM_OP_MODIFY_RQT) {
			prm_set(c, RQTC_ACTUAL, 2);
			prm_set(c, RQTC_ENTRY(0), RQN);
			prm_set(c, RQTC_ENTRY(1), RQN);
		}
		put_modify(s, td + changes[i].behind, in,
			   changes[i].op == PRM_OP_MODIFY_RQT
				   ? RQT_FIXED_BYTES + 2 * RQTC_ENTRY_BYTES
				   : TIR_BYTES);
	}

	begin_command(in, PRM_OP_CREATE_EQ, 0);
	prm_set(in, CREATE_EQ_UMEM, umem_id(RING_UMEM));
	memset(in + CREATE_EQ_EVENTS, 0xff, 32);
	c = in + CREATE_EQ_CONTEXT;
	prm_set(c, EQC_LOG_SIZE, 2);
	prm_set(c, EQC_UAR_PAGE, UAR);
	prm_set(c, EQC_STATE, EQC_STATE_ARMED);
	put_create(s, in, CREATE_EQ_IN_BYTES);
}

/* On the Ethernet device; all are destroyed with the file. */
static void raw_queue_seed(struct seed *s)
{
	const enum handle td = RMP + 1;

	put_u8(s, 1);
	put_context_by_ioctl(s);
	put_uar(s);
	put_umem(s, RING(0), 65536);
	put_umem(s, AREA_RECORDS, 4096);
	put_queues(s, 1, CQ_FIRST);
	put_raw_queues(s, 1, CQ_FIRST, RQN);
	put_raw_changes(s, td);
	put_query(s, td + 1, PRM_OP_QUERY_TIS, 1);
	put_query(s, td + 2, PRM_OP_QUERY_RQ, RQN);
	put_query(s, td + 3, PRM_OP_QUERY_RQT, 1);
	put_query(s, td + 5, PRM_OP_QUERY_SQ, SQN);
	put_end(s, "devx-raw");
}

void devx_seeds(struct seed *s)
{
	/* the last ones are wrong */
	const uint32_t cqns[] = {CQ_FIRST, CQ_FIRST, 2};
	const uint32_t qpns[] = {QP_FIRST, QP_FIRST, 0};
	char name[48];

	for (unsigned dev = 0; dev < 2; dev++)
		for (unsigned i = 0; i < sizeof(cqns) / sizeof(cqns[0]); i++) {
			put_u8(s, dev);
			put_context_by_ioctl(s);
			put_uar(s);
			put_umem(s, RING(0), 65536);
			put_umem(s, AREA_RECORDS, 4096);
			put_queues(s, 1, cqns[i]);
			put_keys(s, 1, i ? MKC_MODE_KLM : MKC_MODE_MTT);
			put_connect(s, qpns[i]);
			put_channels(s, cqns[i]);
			put_query(s, CQ, PRM_OP_QUERY_CQ, cqns[i]);
			put_query(s, QP, PRM_OP_QUERY_QP, qpns[i]);
			put_query(s, RMP, PRM_OP_QUERY_RMP, qpns[i]);
			put_query(s, MKEY, PRM_OP_QUERY_MKEY, qpns[i]);
			put_general(s, PRM_OP_QUERY_HCA_CAP, 1);
			put_general(s, PRM_OP_QUERY_HCA_VPORT_CONTEXT, 0);
			for (enum handle h = PSV; h >= PD; h--)
				put_destroy(s, h);
			snprintf(name, sizeof(name), "devx-%u-%u", dev, i);
			put_end(s, name);
		}
	raw_queue_seed(s);
}
