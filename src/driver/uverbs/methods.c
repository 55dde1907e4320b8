// SPDX-License-Identifier: BSD-2-Clause
/*
 * The ioctl methods of the device: which attributes each takes, as data.  Numbers, sizes and what
 * is optional are those of the kernel's uverbs and mlx5_ib.
 */
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include "driver/uverbs/core/spec.h"
#include "driver/uverbs/uverbs.h"
#include "prm/fte.h"

static const struct attr_spec invoke_write_attrs[] = {
	{UVERBS_ATTR_CORE_IN, IN_MIN(4), OPT},
	{UVERBS_ATTR_CORE_OUT, OUT_MIN(0), OPT},
	{UVERBS_ATTR_WRITE_CMD, CONST_IN},
};

static const struct attr_spec info_handles_attrs[] = {
	{UVERBS_ATTR_INFO_OBJECT_ID, CONST_IN},
	{UVERBS_ATTR_INFO_TOTAL_HANDLES, OUT(4), OPT},
	{UVERBS_ATTR_INFO_HANDLES_LIST, OUT_MIN(4)},
};

static const struct attr_spec get_context_attrs[] = {
	{UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, OUT(4), OPT},
	{UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, OUT(8), OPT},
};

static const struct attr_spec query_context_attrs[] = {
	{UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, OUT(4), OPT},
	{UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, OUT(8), OPT},
	{MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, ATTR_PTR_OUT, OPT,
	 .min = offsetof(struct mlx5_ib_alloc_ucontext_resp, dump_fill_mkey) + 4,
	 .max = UINT16_MAX},
};

static const struct attr_spec query_port_attrs[] = {
	{UVERBS_ATTR_QUERY_PORT_PORT_NUM, CONST_IN},
	{UVERBS_ATTR_QUERY_PORT_RESP, ATTR_PTR_OUT,
	 .min = offsetof(struct ib_uverbs_query_port_resp_ex, reserved), .max = UINT16_MAX},
};

static const struct attr_spec query_port_mlx5_attrs[] = {
	{MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, IN(4)},
	{MLX5_IB_ATTR_QUERY_PORT, ATTR_PTR_OUT,
	 .min = offsetof(struct mlx5_ib_uapi_query_port, reg_c0) + sizeof(struct mlx5_ib_uapi_reg),
	 .max = UINT16_MAX},
};

static const struct attr_spec query_gid_table_attrs[] = {
	{UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, CONST_IN},
	{UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, FLAGS_IN, OPT},
	{UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, OUT_MIN(0)},
	{UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, OUT(8)},
};

static const struct attr_spec query_gid_entry_attrs[] = {
	{UVERBS_ATTR_QUERY_GID_ENTRY_PORT, CONST_IN},
	{UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, CONST_IN},
	{UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, FLAGS_IN},
	{UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, ATTR_PTR_OUT,
	 .min = sizeof(struct ib_uverbs_gid_entry), .max = UINT16_MAX},
};

static const struct attr_spec pd_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_PD_HANDLE, IDR(UOBJ_PD)},
};

static const struct attr_spec pd_query_attrs[] = {
	{MLX5_IB_ATTR_QUERY_PD_HANDLE, IDR(UOBJ_PD)},
	{MLX5_IB_ATTR_QUERY_PD_RESP_PDN, OUT(4)},
};

static const struct attr_spec mr_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_MR_HANDLE, IDR(UOBJ_MR)},
};

static const struct attr_spec mw_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_MW_HANDLE, IDR(UOBJ_MW)},
};

static const struct attr_spec xrcd_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_XRCD_HANDLE, IDR(UOBJ_XRCD)},
};

static const struct attr_spec query_mr_attrs[] = {
	{UVERBS_ATTR_QUERY_MR_HANDLE, IDR(UOBJ_MR)},   {UVERBS_ATTR_QUERY_MR_RESP_LKEY, OUT(4)},
	{UVERBS_ATTR_QUERY_MR_RESP_RKEY, OUT(4)},      {UVERBS_ATTR_QUERY_MR_RESP_LENGTH, OUT(8)},
	{UVERBS_ATTR_QUERY_MR_RESP_IOVA, OUT(8), OPT},
};

