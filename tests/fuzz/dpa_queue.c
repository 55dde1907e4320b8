// SPDX-License-Identifier: BSD-2-Clause
/* See dpa_mailbox.h: queue pairs, receive and send queues, pools, and what they are made of and lead to. */
#include <string.h>

#include "dpa_mailbox.h"
#include "prm/cmd_dpa.h"
#include "prm/cmd_qp.h"
#include "prm/ib.h"
#include "prm/wqe.h"

#define LOG_ENTRIES 2u
#define RECORD_AT   1024u /* bytes behind the rings, in their block */

static uint32_t umem_of(uint8_t choice)
{
	return DPA_UMEM + dpa_number(KIND_PROCESS, choice);
}

static void work_queue_fill(uint8_t *wq, uint8_t first, uint8_t second, uint32_t log_stride)
{
	uint64_t memory = dpa_memory(second);

	prm_set(wq, WQ_TYPE, WQ_CYCLIC);
	prm_set(wq, WQ_PD, dpa_number(KIND_PD, second));
	prm_set(wq, WQ_UAR_PAGE, dpa_number(KIND_DUAR, second));
	prm_set(wq, WQ_LOG_STRIDE, log_stride);
	prm_set(wq, WQ_LOG_SIZE, LOG_ENTRIES);
	prm_set(wq, WQ_UMEM, umem_of(first));
	prm_set(wq, WQ_OFFSET, memory);
	prm_set(wq, WQ_DBR_UMEM, umem_of(first));
	prm_set(wq, WQ_DBR_ADDR, memory + RECORD_AT);
}

/* The first bits say the service and where it receives. */
static size_t qp_fill(uint8_t *box, uint8_t first, uint8_t second)
{
	static const uint8_t services[] = {QPC_SERVICE_RC, QPC_SERVICE_UC, QPC_SERVICE_UD,
					   QPC_SERVICE_DCI};
	static const uint8_t receives[] = {QPC_RQ_REGULAR, QPC_RQ_SRQ, QPC_RQ_NONE, QPC_RQ_REGULAR};
	uint8_t *c = box + CREATE_QP_CONTEXT;
	uint64_t memory = dpa_memory(second);

	prm_set(box, CMD_IN_OPCODE, PRM_OP_CREATE_QP);
	prm_set(box, CREATE_QP_UMEM, umem_of(first));
	prm_set(box, CREATE_QP_OFFSET, memory);
	prm_set(c, QPC_SERVICE, services[first >> 4 & 3]);
	prm_set(c, QPC_PM_STATE, QPC_PM_MIGRATED);
	prm_set(c, QPC_PD, dpa_number(KIND_PD, second));
	prm_set(c, QPC_LOG_RQ_SIZE, LOG_ENTRIES);
	prm_set(c, QPC_LOG_SQ_SIZE, LOG_ENTRIES);
	prm_set(c, QPC_UAR_PAGE, dpa_number(KIND_DUAR, second));
	prm_set(c, QPC_CQN_SEND, dpa_number(KIND_CQ, second));
	prm_set(c, QPC_CQN_RECV, dpa_number(KIND_CQ, second >> 1));
	prm_set(c, QPC_RQ_TYPE, receives[first >> 2 & 3]);
	prm_set(c, QPC_SRQN, dpa_number(KIND_RMP, second));
	prm_set(c, QPC_MASTER, first >> 6 & 1);
	prm_set(c, QPC_DBR_UMEM, umem_of(first));
	prm_set(c, QPC_DBR_ADDR, memory + RECORD_AT);
	return CREATE_QP_IN_BYTES;
}

static size_t rmp_fill(uint8_t *box, uint8_t first, uint8_t second)
{
	uint8_t *c = box + CREATE_RMP_CONTEXT;

	prm_set(box, CMD_IN_OPCODE, PRM_OP_CREATE_RMP);
	prm_set(c, RMPC_STATE, RMPC_STATE_RDY);
	work_queue_fill(c + RMPC_WQ, first, second, 6);
	prm_set(c + RMPC_WQ, WQ_TYPE, first >> 6 & 1 ? WQ_LINKED_LIST : WQ_CYCLIC);
	return CREATE_RMP_IN_BYTES;
}

