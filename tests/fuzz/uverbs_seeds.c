// SPDX-License-Identifier: BSD-2-Clause
/*
 * Seeds of the uverbs target: what a program does, from the context to traffic on a queue pair that
 * is connected with itself, in each of the three forms of the ABI.
 */
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <string.h>

#include "prm/cmd_flow.h"
#include "prm/ib.h"
#include "uverbs_put.h"

/* ---- the steps; a command is "inside" the ioctl, or a write(2) ---- */

enum form { BY_IOCTL, BY_WRITE };

static void put_command(struct seed *s, enum form form, uint32_t number, const void *core,
			size_t core_len, const void *uhw, size_t uhw_len, uint32_t out,
			uint32_t uhw_out, const struct patch *patches, unsigned npatches)
{
	uint8_t body[512] = {0};

	if (form == BY_WRITE) {
		put_u8(s, OP_COMMAND);
		put_u8(s, number);
		put_u8(s, out ? 1 : 0);
		put_u16(s, (out + uhw_out) / 4);
		memcpy(body, core, core_len);
		if (uhw_len)
			memcpy(body + core_len, uhw, uhw_len);
		put_block(s, body, core_len + uhw_len, patches, npatches);
		return;
	}
	put_ioctl(s, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, 5);
	attr_data(s, UVERBS_ATTR_WRITE_CMD, 8, number);
	attr_block(s, UVERBS_ATTR_CORE_IN, core, core_len, patches, npatches);
	attr_out(s, UVERBS_ATTR_CORE_OUT, out);
	attr_block(s, UVERBS_ATTR_UHW_IN, uhw, uhw_len, NULL, 0);
	attr_out(s, UVERBS_ATTR_UHW_OUT, uhw_out);
}

static void put_context(struct seed *s, enum form form)
{
	const struct mlx5_ib_alloc_ucontext_req_v2 uhw = {
		.total_num_bfregs = 16,
		.num_low_latency_bfregs = 4,
		.flags = 1,
		.max_cqe_version = 1,
		.lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR,
	};
	const struct ib_uverbs_get_context cmd = {0};

	if (form == BY_WRITE) {
		put_command(s, form, IB_USER_VERBS_CMD_GET_CONTEXT, &cmd, sizeof(cmd), &uhw,
			    sizeof(uhw), sizeof(struct ib_uverbs_get_context_resp), 72, NULL, 0);
		return;
	}
	put_ioctl(s, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, 4);
	attr_out(s, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, 4);
	attr_out(s, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, 8);
	attr_block(s, UVERBS_ATTR_UHW_IN, &uhw, sizeof(uhw), NULL, 0);
	attr_out(s, UVERBS_ATTR_UHW_OUT, 72);
	put_ioctl(s, UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, 1);
	attr_handle(s, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0);
}

/* Handles: PD 0, MR 1. */
static void put_pd_and_mr(struct seed *s, enum form form)
{
	const struct ib_uverbs_alloc_pd pd = {0};
	const struct ib_uverbs_reg_mr mr = {
		.length = 65536,
		.access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};
	const struct patch at[] = {PLACE_AT(offsetof(struct ib_uverbs_reg_mr, start), AREA_DATA),
				   PLACE_AT(offsetof(struct ib_uverbs_reg_mr, hca_va), AREA_DATA)};

	put_command(s, form, IB_USER_VERBS_CMD_ALLOC_PD, &pd, sizeof(pd), NULL, 0,
		    sizeof(struct ib_uverbs_alloc_pd_resp), sizeof(struct mlx5_ib_alloc_pd_resp),
		    NULL, 0);
	put_command(s, form, IB_USER_VERBS_CMD_REG_MR, &mr, sizeof(mr), NULL, 0,
		    sizeof(struct ib_uverbs_reg_mr_resp), 0, at, array_size(at));
}

