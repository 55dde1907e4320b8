/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of raw packet queues of DEVX, as mlx5 has them: a send queue sends through a TIS, a TIR
 * spreads frames over receive queues, and both belong to a transport domain.  The device's objects
 * behind them are those of verbs.
 */
#pragma once

#include "driver/devx/devx.h"
#include "prm/cmd_qp.h"

struct devx_rqt;

/* A TIS of a transport domain. */
extern const struct devx_class devx_tis_class;
/* -EINVAL if the file has no domain of that number.  0 stands for no domain: *out becomes NULL. */
int devx_td(struct ufile *f, uint32_t number, struct uobj **out) must_check;
const void *devx_tis_domain(struct uobj *tis);

/* A TIR, and its link in a table of queues. */
struct devx_tir {
	struct devx_obj obj;
	struct qp *qp;
	struct devx_rqt *rqt; /* NULL: it leads to one queue */
	struct devx_tir *next_of_rqt;
	struct wq *wq; /* that queue */
	uint8_t context[TIRC_BYTES];
};

extern const struct devx_class devx_tir_class;

/* What a MODIFY of a queue asks for; 'wish' is one of enum raw_state. */
struct devx_raw_move {
	uint32_t current, next;
};

/* Reads it from a command whose context has the state at that field. */
struct devx_raw_move devx_raw_move_of(const struct devx_call *c);
