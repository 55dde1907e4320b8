/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs write steering entries by RDMA, on queue pairs that they connect to themselves and ring
 * by a plain store.  A program that has written a rule does not look at completions, but goes on
 * and sends frames.  On hardware the write is long done by then; here the thread that looks for
 * such stores may not have run yet.  So every thread that is about to steer a frame first executes
 * what those queue pairs have posted.
 */
#pragma once

#include "adapter/qp/qp.h"

void icm_writers_catch_up(struct adapter *a);

/* The caller is a reader. */
static inline void icm_writers_run(struct adapter *a)
{
	if (unlikely(atomic_load_explicit(&a->icm_writers.n, memory_order_relaxed)))
		icm_writers_catch_up(a);
}

/* Called before frames of this queue are sent, with sq held.  Runs the writers once for all frames
 * that the program announces together. */
static inline void icm_writers_run_before(struct qp *qp)
{
	uint32_t producer = 0;
	uint64_t rung = atomic_load_explicit(&qp->rung, memory_order_relaxed), posted;
	bool known = usermem_fetch_be32(qp->producer, &producer);

	posted = (rung << 32 | producer) + 1;
	if (known && posted == qp->req.steered_plus_1)
		return;
	qp->req.steered_plus_1 = posted;
	icm_writers_run(qp->adapter);
}

/* Called before the queue pair is destroyed; does nothing for one that writes no entries. */
void icm_writer_forget(struct qp *qp);
