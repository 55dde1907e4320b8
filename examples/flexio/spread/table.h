/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames to 02:00:5e:00:02:02 go to a table of receive queues, by a hash over addresses and ports of UDP over IPv4. */
#pragma once

#include <infiniband/mlx5dv.h>

struct spread_table {
	struct mlx5dv_devx_obj *domain, *rqt, *tir;
	struct mlx5dv_dr_domain *rules;
	struct mlx5dv_dr_table *root;
	struct mlx5dv_dr_matcher *matcher;
	struct mlx5dv_dr_action *to_tir;
	struct mlx5dv_dr_rule *rule;
};

#define TABLE_MOST 16u

/* Of n queues, a power of two.  0: it could not be made. */
int spread_table_make(struct spread_table *t, struct ibv_context *context, const uint32_t *queues,
		      unsigned int n);
void spread_table_destroy(struct spread_table *t);
