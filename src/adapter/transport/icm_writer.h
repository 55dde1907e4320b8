/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries of steering are written by RDMA, on queue pairs that programs connect to themselves and
 * ring by a plain store.  A program that has written a rule goes on without a look at completions,
 * and sends frames.  On hardware the write is far ahead of them; here the thread that looks for such
 * stores may not have got to run.  So whoever is about to steer a frame executes what has been posted.
 */
#pragma once

#include "adapter/qp/qp.h"

void icm_writers_catch_up(struct adapter *a);

/* Under RCU. */
static inline void icm_writers_run(struct adapter *a)
{
	if (unlikely(atomic_load_explicit(&a->icm_writers.n, memory_order_relaxed)))
		icm_writers_catch_up(a);
}

/* Before frames of this queue are sent: once for all that the program has announced at a time.  Under sq. */
static inline void icm_writers_run_before(struct qp *qp)
{
	uint32_t producer = 0;

	if (usermem_fetch_be32(qp->producer, &producer) &&
	    producer + UINT64_C(1) == qp->req.steered_plus_1)
		return;
	qp->req.steered_plus_1 = producer + UINT64_C(1);
	icm_writers_run(qp->adapter);
}

/* Before the queue pair goes; without effect on one that is none of them. */
void icm_writer_forget(struct qp *qp);
