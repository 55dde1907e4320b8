/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of dpa_reflect agree on. */
#pragma once

#include <stdint.h>

#define LOG_SLOTS   7u
#define SLOTS	    (1u << LOG_SLOTS) /* of each queue; more than there are frames under way */
#define FRAME_BYTES 2048u

/* On the heap of the DPA; the argument of the handler. */
struct reflector {
	uint64_t cq_ring, cq_record, cqn, ci;
	uint64_t data, receive_record;
	uint64_t send_ring, key, sqn, pi;
};

#ifndef REFLECT_DEVICE
struct ibv_context;
struct flexio_app;
struct mlx5dv_devx_obj;

/* Queues and the handler; what leads to its TIR makes frames come back. */
struct mlx5dv_devx_obj *dpa_reflector_up(struct ibv_context *ctx, struct flexio_app *app,
					 void (*handler)(void));
#endif