static const struct attr_spec advise_mr_attrs[] = {
	{UVERBS_ATTR_ADVISE_MR_PD_HANDLE, IDR(UOBJ_PD)},
	{UVERBS_ATTR_ADVISE_MR_ADVICE, CONST_IN},
	{UVERBS_ATTR_ADVISE_MR_FLAGS, FLAGS_IN},
	{UVERBS_ATTR_ADVISE_MR_SGE_LIST, IN_MIN(sizeof(struct ib_uverbs_sge))},
};

static const struct attr_spec dm_mr_reg_attrs[] = {
	{UVERBS_ATTR_REG_DM_MR_HANDLE, ATTR_IDR_NEW},
	{UVERBS_ATTR_REG_DM_MR_OFFSET, IN(8)},
	{UVERBS_ATTR_REG_DM_MR_LENGTH, IN(8)},
	{UVERBS_ATTR_REG_DM_MR_PD_HANDLE, IDR(UOBJ_PD)},
	{UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS, FLAGS_IN, OPT},
	{UVERBS_ATTR_REG_DM_MR_DM_HANDLE, ATTR_HANDLE},
	{UVERBS_ATTR_REG_DM_MR_RESP_LKEY, OUT(4)},
	{UVERBS_ATTR_REG_DM_MR_RESP_RKEY, OUT(4)},
};

static const struct attr_spec reg_dmabuf_mr_attrs[] = {
	{UVERBS_ATTR_REG_DMABUF_MR_HANDLE, ATTR_IDR_NEW},
	{UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, IDR(UOBJ_PD)},
	{UVERBS_ATTR_REG_DMABUF_MR_OFFSET, IN(8)},
	{UVERBS_ATTR_REG_DMABUF_MR_LENGTH, IN(8)},
	{UVERBS_ATTR_REG_DMABUF_MR_IOVA, IN(8)},
	{UVERBS_ATTR_REG_DMABUF_MR_FD, IN(4)},
	{UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, FLAGS_IN},
	{UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, OUT(4)},
	{UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, OUT(4)},
};

/* The provider's attributes have the numbers that UHW has elsewhere. */
static const struct attr_spec dm_alloc_attrs[] = {
	{UVERBS_ATTR_ALLOC_DM_HANDLE, ATTR_IDR_NEW},
	{UVERBS_ATTR_ALLOC_DM_LENGTH, IN(8)},
	{UVERBS_ATTR_ALLOC_DM_ALIGNMENT, IN(4)},
	{MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, OUT(8)},
	{MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, OUT(2), OPT},
	{MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE, CONST_IN, OPT},
};

static const struct attr_spec dm_free_attrs[] = {
	{UVERBS_ATTR_FREE_DM_HANDLE, ATTR_HANDLE},
};

static const struct attr_spec dm_query_attrs[] = {
	{MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE, ATTR_HANDLE},
	{MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET, OUT(8)},
	{MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX, OUT(2)},
	{MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH, OUT(8)},
};

static const struct attr_spec dm_map_op_attrs[] = {
	{MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_HANDLE, ATTR_HANDLE},
	{MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_OP, IN(1)},
	{MLX5_IB_ATTR_DM_MAP_OP_ADDR_RESP_START_OFFSET, OUT(8)},
	{MLX5_IB_ATTR_DM_MAP_OP_ADDR_RESP_PAGE_INDEX, OUT(2), OPT},
};

static const struct attr_spec counters_create_attrs[] = {
	{UVERBS_ATTR_CREATE_COUNTERS_HANDLE, ATTR_IDR_NEW},
};

static const struct attr_spec counters_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, IDR(UOBJ_COUNTERS)},
};

static const struct attr_spec counters_read_attrs[] = {
	{UVERBS_ATTR_READ_COUNTERS_HANDLE, IDR(UOBJ_COUNTERS)},
	{UVERBS_ATTR_READ_COUNTERS_BUFF, OUT_MIN(0)},
	{UVERBS_ATTR_READ_COUNTERS_FLAGS, FLAGS_IN, OPT},
};

static const struct attr_spec ah_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_AH_HANDLE, IDR(UOBJ_AH)},
};

