/* SPDX-License-Identifier: BSD-2-Clause */
/* What queues, and those whom they concern, know of each other. */
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
	const struct flexio_thread *thread; /* NULL: it activates none */
	/* Of process and thread, if its context is not theirs. */
	struct flx_alias *alias[2];
	uint32_t number;
};

/* Part of an event handler. */
struct flexio_thread {
	struct flx_object object;
	uint32_t number;
};

/* Does a CQ activate this thread?  The device knows it only of those of the process's own
 * context. */
bool flx_cq_names(const struct flexio_thread *thread);
/* Is this the number of one of the program's UARs, which have no pages? */
bool flx_uar_numbers(uint32_t number);
/* Each NULL with errno. */
struct flexio_uar *flx_uar_make(struct flexio_process *process, struct ibv_context *ctx);
/* On the UAR of the process.  initial: threads begin with it. */
struct flexio_outbox *flx_outbox_make(struct flexio_process *process, bool initial, bool en_pcc);
