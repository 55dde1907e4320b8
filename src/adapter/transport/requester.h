/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester: reads the send ring, makes request packets. */
#pragma once

#include "adapter/qp/qp.h"

/* Runs the requester here unless another thread runs it.  No other lock held, under RCU. */
void qp_run(struct qp *qp);
/* Runs the requester.  Called with the baton held. */
void requester_run(struct qp *qp);
/* The QP is in error: flushes both of its queues.  Called with the baton held. */
void requester_flush(struct qp *qp);
