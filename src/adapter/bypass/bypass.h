/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bypass executes the commonest requests without packets: an RDMA WRITE to a QP of this
 * process, or an RDMA WRITE, READ or atomic to a QP of another process that exposes its memory
 * (exposure/expose.h).
 *
 * Nothing lies between the two queues then, so one thread executes the request at both ends.  It
 * leaves exactly the state, counters and completions that packets would leave.  Requests that are
 * unusual (something is outstanding, a key refuses, the peer is busy or not ready) go to the
 * requester, which handles these cases; so there is no error handling here.
 */
#pragma once

#include "adapter/qp/qp.h"
#include "adapter/qp/send_wqe.h"

/* Does somebody want to see packets? */
static inline bool bypass_observed(const struct qp *qp)
{
	return unlikely(atomic_load_explicit(qp->adapter->observers, memory_order_relaxed));
}

/* May the next request of this queue pair be executed that way?  Under sq. */
static inline bool bypass_open(const struct qp *qp)
{
	return !bypass_observed(qp) && qp->req.direct &&
	       atomic_load_explicit(&qp->comp.head, memory_order_acquire) ==
		       atomic_load_explicit(&qp->req.tail, memory_order_relaxed) &&
	       /* the last request may have been a read whose signature error stopped the queue */
	       likely(!atomic_load_explicit(&qp->drain_sigerr, memory_order_relaxed) ||
		      qp_state(qp) == IB_QPS_RTS);
}

/* Counts requests of so many packets and blocks as done.  Under sq. */
static inline void bypass_done(struct qp *qp, uint32_t packets, uint32_t blocks)
{
	qp->req.psn = psn_add(qp->req.psn, packets);
	atomic_store_explicit(&qp->comp.acked_psn, qp->req.psn, memory_order_release);
	qp->req.next_block += blocks;
}

struct bypass_peer;

/* The peer was entered for an XRC request, and the queue that it names gives the protection domain
 * (IBTA annex A14).  False: that is none of the target's. */
bool bypass_srq_enter(const struct qp *qp, uint32_t srqn, struct bypass_peer *r) must_check;

/* Executes a request: true if it is done and retired.  Called by the requester, sq held, under
 * RCU. */
bool bypass_take(struct qp *qp, const struct send_wqe *w);