/* Handle 2; ring 0, record at the first bytes. */
static void put_cq(struct seed *s, enum form form)
{
	const struct mlx5_ib_create_cq uhw = {.cqe_size = 64};
	const struct patch at[] = {
		PLACE_AT(offsetof(struct mlx5_ib_create_cq, buf_addr), RING(0)),
		PLACE_AT(offsetof(struct mlx5_ib_create_cq, db_addr), AREA_RECORDS),
	};
	const struct ib_uverbs_create_comp_channel channel = {0};

	put_command(s, form, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &channel, sizeof(channel), NULL,
		    0, sizeof(struct ib_uverbs_create_comp_channel_resp), 0, NULL, 0);
	if (form == BY_WRITE) {
		const struct ib_uverbs_create_cq cmd = {.cqe = 63, .comp_channel = -1};
		const struct patch both[] = {
			PLACE_AT(sizeof(cmd) + offsetof(struct mlx5_ib_create_cq, buf_addr),
				 RING(0)),
			PLACE_AT(sizeof(cmd) + offsetof(struct mlx5_ib_create_cq, db_addr),
				 AREA_RECORDS),
			{offsetof(struct ib_uverbs_create_cq, comp_channel) / 4, PATCH_FD | 1 << 2},
		};

		put_command(s, form, IB_USER_VERBS_CMD_CREATE_CQ, &cmd, sizeof(cmd), &uhw,
			    sizeof(uhw), sizeof(struct ib_uverbs_create_cq_resp),
			    sizeof(struct mlx5_ib_create_cq_resp), both, array_size(both));
		return;
	}
	put_ioctl(s, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, 8);
	attr_handle(s, UVERBS_ATTR_CREATE_CQ_HANDLE, 0);
	attr_data(s, UVERBS_ATTR_CREATE_CQ_CQE, 4, 63);
	attr_data(s, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, 77);
	attr_data(s, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, 0);
	attr_out(s, UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4);
	put_u8(s, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL);
	put_u8(s, KIND_FD);
	put_u8(s, 1);
	attr_block(s, UVERBS_ATTR_UHW_IN, &uhw, sizeof(uhw), at, array_size(at));
	attr_out(s, UVERBS_ATTR_UHW_OUT, sizeof(struct mlx5_ib_create_cq_resp));
}

/* Handle 3; ring 2. */
static void put_srq(struct seed *s, enum form form)
{
	const struct ib_uverbs_create_srq cmd = {.pd_handle = 0, .max_wr = 31, .max_sge = 1};
	const struct mlx5_ib_create_srq uhw = {0};
	const struct patch both[] = {
		PLACE_AT(sizeof(cmd) + offsetof(struct mlx5_ib_create_srq, buf_addr), RING(2)),
		PLACE_AT(sizeof(cmd) + offsetof(struct mlx5_ib_create_srq, db_addr),
			 AREA_RECORDS | 2 << 3),
	};
	const struct patch alone[] = {
		PLACE_AT(offsetof(struct mlx5_ib_create_srq, buf_addr), RING(2)),
		PLACE_AT(offsetof(struct mlx5_ib_create_srq, db_addr), AREA_RECORDS | 2 << 3),
	};

	if (form == BY_WRITE) {
		put_command(s, form, IB_USER_VERBS_CMD_CREATE_SRQ, &cmd, sizeof(cmd), &uhw,
			    sizeof(uhw), sizeof(struct ib_uverbs_create_srq_resp),
			    sizeof(struct mlx5_ib_create_srq_resp), both, array_size(both));
		return;
	}
	put_ioctl(s, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, 12);
	attr_handle(s, UVERBS_ATTR_CREATE_SRQ_HANDLE, 0);
	attr_handle(s, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, 0);
	attr_data(s, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 8, 78);
	attr_data(s, UVERBS_ATTR_CREATE_SRQ_MAX_WR, 4, 31);
	attr_data(s, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 4, 1);
	attr_data(s, UVERBS_ATTR_CREATE_SRQ_LIMIT, 4, 0);
	attr_data(s, UVERBS_ATTR_CREATE_SRQ_TYPE, 8, IB_UVERBS_SRQT_BASIC);
	attr_out(s, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, 4);
	attr_out(s, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, 4);
	attr_out(s, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, 4);
	attr_block(s, UVERBS_ATTR_UHW_IN, &uhw, sizeof(uhw), alone, array_size(alone));
	attr_out(s, UVERBS_ATTR_UHW_OUT, sizeof(struct mlx5_ib_create_srq_resp));
}

