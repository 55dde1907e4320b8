// SPDX-License-Identifier: BSD-2-Clause
/* Frames that have gone, and are retired together. */
#include "adapter/transport/sent_frames.h"

#include "adapter/transport/completer.h"

/* So many at a time. */
#define SENT_FRAMES 16u

void sent_frames_retire(struct qp *qp)
{
	/* A queue pair that sends nothing, a DC target's, may be reset by another thread meanwhile. */
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
