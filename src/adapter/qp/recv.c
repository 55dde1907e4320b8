// SPDX-License-Identifier: BSD-2-Clause
/* Receives of a queue pair, see recv.h. */
#include "adapter/qp/recv.h"

enum recv_verdict recv_take(struct qp *qp)
{
	struct responder *r = &qp->resp;
	enum recv_verdict v;

	/* An unreliable message that never ended left its receive for this one (IBTA 9.8.2.2). */
	if (unlikely(r->have_recv))
		return RECV_OK;
	v = r->srq ? srq_take(r->srq, &r->recv) : recv_ring_take(&qp->rq, &r->recv);
	if (v == RECV_OK) {
		r->have_recv = true;
		r->recv_srqn = r->srqn;
	}
	return v;
}
