/* SPDX-License-Identifier: BSD-2-Clause */
/* What queues, and the objects that use them, know of each other. */
#pragma once

#include "flexio/internal.h"

/* Numbers of objects, indexes of users and sequence numbers have 24 bits. */
#define FLX_NUMBER_MAX 0xffffffu

struct flexio_uar {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx;
	uint32_t number;
	bool extended;
};

struct flexio_outbox {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx;
	uint32_t number;
};

struct flexio_cq {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx;
	const struct flexio_thread *thread; /* thread that it activates; NULL: none */
	/* Of process and thread, if the CQ's context is not theirs. */
	struct flx_alias *alias[2];
	uint32_t number;
};

/* The part of an event handler that CQs name. */
struct flexio_thread {
	struct flx_object object;
	uint32_t number;
};

/* Tells whether a CQ activates this thread.  The device knows this only for CQs of the process's
 * own context. */
bool flx_cq_names(const struct flexio_thread *thread);
/* Tells whether this is the number of one of the program's UARs, which have no pages. */
bool flx_uar_numbers(uint32_t number);
/* Both return NULL with errno on failure. */
struct flexio_uar *flx_uar_make(struct flexio_process *process, struct ibv_context *ctx);
/* Makes an outbox on the UAR of the process.  initial: threads begin with it. */
struct flexio_outbox *flx_outbox_make(struct flexio_process *process, bool initial, bool en_pcc);
