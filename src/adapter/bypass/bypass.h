/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The short way of the commonest requests: an RDMA WRITE to a QP of this process, or an RDMA WRITE
 * or READ to one of another process that lays its memory open (wire/expose.h).
 *
 * Nothing lies between the two queues then, so the request is done at both ends in one go, without
 * making a packet. It leaves exactly the state, counters and completion that the long way would.
 * Whatever is unusual (something outstanding, a key that refuses, a peer that is busy or not ready)
 * is left to the long way, which knows what to do about it; so there is no error handling here.
 */
#pragma once

#include "adapter/qp/qp.h"
#include "adapter/qp/send_wqe.h"

/* May the next request of this queue pair be executed that way?  Under sq. */
static inline bool bypass_open(const struct qp *qp)
{
	return qp->bth == BTH_RC &&
	       atomic_load_explicit(&qp->comp.head, memory_order_acquire) ==
		       atomic_load_explicit(&qp->req.tail, memory_order_relaxed) &&
	       /* the last to complete may have been a read that stopped the queue */
	       likely(!atomic_load_explicit(&qp->drain_sigerr, memory_order_relaxed) ||
		      qp_state(qp) == IB_QPS_RTS);
}

/* Requests are done, of so many packets and blocks.  Under sq. */
static inline void bypass_done(struct qp *qp, uint32_t packets, uint32_t blocks)
{
	qp->req.psn = psn_add(qp->req.psn, packets);
	atomic_store_explicit(&qp->comp.acked_psn, qp->req.psn, memory_order_release);
	qp->req.next_block += blocks;
}

/* Requester, sq held, under RCU: true if the request is done and retired. */
bool bypass_take(struct qp *qp, const struct send_wqe *w);
