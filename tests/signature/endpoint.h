/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One side of a connection with everything that it needs: carries out orders in this process.  Only
 * libibverbs and libmlx5, so that it does the same on a real adapter.
 */
#pragma once

#include "order.h"
#include "verbs_device.h"

struct endpoint {
	struct open_order opened;
	struct device_port port;
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

void endpoint_carry_out(struct endpoint *d, const struct order *order, struct answer *answer);
/* 0, or an errno value: the queue pair could not be made. */
int endpoint_open(struct endpoint *d, const struct open_order *how);
void endpoint_close(struct endpoint *d);

/* Where a slice or piece of memory is, for the device. */
struct ibv_sge endpoint_sge(const struct endpoint *d, int key, uint64_t at, uint32_t bytes);

int endpoint_key_create(struct endpoint *d, int key, uint32_t flags, uint16_t entries,
			struct key_names *out);
int endpoint_key_configure(struct endpoint *d, int key, const struct key_conf *conf);
/* The same without ibv_wr_start and ibv_wr_complete. */
void endpoint_key_build(struct endpoint *d, int key, const struct key_conf *conf);
/* All requests in one batch. */
int endpoint_post(struct endpoint *d, unsigned count, const struct request *request);
int endpoint_receive(struct endpoint *d, uint64_t id, unsigned slices, const struct slice *slice);
