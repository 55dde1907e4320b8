/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One side of a connection with everything that it needs: carries out orders in this process.  Only
 * libibverbs and libmlx5, so that it does the same on a real adapter.
 */
#pragma once

#include "order.h"
#include "rig.h"

struct desk {
	struct open_order opened;
	struct rig_port port;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq;
	struct ibv_cq_ex *send_cq_ex; /* the same, if its CQEs have a size that was asked for */
	struct ibv_cq *recv_cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct mlx5dv_qp_ex *mqpx;
	struct ibv_mr *mr;
	uint8_t *memory;     /* ORDER_MEMORY bytes */
	uint32_t max_inline; /* as the queue pair has it, not as it was asked for */
	struct mlx5dv_mkey *key[ORDER_KEYS];
};

void desk_carry_out(struct desk *d, const struct order *order, struct answer *answer);
/* 0, or an errno value: the queue pair could not be made. */
int desk_open(struct desk *d, const struct open_order *how);
void desk_close(struct desk *d);

/* Where a slice or piece of memory is, for the device. */
struct ibv_sge desk_sge(const struct desk *d, int key, uint64_t at, uint32_t bytes);

int desk_key_create(struct desk *d, int key, uint32_t flags, uint16_t entries,
		    struct key_names *out);
int desk_key_configure(struct desk *d, int key, const struct key_conf *conf);
/* The same without ibv_wr_start and ibv_wr_complete. */
void desk_key_build(struct desk *d, int key, const struct key_conf *conf);
/* All requests in one batch. */
int desk_post(struct desk *d, unsigned count, const struct request *request);
int desk_receive(struct desk *d, uint64_t id, unsigned slices, const struct slice *slice);
