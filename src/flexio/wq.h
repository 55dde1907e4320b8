/* SPDX-License-Identifier: BSD-2-Clause */
/* What receive queues, send queues and receive memory pools share. */
#pragma once

#include "flexio/queue.h"
#include "prm/cmd_qp.h"

/* A command with its mailboxes. */
struct flx_wq_command {
	uint8_t in[RAW_CONTEXT + 0xf0u], out[CMD_OUT_BYTES];
};

/* The arguments of a function that makes a queue. */
struct flx_wq_make {
	struct flexio_process *process;
	struct ibv_context *ctx; /* never NULL */
	const struct flexio_wq_attr *attr;
	const char *function;
	struct flx_alias **alias; /* for the process, if its context is not ctx */
};

/*
 * Each function that makes a queue begins with this: 'place' is where its caller wants the queue,
 * and gets NULL until there is one.  False: an argument is wrong; logs.
 */
bool flx_wq_begin(struct flx_hold *hold, struct flx_wq_make *make, void **place,
		  const char *place_name);
/* Tells whether this can be the number of a CQ; logs if not. */
bool flx_wq_check_cq(const struct flx_wq_make *make, uint32_t cqn);
/*
 * Checks the arguments, and fills in the work queue at wq from the attributes, except for type,
 * stride and region.  False: they are wrong, or the device cannot reach the process; logs.
 */
bool flx_wq_fill(const struct flx_wq_make *make, uint8_t *wq);
/* Of a receive; the attribute may leave it to the kind of queue. */
uint32_t flx_wq_log_stride(const struct flexio_wq_attr *attr, uint32_t by_default);
/* Makes the object of the command; logs what the device refuses. */
struct mlx5dv_devx_obj *flx_wq_create(const struct flx_wq_make *make, enum prm_opcode opcode,
				      struct flx_wq_command *cmd, uint32_t *number);
/* Moves a queue from one state to another; 0 or an errno. */
int flx_wq_move(struct mlx5dv_devx_obj *obj, enum prm_opcode opcode, uint32_t number,
		enum raw_state from, enum raw_state to);
/* Moves it from RST to RDY, when all parts have been made; logs what the device refuses. */
bool flx_wq_ready(const struct flx_wq_make *make, struct mlx5dv_devx_obj *obj,
		  enum prm_opcode opcode, uint32_t number);
/* Makes a transport domain for each queue, because nothing depends on which queues share one. */
struct mlx5dv_devx_obj *flx_wq_domain(const struct flx_wq_make *make, uint32_t *number);
/* Logs a ring that is longer than its buffer, or where a card would not take it, when there is a queue of that number. */
void flx_wq_check_ring(const struct flx_wq_make *make, uint32_t number, uint32_t log_stride);
