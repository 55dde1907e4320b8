// SPDX-License-Identifier: BSD-2-Clause
/* Retires frames that were sent, several at a time. */
#include "adapter/transport/sent_frames.h"

#include "adapter/transport/completer.h"

/* How many frames are retired at a time. */
#define SENT_FRAMES 16u

void sent_frames_retire(struct qp *qp)
{
	/* A DC target's queue pair sends nothing, and another thread may be resetting it. */
	if (!qp->create.sq_blocks || !qp->req.marked)
		return;
	qp->req.marked = 0;
	completer_retire_done(qp);
}

void sent_frames_add(struct qp *qp)
{
	struct send_op *op = qp_send_op(qp, qp->req.cur);

	op->syndrome = 0;
	atomic_store_explicit(&op->done, true, memory_order_release);
	if (++qp->req.marked >= min_u32(SENT_FRAMES, qp->create.sq_blocks))
		sent_frames_retire(qp);
}
