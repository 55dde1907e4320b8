/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hooks into the entry points of an open verbs context: the program's own thread drives the device
 * when it posts, polls or arms, right after libmlx5 has done its part.  They are an optimisation
 * only: the engine serves a program that goes around them.
 *
 * The functions of libibverbs and libmlx5 that library.c defines (ibv_open_device, ...) are
 * exported by the preload library and pass on to the real ones.
 */
#pragma once

#include <infiniband/verbs.h>

/* Hooks the entry points of a context, if it is one of our devices'.  Idempotent. */
void hooks_context(struct ibv_context *context);
/* Hooks the completion queue's start_poll; the context is one of ours. */
void hooks_cq_ex(struct ibv_cq_ex *cq);
/* Hooks the work queue's post_recv; the context is one of ours. */
void hooks_wq(struct ibv_wq *wq);
/* Hooks wr_complete, which the library sets anew when a QP reaches RTS. */
void hooks_qp_ex(struct ibv_qp_ex *qp);

/* The preload calls these around fork(2), in parent and child. */
void hooks_fork_prepare(void);
void hooks_fork_done(void);
