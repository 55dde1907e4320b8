// SPDX-License-Identifier: BSD-2-Clause
/* Receives of a queue pair, see recv.h. */
#include "adapter/qp/recv.h"

void recv_begin(struct qp *qp)
{
	if (qp->resp.srq)
		srq_begin(qp->resp.srq);
}

void recv_end(struct qp *qp)
{
	if (qp->resp.srq)
		srq_end(qp->resp.srq);
}

enum recv_verdict recv_take_next(struct qp *qp)
{
	struct responder *r = &qp->resp;
	enum recv_verdict v;

	/* An unreliable message that never ended has left its receive for this one (IBTA
	 * 9.8.2.2). */
	if (unlikely(r->have_recv))
		return RECV_OK;
	v = r->srq ? srq_take_next(r->srq, &r->recv) : recv_ring_take(&qp->rq, &r->recv);
	if (v == RECV_OK) {
		r->have_recv = true;
		r->recv_srqn = r->srqn;
	}
	return v;
}

enum recv_verdict recv_take(struct qp *qp)
{
	enum recv_verdict v;

	recv_begin(qp);
	v = recv_take_next(qp);
	recv_end(qp);
	return v;
}