static size_t rq_fill(uint8_t *box, uint8_t first, uint8_t second)
{
	uint8_t *c = box + RAW_CONTEXT;

	prm_set(box, CMD_IN_OPCODE, PRM_OP_CREATE_RQ);
	prm_set(c, RQC_KEEP_VLAN, 1);
	prm_set(c, RQC_FLUSH, first >> 5 & 1);
	prm_set(c, RQC_CQN, dpa_number(KIND_CQ, second));
	prm_set(c, RQC_MEMORY, first >> 6 & 1 ? RQC_OF_RMP : RQC_INLINE);
	prm_set(c, RQC_RMP, dpa_number(KIND_RMP, second));
	work_queue_fill(c + RQC_WQ, first, second, 4);
	return RQ_BYTES;
}

static size_t sq_fill(uint8_t *box, uint8_t first, uint8_t second)
{
	uint8_t *c = box + RAW_CONTEXT;

	prm_set(box, CMD_IN_OPCODE, PRM_OP_CREATE_SQ);
	prm_set(c, SQC_CQN, dpa_number(KIND_CQ, second));
	prm_set(c, SQC_FLUSH, 1);
	prm_set(c, SQC_MULTI_PACKET, first >> 6 & 1);
	prm_set(c, SQC_TIS_COUNT, 1);
	prm_set(c, SQC_TIS, dpa_number(KIND_TIS, second));
	work_queue_fill(c + SQC_WQ, first, second, 6);
	return SQ_BYTES;
}

static size_t tir_fill(uint8_t *box, uint8_t second)
{
	uint8_t *c = box + RAW_CONTEXT;

	prm_set(box, CMD_IN_OPCODE, PRM_OP_CREATE_TIR);
	prm_set(c, TIRC_INDIRECT, TIRC_DIRECT);
	prm_set(c, TIRC_RQN, dpa_number(KIND_RQ, second));
	return TIR_BYTES;
}

size_t dpa_queue_fill(uint8_t *box, enum dpa_kind kind, uint8_t first, uint8_t second)
{
	memset(box, 0, CMD_IN_BYTES);
	switch (kind) {
	case KIND_QP:
		return qp_fill(box, first, second);
	case KIND_RMP:
		return rmp_fill(box, first, second);
	case KIND_RQ:
		return rq_fill(box, first, second);
	case KIND_SQ:
		return sq_fill(box, first, second);
	case KIND_TIR:
		return tir_fill(box, second);
	default:
		prm_set(box, CMD_IN_OPCODE, PRM_OP_CREATE_TIS);
		return TIS_BYTES;
	}
}

/* ---- changes ---- */

static size_t qp_change(uint8_t *box, uint16_t opcode, uint32_t number)
{
	uint8_t *c = box + MODIFY_QP_CONTEXT, *ads = c + QPC_PRIMARY_PATH;

	prm_set(box, CMD_IN_OPCODE, opcode);
	prm_set(box, CMD_IN_NUMBER, number);
	if (opcode == PRM_OP_2ERR_QP || opcode == PRM_OP_2RST_QP)
		return SHORT_QP_IN_BYTES;
	prm_set(c, QPC_MTU, 3);
	prm_set(c, QPC_PM_STATE, QPC_PM_MIGRATED);
	prm_set(c, QPC_REMOTE_QPN, number);
	prm_set(c, QPC_RRE, 1);
	prm_set(c, QPC_RWE, 1);
	prm_set(c, QPC_RAE, 1);
	prm_set(c, QPC_RETRY_COUNT, 1);
	prm_set(ads, ADS_PORT, 1);
	prm_set(ads, ADS_LOOPBACK, 1);
	prm_set(ads, ADS_ACK_TIMEOUT, 1);
	return MODIFY_QP_IN_BYTES;
}

static size_t raw_change(uint8_t *box, uint16_t opcode, uint32_t number, uint32_t from, uint32_t to)
{
	prm_set(box, CMD_IN_OPCODE, opcode);
	prm_set(box, CMD_IN_NUMBER, number);
	prm_set(box, RAW_CURRENT_STATE, from);
	prm_set(box + RAW_CONTEXT, RQC_STATE, to);
	return RQ_BYTES;
}

static size_t rmp_change(uint8_t *box, uint32_t number)
{
	prm_set(box, CMD_IN_OPCODE, PRM_OP_MODIFY_RMP);
	prm_set(box, CMD_IN_NUMBER, number);
	prm_set(box, MODIFY_RMP_STATE, RMPC_STATE_RDY);
	prm_set(box, MODIFY_RMP_BITMASK, MODIFY_RMP_LWM);
	prm_set(box + MODIFY_RMP_CONTEXT + RMPC_WQ, WQ_LWM, 2);
	return MODIFY_RMP_IN_BYTES;
}

