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
		/* Drops the 16-bit producer counter that a peer has noted: it could wrap before the
		 * peer looks again. */
		r->shared->rq_seen = r->shared->rq_head;
	}
	return v;
}

void recv_settle_claim(struct qp *qp)
{
	struct qp_block *b = qp->resp.shared;
	uint32_t head = b->rq_head;

	if (b->rq_claim && qp->create.rq_wqes &&
	    cq_holds_receive(qp->create.recv_cq, b->rq_claim_pi, qp->qpn, (uint16_t)head))
		b->rq_head = head + 1;
	b->rq_claim = 0;
}