static const struct attr_spec cq_create_attrs[] = {
	{UVERBS_ATTR_CREATE_CQ_HANDLE, ATTR_IDR_NEW},
	{UVERBS_ATTR_CREATE_CQ_CQE, IN(4)},
	{UVERBS_ATTR_CREATE_CQ_USER_HANDLE, IN(8)},
	{UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, CHANNEL(UCHANNEL_COMP), OPT},
	{UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, IN(4)},
	{UVERBS_ATTR_CREATE_CQ_FLAGS, FLAGS_IN, OPT},
	{UVERBS_ATTR_CREATE_CQ_RESP_CQE, OUT(4)},
	{UVERBS_ATTR_CREATE_CQ_EVENT_FD, CHANNEL(UCHANNEL_ASYNC), OPT},
};

static const struct attr_spec cq_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_CQ_HANDLE, IDR(UOBJ_CQ)},
	{UVERBS_ATTR_DESTROY_CQ_RESP, OUT(sizeof(struct ib_uverbs_destroy_cq_resp))},
};

static const struct attr_spec qp_create_attrs[] = {
	{UVERBS_ATTR_CREATE_QP_HANDLE, ATTR_IDR_NEW},
	{UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, IDR(UOBJ_XRCD), OPT},
	{UVERBS_ATTR_CREATE_QP_PD_HANDLE, IDR(UOBJ_PD), OPT},
	{UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, IDR(UOBJ_SRQ), OPT},
	{UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, IDR(UOBJ_CQ), OPT},
	{UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, IDR(UOBJ_CQ), OPT},
	{UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, IDR(UOBJ_IND_TABLE), OPT},
	{UVERBS_ATTR_CREATE_QP_USER_HANDLE, IN(8)},
	{UVERBS_ATTR_CREATE_QP_CAP, ATTR_PTR_IN, .zero_trailing = 1,
	 .min = sizeof(struct ib_uverbs_qp_cap), .max = sizeof(struct ib_uverbs_qp_cap)},
	{UVERBS_ATTR_CREATE_QP_TYPE, CONST_IN},
	{UVERBS_ATTR_CREATE_QP_FLAGS, FLAGS_IN, OPT},
	{UVERBS_ATTR_CREATE_QP_SOURCE_QPN, IN(4), OPT},
	{UVERBS_ATTR_CREATE_QP_EVENT_FD, CHANNEL(UCHANNEL_ASYNC), OPT},
	{UVERBS_ATTR_CREATE_QP_RESP_CAP, ATTR_PTR_OUT, .min = sizeof(struct ib_uverbs_qp_cap),
	 .max = UINT16_MAX},
	{UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, OUT(4)},
};

static const struct attr_spec qp_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_QP_HANDLE, IDR(UOBJ_QP)},
	{UVERBS_ATTR_DESTROY_QP_RESP, OUT(sizeof(struct ib_uverbs_destroy_qp_resp))},
};

static const struct attr_spec srq_create_attrs[] = {
	{UVERBS_ATTR_CREATE_SRQ_HANDLE, ATTR_IDR_NEW},
	{UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, IDR(UOBJ_PD)},
	{UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, IDR(UOBJ_XRCD), OPT},
	{UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, IDR(UOBJ_CQ), OPT},
	{UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, IN(8)},
	{UVERBS_ATTR_CREATE_SRQ_MAX_WR, IN(4)},
	{UVERBS_ATTR_CREATE_SRQ_MAX_SGE, IN(4)},
	{UVERBS_ATTR_CREATE_SRQ_LIMIT, IN(4)},
	{UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS, IN(4), OPT},
	{UVERBS_ATTR_CREATE_SRQ_TYPE, CONST_IN},
	{UVERBS_ATTR_CREATE_SRQ_EVENT_FD, CHANNEL(UCHANNEL_ASYNC), OPT},
	{UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, OUT(4)},
	{UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, OUT(4)},
	{UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, OUT(4), OPT},
};

static const struct attr_spec srq_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_SRQ_HANDLE, IDR(UOBJ_SRQ)},
	{UVERBS_ATTR_DESTROY_SRQ_RESP, OUT(sizeof(struct ib_uverbs_destroy_srq_resp))},
};