static size_t tir_change(uint8_t *box, uint32_t number)
{
	prm_set(box, CMD_IN_OPCODE, PRM_OP_MODIFY_TIR);
	prm_set(box, CMD_IN_NUMBER, number);
	prm_set(box, RAW_MODIFY_BITMASK, MODIFY_TIR_HASH | MODIFY_TIR_SELF_LB);
	return TIR_BYTES;
}

size_t dpa_change_fill(uint8_t *box, enum dpa_change change, uint8_t choice, enum dpa_kind *kind)
{
	static const struct {
		uint8_t kind;
		uint16_t opcode;
		uint8_t from, to;
	} changes[CHANGE_COUNT] = {
		[CHANGE_QP_INIT] = {KIND_QP, PRM_OP_RST2INIT_QP, 0, 0},
		[CHANGE_QP_RTR] = {KIND_QP, PRM_OP_INIT2RTR_QP, 0, 0},
		[CHANGE_QP_RTS] = {KIND_QP, PRM_OP_RTR2RTS_QP, 0, 0},
		[CHANGE_QP_ERR] = {KIND_QP, PRM_OP_2ERR_QP, 0, 0},
		[CHANGE_QP_RST] = {KIND_QP, PRM_OP_2RST_QP, 0, 0},
		[CHANGE_RQ_RDY] = {KIND_RQ, PRM_OP_MODIFY_RQ, RAW_STATE_RST, RAW_STATE_RDY},
		[CHANGE_RQ_ERR] = {KIND_RQ, PRM_OP_MODIFY_RQ, RAW_STATE_RDY, RAW_STATE_ERR},
		[CHANGE_RQ_RST] = {KIND_RQ, PRM_OP_MODIFY_RQ, RAW_STATE_ERR, RAW_STATE_RST},
		[CHANGE_SQ_RDY] = {KIND_SQ, PRM_OP_MODIFY_SQ, RAW_STATE_RST, RAW_STATE_RDY},
		[CHANGE_SQ_ERR] = {KIND_SQ, PRM_OP_MODIFY_SQ, RAW_STATE_RDY, RAW_STATE_ERR},
		[CHANGE_SQ_RST] = {KIND_SQ, PRM_OP_MODIFY_SQ, RAW_STATE_ERR, RAW_STATE_RST},
		[CHANGE_RMP_LIMIT] = {KIND_RMP, PRM_OP_MODIFY_RMP, 0, 0},
		[CHANGE_TIR_HASH] = {KIND_TIR, PRM_OP_MODIFY_TIR, 0, 0},
	};
	uint32_t number = dpa_number((enum dpa_kind)changes[change].kind, choice);

	*kind = (enum dpa_kind)changes[change].kind;
	switch (*kind) {
	case KIND_QP:
		return qp_change(box, changes[change].opcode, number);
	case KIND_RMP:
		return rmp_change(box, number);
	case KIND_TIR:
		return tir_change(box, number);
	default:
		return raw_change(box, changes[change].opcode, number, changes[change].from,
				  changes[change].to);
	}
}

/* ---- work requests: a control segment, a remote address, data ---- */

void dpa_wqe_fill(uint8_t wqe[DPA_WQE_BYTES], struct input *in)
{
	uint8_t queue = in_u8(in), opcode = in_u8(in), flags = in_u8(in), key = in_u8(in);
	uint8_t place = in_u8(in);
	uint16_t length = in_u16(in);
	uint32_t number = dpa_number(queue & 0x40 ? KIND_SQ : KIND_QP, queue & 0xbf);
	uint32_t mkey = dpa_number(KIND_MKEY, key) << 8;
	struct wqe_ctrl ctrl = {
		.opmod_idx_opcode = be32_of((uint32_t)(flags >> 4) << 8 | opcode),
		.qpn_ds = be32_of(number << 8 | 3),
		.fm_ce_se = flags & 0x0e,
	};
	struct wqe_raddr raddr = {.va = be64_of(dpa_memory(place)), .rkey = be32_of(mkey)};
	struct wqe_data data = {be32_of(length), be32_of(mkey), be64_of(dpa_memory(place))};

	memset(wqe, 0, DPA_WQE_BYTES);
	memcpy(wqe, &ctrl, sizeof(ctrl));
	memcpy(wqe + WQE_UNIT, &raddr, sizeof(raddr));
	memcpy(wqe + 2 * WQE_UNIT, &data, sizeof(data));
	/* of a send there is no remote address */
	if (opcode == WQE_OP_SEND) {
		memcpy(wqe + WQE_UNIT, &data, sizeof(data));
		wqe[7] = 2;
	}
}
