/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of kinds: each tells the number and the name of what it makes. */
#pragma once

#include <stdint.h>

#include <infiniband/mlx5dv.h>

#include "verbs_device.h"

void kinds_tell(const char *name, uint32_t number);
/* Queue pairs of each transport; of RC and UC, only the latter is connected, with itself. */
void kinds_queue_pairs(const struct device_port *port, struct ibv_pd *pd);
/* A region that a command of DEVX makes.  The context must be one for DEVX. */
void kinds_devx_key(const struct device_port *port, struct ibv_pd *pd);