static const struct attr_spec wq_create_attrs[] = {
	{UVERBS_ATTR_CREATE_WQ_HANDLE, ATTR_IDR_NEW},
	{UVERBS_ATTR_CREATE_WQ_PD_HANDLE, IDR(UOBJ_PD)},
	{UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, IDR(UOBJ_CQ)},
	{UVERBS_ATTR_CREATE_WQ_USER_HANDLE, IN(8)},
	{UVERBS_ATTR_CREATE_WQ_TYPE, CONST_IN},
	{UVERBS_ATTR_CREATE_WQ_EVENT_FD, CHANNEL(UCHANNEL_ASYNC), OPT},
	{UVERBS_ATTR_CREATE_WQ_MAX_WR, IN(4)},
	{UVERBS_ATTR_CREATE_WQ_MAX_SGE, IN(4)},
	{UVERBS_ATTR_CREATE_WQ_FLAGS, FLAGS_IN},
	{UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, OUT(4)},
	{UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, OUT(4)},
	{UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, OUT(4), OPT},
};

static const struct attr_spec wq_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_WQ_HANDLE, IDR(UOBJ_WQ)},
	{UVERBS_ATTR_DESTROY_WQ_RESP, OUT(4)},
};

static const struct attr_spec ind_table_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE, IDR(UOBJ_IND_TABLE)},
};

static const struct attr_spec flow_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_FLOW_HANDLE, IDR(UOBJ_FLOW)},
};

/* Arrays of handles are only asked for whether they are there. */
static const struct attr_spec flow_create_mlx5_attrs[] = {
	{MLX5_IB_ATTR_CREATE_FLOW_HANDLE, ATTR_IDR_NEW},
	{MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE, ATTR_PTR_IN, .min = 1, .max = FTE_MATCH_PARAM_BYTES},
	{MLX5_IB_ATTR_CREATE_FLOW_MATCHER, IDR(UOBJ_MATCHER)},
	{MLX5_IB_ATTR_CREATE_FLOW_DEST_QP, IDR(UOBJ_QP), OPT},
	{MLX5_IB_ATTR_CREATE_FLOW_DEST_DEVX, IDR(UOBJ_DEVX), OPT},
	{MLX5_IB_ATTR_CREATE_FLOW_ARR_FLOW_ACTIONS, IN_MIN(0), OPT},
	{MLX5_IB_ATTR_CREATE_FLOW_TAG, IN(4), OPT},
	{MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX, IN_MIN(0), OPT},
	{MLX5_IB_ATTR_CREATE_FLOW_ARR_COUNTERS_DEVX_OFFSET, IN_MIN(4), OPT},
	{MLX5_IB_ATTR_CREATE_FLOW_FLAGS, FLAGS_IN, OPT},
};

static const struct attr_spec flow_destroy_mlx5_attrs[] = {
	{MLX5_IB_ATTR_DESTROY_FLOW_HANDLE, IDR(UOBJ_FLOW)},
};

static const struct attr_spec matcher_create_attrs[] = {
	{MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE, ATTR_IDR_NEW},
	{MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK, ATTR_PTR_IN, .min = 1, .max = FTE_MATCH_PARAM_BYTES},
	{MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE, ATTR_ENUM, .min = 2, .max = 2,
	 .choices = MLX5_IB_FLOW_TYPE_MC_DEFAULT + 1},
	{MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA, IN(1)},
	{MLX5_IB_ATTR_FLOW_MATCHER_FLOW_FLAGS, FLAGS_IN, OPT},
	{MLX5_IB_ATTR_FLOW_MATCHER_FT_TYPE, CONST_IN, OPT},
};

static const struct attr_spec matcher_destroy_attrs[] = {
	{MLX5_IB_ATTR_FLOW_MATCHER_DESTROY_HANDLE, IDR(UOBJ_MATCHER)},
};

static const struct attr_spec async_alloc_attrs[] = {
	{UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, ATTR_FD_NEW},
};

static const struct attr_spec uar_alloc_attrs[] = {
	{MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, ATTR_IDR_NEW},
	{MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, CONST_IN},
	{MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, OUT(8)},
	{MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, OUT(4)},
	{MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, OUT(4)},
};

static const struct attr_spec uar_destroy_attrs[] = {
	{MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, IDR(UOBJ_UAR)},
};

