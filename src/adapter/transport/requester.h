/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester: reads the send ring, makes request packets. */
#pragma once

#include "adapter/qp/qp.h"

/* Gives the requester its chance: runs it here if nobody else does.  No other lock held, under RCU.
 */
void qp_run(struct qp *qp);
/* The work itself; called with the baton held. */
void requester_run(struct qp *qp);
/* The QP is in error: flushes both of its queues.  Called with the baton held. */
void requester_flush(struct qp *qp);
