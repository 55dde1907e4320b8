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

/* Before the queue pair goes; without effect on one that is none of them. */
void icm_writer_forget(struct qp *qp);