/* Handle 4; ring 1. */
static void put_qp(struct seed *s, enum form form, uint32_t type)
{
	const struct mlx5_ib_create_qp uhw = {
		.sq_wqe_count = 64, .rq_wqe_count = 64, .rq_wqe_shift = 6};
	const struct ib_uverbs_qp_cap cap = {16, 16, 1, 1, 64};

	if (form == BY_WRITE) {
		const struct ib_uverbs_create_qp cmd = {
			.send_cq_handle = 2,
			.recv_cq_handle = 2,
			.max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.qp_type = (uint8_t)type,
		};
		const struct patch both[] = {
			PLACE_AT(sizeof(cmd) + offsetof(struct mlx5_ib_create_qp, buf_addr),
				 RING(1)),
			PLACE_AT(sizeof(cmd) + offsetof(struct mlx5_ib_create_qp, db_addr),
				 AREA_RECORDS | 1 << 3),
		};

		put_command(s, form, IB_USER_VERBS_CMD_CREATE_QP, &cmd, sizeof(cmd), &uhw,
			    sizeof(uhw), sizeof(struct ib_uverbs_create_qp_resp), 8, both,
			    array_size(both));
		return;
	}
	put_ioctl(s, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, 11);
	attr_handle(s, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
	attr_handle(s, UVERBS_ATTR_CREATE_QP_PD_HANDLE, 0);
	attr_handle(s, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, 2);
	attr_handle(s, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, 2);
	attr_data(s, UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, 79);
	attr_block(s, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap), NULL, 0);
	attr_data(s, UVERBS_ATTR_CREATE_QP_TYPE, 8, type);
	attr_out(s, UVERBS_ATTR_CREATE_QP_RESP_CAP, sizeof(cap));
	attr_out(s, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4);
	attr_block(s, UVERBS_ATTR_UHW_IN, &uhw, sizeof(uhw),
		   (const struct patch[]){PLACE_AT(offsetof(struct mlx5_ib_create_qp, buf_addr),
						   RING(1)),
					  PLACE_AT(offsetof(struct mlx5_ib_create_qp, db_addr),
						   AREA_RECORDS | 1 << 3)},
		   2);
	attr_out(s, UVERBS_ATTR_UHW_OUT, sizeof(struct mlx5_ib_create_qp_resp));
}

static void put_modify(struct seed *s, enum form form, struct ib_uverbs_modify_qp *cmd,
		       uint32_t state, uint32_t mask)
{
	cmd->qp_state = (uint8_t)state;
	cmd->attr_mask = mask;
	put_command(s, form, IB_USER_VERBS_CMD_MODIFY_QP, cmd, sizeof(*cmd), NULL, 0, 0, 0, NULL,
		    0);
}

#define TO_INIT	  (IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT)
#define TO_RTR_UC (IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN)
#define TO_RTS	  (IB_QP_STATE | IB_QP_SQ_PSN)

static void put_connect(struct seed *s, enum form form, unsigned dev, uint32_t type)
{
	static const uint32_t masks[][3] = {
		[IB_QPT_RC] = {TO_INIT | IB_QP_ACCESS_FLAGS,
			       TO_RTR_UC | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
			       TO_RTS | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
				       IB_QP_MAX_QP_RD_ATOMIC},
		[IB_QPT_UC] = {TO_INIT | IB_QP_ACCESS_FLAGS, TO_RTR_UC, TO_RTS},
		[IB_QPT_UD] = {TO_INIT | IB_QP_QKEY, IB_QP_STATE, TO_RTS},
	};
	struct ib_uverbs_modify_qp cmd = {
		.dest = {.dgid = {0xfe, 0x80, [8] = 2, [15] = (uint8_t)(dev + 1)},
			 .dlid = 1,
			 .is_global = (uint8_t)dev,
			 .port_num = 1},
		.qp_handle = 4,
		.qkey = 0x11111111,
		.dest_qp_num = 1024,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE,
		.path_mtu = IB_MTU_1024,
		.port_num = 1,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
	};

	for (unsigned i = 0; i < 3; i++)
		put_modify(s, form, &cmd, IB_QPS_INIT + i, masks[type][i]);
}

/* A NOP in the send ring (behind 64 receives of 64 bytes), its record, the bell. */
static void put_traffic(struct seed *s)
{
	static const uint8_t nop[16] = {[4] = 0, [5] = 0x04, [7] = 1, [11] = 8};
	static const uint8_t record[8] = {[7] = 1};

	put_u8(s, OP_STORE);
	put_u8(s, RING(1));
	put_u16(s, 64 * 64 / 4);
	put_u8(s, sizeof(nop));
	put_bytes(s, nop, sizeof(nop));
	put_u8(s, OP_STORE);
	put_u8(s, AREA_RECORDS);
	put_u16(s, 64 / 4);
	put_u8(s, sizeof(record));
	put_bytes(s, record, sizeof(record));
	put_u8(s, OP_BELLS);
	put_u8(s, 4);
	put_u8(s, OP_BELLS);
	put_u8(s, 2);
	put_u8(s, OP_READ_EVENT);
	put_u8(s, 1);
}

