// SPDX-License-Identifier: BSD-2-Clause
/* See devx_commands.h. */
#include "devx_commands.h"

#include <rdma/mlx5_user_ioctl_cmds.h>
#include <string.h>

int devx_command_create(struct devx_commands *c, uint16_t in_len, uint64_t *handle)
{
	struct ib_uverbs_attr attrs[] = {
		attr_handle(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0),
		attr_in(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, c->in, in_len),
		attr_out(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, c->out, CMD_OUT_BYTES),
	};
	int ret = uverbs_file_ioctl(c->u, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE,
				    attrs, array_size(attrs));

	*handle = attrs[0].data;
	return ret;
}

int devx_command_destroy(struct devx_commands *c, uint64_t handle)
{
	struct ib_uverbs_attr attrs[] = {
		attr_handle(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, handle),
	};

	return uverbs_file_ioctl(c->u, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
				 attrs, array_size(attrs));
}

int devx_command_modify(struct devx_commands *c, uint64_t handle, uint16_t in_len)
{
	struct ib_uverbs_attr attrs[] = {
		attr_handle(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, handle),
		attr_in(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, c->in, in_len),
		attr_out(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, c->out, CMD_OUT_BYTES),
	};

	return uverbs_file_ioctl(c->u, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY,
				 attrs, array_size(attrs));
}

int devx_command_query(struct devx_commands *c, enum prm_opcode op, uint64_t handle,
		       uint32_t number, uint16_t out_len)
{
	struct ib_uverbs_attr attrs[] = {
		attr_handle(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, handle),
		attr_in(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, c->in, CMD_IN_BYTES),
		attr_out(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, c->out, out_len),
	};

	memset(c->in, 0, sizeof(c->in));
	prm_set(c->in, CMD_IN_OPCODE, op);
	prm_set(c->in, CMD_IN_NUMBER, number);
	return uverbs_file_ioctl(c->u, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY,
				 attrs, array_size(attrs));
}
