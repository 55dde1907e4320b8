// SPDX-License-Identifier: BSD-2-Clause
/* The ioctl methods of DEVX, as uverbs/methods.c has those of verbs. */
#include <rdma/mlx5_user_ioctl_cmds.h>

#include "driver/uverbs/core/spec.h"
#include "prm/cmd.h"

static const struct attr_spec other_attrs[] = {
	{MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, IN_MIN(CMD_IN_BYTES)},
	{MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, OUT_MIN(CMD_OUT_BYTES)},
};

static const struct attr_spec query_uar_attrs[] = {
	{MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX, IN(4)},
	{MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, OUT(4)},
};

static const struct attr_spec query_eqn_attrs[] = {
	{MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, IN(4)},
	{MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, OUT(4)},
};

static const struct attr_spec subscribe_attrs[] = {
	{MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, ATTR_HANDLE},
	{MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, IDR(UOBJ_DEVX), OPT},
	{MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, IN_MIN(2)},
	{MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM, IN(4), OPT},
	{MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, IN(8), OPT},
};

static const struct attr_spec obj_create_attrs[] = {
	{MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, ATTR_IDR_NEW},
	{MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, IN_MIN(CMD_IN_BYTES)},
	{MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, OUT_MIN(CMD_OUT_BYTES)},
};

static const struct attr_spec obj_destroy_attrs[] = {
	{MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, IDR(UOBJ_DEVX)},
};

static const struct attr_spec obj_modify_attrs[] = {
	{MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, ATTR_HANDLE},
	{MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, IN_MIN(CMD_IN_BYTES)},
	{MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, OUT_MIN(CMD_OUT_BYTES)},
};

static const struct attr_spec obj_query_attrs[] = {
	{MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, ATTR_HANDLE},
	{MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, IN_MIN(CMD_IN_BYTES)},
	{MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, OUT_MIN(CMD_OUT_BYTES)},
};

static const struct attr_spec obj_query_async_attrs[] = {
	{MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE, ATTR_HANDLE},
	{MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN, IN_MIN(CMD_IN_BYTES)},
	{MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD, ATTR_HANDLE},
	{MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID, IN(8)},
	{MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN, CONST_IN},
};

static const struct attr_spec umem_reg_attrs[] = {
	{MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, ATTR_IDR_NEW},
	{MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, IN(8)},
	{MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, IN(8)},
	{MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, FLAGS_IN, OPT},
	{MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, OUT(4)},
	{MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, CONST_IN, OPT},
};

static const struct attr_spec umem_dereg_attrs[] = {
	{MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, IDR(UOBJ_UMEM)},
};

static const struct attr_spec async_cmd_attrs[] = {
	{MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE, ATTR_FD_NEW},
};

static const struct attr_spec async_event_attrs[] = {
	{MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, ATTR_FD_NEW},
	{MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, FLAGS_IN},
};

const struct method_spec devx_methods[] = {
	METHOD(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, method_devx_other, other_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_UAR, method_devx_query_uar,
	       query_uar_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN, method_devx_query_eqn,
	       query_eqn_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, method_devx_subscribe,
	       subscribe_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, method_devx_obj_create,
	       obj_create_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY, method_devx_obj_destroy,
	       obj_destroy_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, method_devx_obj_modify,
	       obj_modify_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, method_devx_obj_query,
	       obj_query_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY,
	       method_devx_obj_query_async, obj_query_async_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG, method_devx_umem_reg,
	       umem_reg_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG, method_devx_umem_dereg,
	       umem_dereg_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC,
	       method_devx_async_alloc, async_cmd_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC,
	       method_devx_event_alloc, async_event_attrs),
};

const size_t devx_methods_count = array_size(devx_methods);