static void put_queries(struct seed *s, enum form form)
{
	const struct ib_uverbs_query_qp qp = {.qp_handle = 4, .attr_mask = UINT32_MAX};
	const struct ib_uverbs_query_srq srq = {.srq_handle = 3};
	const struct ib_uverbs_modify_srq modify_srq = {
		.srq_handle = 3, .attr_mask = 2, .srq_limit = 5};
	const struct ib_uverbs_query_port port = {.port_num = 1};
	const struct ib_uverbs_rereg_mr rereg = {.flags = 4, .mr_handle = 1, .access_flags = 1};
	const struct ib_uverbs_query_device device = {0};
	const struct ib_uverbs_create_ah ah = {.attr = {.dlid = 1, .port_num = 1}};
	const struct mlx5_ib_resize_cq resize_uhw = {.cqe_size = 64};
	const struct ib_uverbs_resize_cq resize = {.cq_handle = 2, .cqe = 127};
	const struct patch resize_at[] = {PLACE_AT(sizeof(resize), RING(0) | 2 << 3)};

	put_command(s, form, IB_USER_VERBS_CMD_QUERY_QP, &qp, sizeof(qp), NULL, 0,
		    sizeof(struct ib_uverbs_query_qp_resp), 0, NULL, 0);
	put_command(s, form, IB_USER_VERBS_CMD_QUERY_SRQ, &srq, sizeof(srq), NULL, 0,
		    sizeof(struct ib_uverbs_query_srq_resp), 0, NULL, 0);
	put_command(s, form, IB_USER_VERBS_CMD_MODIFY_SRQ, &modify_srq, sizeof(modify_srq), NULL, 0,
		    0, 0, NULL, 0);
	put_command(s, form, IB_USER_VERBS_CMD_QUERY_PORT, &port, sizeof(port), NULL, 0,
		    sizeof(struct ib_uverbs_query_port_resp), 0, NULL, 0);
	put_command(s, form, IB_USER_VERBS_CMD_REREG_MR, &rereg, sizeof(rereg), NULL, 0,
		    sizeof(struct ib_uverbs_rereg_mr_resp), 0, NULL, 0);
	put_command(s, form, IB_USER_VERBS_CMD_QUERY_DEVICE, &device, sizeof(device), NULL, 0,
		    sizeof(struct ib_uverbs_query_device_resp), 0, NULL, 0);
	put_command(s, form, IB_USER_VERBS_CMD_CREATE_AH, &ah, sizeof(ah), NULL, 0,
		    sizeof(struct ib_uverbs_create_ah_resp), 8, NULL, 0);
	/* The patch finds the ring's address only where both parts are one block. */
	put_command(s, form, IB_USER_VERBS_CMD_RESIZE_CQ, &resize, sizeof(resize), &resize_uhw,
		    sizeof(resize_uhw), sizeof(struct ib_uverbs_resize_cq_resp), 0, resize_at, 1);
}

static void put_ioctl_queries(struct seed *s)
{
	static const uint8_t query_cap[16] = {0x01, 0x00, [7] = 1};

	put_ioctl(s, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, 2);
	attr_data(s, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, 1);
	attr_out(s, UVERBS_ATTR_QUERY_PORT_RESP, 48);
	put_ioctl(s, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, 3);
	attr_data(s, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, 8, 32);
	attr_out(s, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, 256);
	attr_out(s, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8);
	put_ioctl(s, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, 4);
	attr_data(s, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 8, 1);
	attr_data(s, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, 8, 0);
	attr_data(s, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 4, 0);
	attr_out(s, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, 32);
	put_ioctl(s, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES, 3);
	attr_data(s, UVERBS_ATTR_INFO_OBJECT_ID, 8, UVERBS_OBJECT_PD);
	attr_out(s, UVERBS_ATTR_INFO_TOTAL_HANDLES, 4);
	attr_out(s, UVERBS_ATTR_INFO_HANDLES_LIST, 64);
	put_ioctl(s, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, 5);
	attr_handle(s, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0);
	attr_data(s, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, 8, 1);
	attr_out(s, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, 8);
	attr_out(s, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, 4);
	attr_out(s, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, 4);
	put_ioctl(s, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, 2);
	attr_block(s, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, query_cap, sizeof(query_cap), NULL, 0);
	attr_out(s, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, 4112);
	put_ioctl(s, UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, 5);
	attr_handle(s, UVERBS_ATTR_QUERY_MR_HANDLE, 1);
	attr_out(s, UVERBS_ATTR_QUERY_MR_RESP_LKEY, 4);
	attr_out(s, UVERBS_ATTR_QUERY_MR_RESP_RKEY, 4);
	attr_out(s, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, 8);
	attr_out(s, UVERBS_ATTR_QUERY_MR_RESP_IOVA, 8);
}