static const struct method_spec methods[] = {
	{
		.object = UVERBS_OBJECT_DEVICE,
		.method = UVERBS_METHOD_INVOKE_WRITE,
		.name = "UVERBS_METHOD_INVOKE_WRITE",
		.attrs = invoke_write_attrs,
		.nattrs = array_size(invoke_write_attrs),
		.run = method_invoke_write,
		.uhw = true,
		/* depends on the command */
		.before_context = true,
		.inherited = true,
	},
	{
		.object = UVERBS_OBJECT_DEVICE,
		.method = UVERBS_METHOD_GET_CONTEXT,
		.name = "UVERBS_METHOD_GET_CONTEXT",
		.attrs = get_context_attrs,
		.nattrs = array_size(get_context_attrs),
		.run = method_get_context,
		.uhw = true,
		.before_context = true,
	},
	METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES, method_info_handles,
	       info_handles_attrs),
	INHERITED_METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, method_query_port,
			 query_port_attrs),
	METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, method_query_context,
	       query_context_attrs),
	INHERITED_METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE,
			 method_query_gid_table, query_gid_table_attrs),
	INHERITED_METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY,
			 method_query_gid_entry, query_gid_entry_attrs),
	METHOD(UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT, method_query_port_mlx5,
	       query_port_mlx5_attrs),
	METHOD(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, method_destroy, pd_destroy_attrs),
	METHOD(UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, method_pd_query, pd_query_attrs),
	UHW_METHOD(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, method_cq_create, cq_create_attrs),
	METHOD(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, method_cq_destroy, cq_destroy_attrs),
	UHW_METHOD(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, method_qp_create, qp_create_attrs),
	METHOD(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, method_qp_destroy, qp_destroy_attrs),
	UHW_METHOD(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, method_srq_create,
		   srq_create_attrs),
	METHOD(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, method_srq_destroy, srq_destroy_attrs),
	UHW_METHOD(UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE, method_wq_create, wq_create_attrs),
	METHOD(UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_DESTROY, method_wq_destroy, wq_destroy_attrs),
	METHOD(UVERBS_OBJECT_RWQ_IND_TBL, UVERBS_METHOD_RWQ_IND_TBL_DESTROY, method_destroy,
	       ind_table_destroy_attrs),
	METHOD(UVERBS_OBJECT_FLOW, UVERBS_METHOD_FLOW_DESTROY, method_destroy, flow_destroy_attrs),
	METHOD(UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW, method_flow_create_mlx5,
	       flow_create_mlx5_attrs),
	METHOD(UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_DESTROY_FLOW, method_destroy,
	       flow_destroy_mlx5_attrs),
	METHOD(MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_CREATE,
	       method_matcher_create, matcher_create_attrs),
	METHOD(MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_DESTROY, method_destroy,
	       matcher_destroy_attrs),
	METHOD(UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, method_destroy, ah_destroy_attrs),
	METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, method_destroy, mr_destroy_attrs),
	METHOD(UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, method_destroy, mw_destroy_attrs),
	METHOD(UVERBS_OBJECT_XRCD, UVERBS_METHOD_XRCD_DESTROY, method_destroy, xrcd_destroy_attrs),
	METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, method_query_mr, query_mr_attrs),
	METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, method_advise_mr, advise_mr_attrs),
	METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_DM_MR_REG, method_dm_mr_reg, dm_mr_reg_attrs),
	METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, method_refuse, reg_dmabuf_mr_attrs),
	INHERITED_METHOD(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, method_dm_alloc, dm_alloc_attrs),
	INHERITED_METHOD(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, method_dm_free, dm_free_attrs),
	INHERITED_METHOD(UVERBS_OBJECT_DM, MLX5_IB_METHOD_DM_QUERY, method_dm_query,
			 dm_query_attrs),
	INHERITED_METHOD(UVERBS_OBJECT_DM, MLX5_IB_METHOD_DM_MAP_OP_ADDR, method_dm_map_op,
			 dm_map_op_attrs),
	METHOD(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE, method_counters_create,
	       counters_create_attrs),
	METHOD(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY, method_destroy,
	       counters_destroy_attrs),
	METHOD(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ, method_counters_read,
	       counters_read_attrs),
	METHOD(UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, method_async_alloc,
	       async_alloc_attrs),
	METHOD(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, method_uar_alloc, uar_alloc_attrs),
	METHOD(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, method_uar_destroy,
	       uar_destroy_attrs),
};

static const struct method_spec *find(const struct method_spec *list, size_t n, uint16_t object,
				      uint16_t method)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].object == object && list[i].method == method)
			return &list[i];
	return NULL;
}

const struct method_spec *uverbs_method(uint16_t object, uint16_t method)
{
	const struct method_spec *m = find(methods, array_size(methods), object, method);

	return m ? m : find(devx_methods, devx_methods_count, object, method);
}
