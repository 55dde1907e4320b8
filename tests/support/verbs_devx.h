/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a device for DEVX; for device_port_open_by (verbs_device.h). */
#pragma once

#include <infiniband/mlx5dv.h>

static inline struct ibv_context *open_devx(struct ibv_device *device)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};

	return mlx5dv_open_device(device, &attr);
}
