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

/* A transport domain, and a TIS of one. */
extern const struct devx_class devx_td_class, devx_tis_class;
/* -EINVAL if the file has no domain of that number.  0 stands for no domain: *out becomes NULL. */
int devx_td(struct ufile *f, uint32_t number, struct uobj **out) must_check;
const void *devx_tis_domain(struct uobj *tis);

/* Receive queues, which include the work queues of verbs. */
extern const struct devx_class devx_rq_class;
struct wq *devx_wq_of(struct uobj *obj);

extern const struct devx_class devx_rqt_class;

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
/* Says how the TIR spreads frames over the queues of its table, or to its one queue. */
void devx_tir_rss(const struct devx_tir *tir, struct rss_attr *rss);

/* From now on the table tells the TIR when it changes; after the second call it does not. */
void devx_rqt_add_tir(struct uobj *rqt, struct devx_tir *tir);
void devx_rqt_remove_tir(struct devx_tir *tir);
struct devx_rqt *devx_rqt_of(struct uobj *rqt);
struct wq *const *devx_rqt_queues(const struct devx_rqt *rqt, uint32_t *log_size);

/* What a MODIFY of a queue asks for; 'wish' is one of enum raw_state. */
struct devx_raw_move {
	uint32_t current, next;
};

/* Reads it from a command whose context has the state at that field. */
struct devx_raw_move devx_raw_move_of(const struct devx_call *c);
