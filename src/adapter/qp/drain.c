// SPDX-License-Identifier: BSD-2-Clause
/*
 * Signature pipelining (mlx5dv_qp_cancel_posted_send_wrs(3)): a send queue stops when one of its
 * transfers meets a signature error, so that the program can withdraw requests that depend on the
 * transfer, for example a response with good status.  The queue enters the SQD state of the IB
 * specification by itself: the SQ_DRAINED event tells the program, which resumes the queue with a
 * modification to RTS.
 */
#include "adapter/qp/qp.h"
#include "adapter/qp/qp_state.h"
#include "base/trace.h"
#include "usermem/usermem.h"

void qp_set_drain_sigerr(struct qp *qp, bool drain)
{
	atomic_store(&qp->drain_sigerr, drain);
}

void qp_drain(struct qp *qp)
{
	uint32_t rts = IB_QPS_RTS;

	/* The queue enters SQD once, however many errors follow before it resumes. */
	if (!atomic_load(&qp->drain_sigerr) ||
	    !atomic_compare_exchange_strong(&qp->state, &rts, (uint32_t)IB_QPS_SQD))
		return;
	trace(qp, state, qp->qpn, qp_state_name(IB_QPS_RTS), qp_state_name(IB_QPS_SQD),
	      "signature-error");
	trace(sq, drain, qp->qpn, "signature-error");
	atomic_store(&qp->drain_notify, true);
	/* The last request may have ended between the two stores. */
	qp_kick(qp);
}

void qp_sq_counters(struct qp *qp, uint16_t *hw, uint16_t *sw)
{
	uint32_t producer;

	qp_lock(qp);
	*hw = (uint16_t)qp->req.next_block;
	*sw = *hw;
	if (qp->create.sq_blocks && usermem_load_be32(qp->producer, &producer))
		*sw = (uint16_t)producer;
	qp_unlock(qp);
}