/* A matcher, and a rule that drops what it matches.  Handle of the matcher: the first. */
static void put_matcher(struct seed *s)
{
	const struct fte_headers mask = {
		.smac = {0xff},
		.flags = {htobe16(FTE_IP_VERSION_MASK << FTE_IP_VERSION_SHIFT)},
		.dst_ip = {[FTE_IPV4_AT] = 0xff},
	};
	const struct fte_headers value = {.smac = {2},
					  .flags = {htobe16(4 << FTE_IP_VERSION_SHIFT)}};

	put_ioctl(s, MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_CREATE, 4);
	attr_handle(s, MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE, 0);
	attr_block(s, MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK, &mask, sizeof(mask), NULL, 0);
	attr_data(s, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE, 2, 0);
	attr_data(s, MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA, 1, FTE_MATCH_OUTER_HEADERS);
	put_ioctl(s, UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW, 4);
	attr_handle(s, MLX5_IB_ATTR_CREATE_FLOW_HANDLE, 0);
	attr_block(s, MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE, &value, sizeof(value), NULL, 0);
	attr_handle(s, MLX5_IB_ATTR_CREATE_FLOW_MATCHER, 0);
	attr_data(s, MLX5_IB_ATTR_CREATE_FLOW_FLAGS, 4, MLX5_IB_ATTR_CREATE_FLOW_FLAGS_DROP);
	put_ioctl(s, MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_DESTROY, 1);
	attr_handle(s, MLX5_IB_ATTR_FLOW_MATCHER_DESTROY_HANDLE, 0);
	put_ioctl(s, UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_DESTROY_FLOW, 1);
	attr_handle(s, MLX5_IB_ATTR_DESTROY_FLOW_HANDLE, 1);
}

static void put_destroys(struct seed *s, enum form form)
{
	const struct ib_uverbs_destroy_qp qp = {.qp_handle = 4};
	const struct ib_uverbs_destroy_cq cq = {.cq_handle = 2};
	const struct ib_uverbs_dereg_mr mr = {.mr_handle = 1};

	put_command(s, form, IB_USER_VERBS_CMD_DESTROY_QP, &qp, sizeof(qp), NULL, 0,
		    sizeof(struct ib_uverbs_destroy_qp_resp), 0, NULL, 0);
	put_command(s, form, IB_USER_VERBS_CMD_DESTROY_CQ, &cq, sizeof(cq), NULL, 0,
		    sizeof(struct ib_uverbs_destroy_cq_resp), 0, NULL, 0);
	put_command(s, form, IB_USER_VERBS_CMD_DEREG_MR, &mr, sizeof(mr), NULL, 0, 0, 0, NULL, 0);
}

void put_context_by_ioctl(struct seed *s)
{
	put_context(s, BY_IOCTL);
}

void target_seeds(struct seed *s)
{
	char name[48];

	for (unsigned dev = 0; dev < 2; dev++)
		for (unsigned form = BY_IOCTL; form <= BY_WRITE; form++)
			for (uint32_t type = IB_QPT_RC; type <= IB_QPT_UD; type++) {
				put_u8(s, dev);
				put_context(s, form);
				put_pd_and_mr(s, form);
				put_cq(s, form);
				put_srq(s, form);
				put_qp(s, form, type);
				put_connect(s, form, dev, type);
				put_traffic(s);
				snprintf(name, sizeof(name), "life-%u-%u-%u", dev, form, type);
				put_end(s, name);
			}
	for (unsigned form = BY_IOCTL; form <= BY_WRITE; form++) {
		put_u8(s, 0);
		put_context(s, form);
		put_pd_and_mr(s, form);
		put_cq(s, form);
		put_srq(s, form);
		put_qp(s, form, IB_QPT_RC);
		put_queries(s, form);
		put_destroys(s, form);
		snprintf(name, sizeof(name), "queries-%u", form);
		put_end(s, name);
	}
	put_u8(s, 0);
	put_context(s, BY_IOCTL);
	put_pd_and_mr(s, BY_IOCTL);
	put_ioctl_queries(s);
	put_end(s, "ioctl-queries");
	put_u8(s, 1);
	put_context(s, BY_IOCTL);
	put_matcher(s);
	put_end(s, "matcher");
	devx_seeds(s);
}
