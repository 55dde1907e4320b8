/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bypass executes the commonest requests without packets: an RDMA WRITE to a QP of this
 * process, or an RDMA WRITE, READ or atomic to a QP of another process that exposes its memory
 * (exposure/expose.h).
 *
 * Nothing lies between the two queues then, so one thread executes the request at both ends.  It
 * leaves exactly the state, counters and completions that packets would leave.  The bypass leaves
 * unusual requests (something is outstanding, a key refuses, the peer is busy or not ready) to the
 * requester, which handles these cases; so there is no error handling here.
 */
#pragma once

#include "adapter/qp/qp.h"
#include "adapter/qp/send_wqe.h"

/* Does somebody observe packets, so that there have to be some? */
static inline bool bypass_observed(const struct qp *qp)
{
	return unlikely(atomic_load_explicit(qp->adapter->observers, memory_order_relaxed));
}

/* May the bypass execute the next request of this queue pair?  Under sq. */
static inline bool bypass_open(const struct qp *qp)
{
	return !bypass_observed(qp) && qp->req.direct && qp_is_migrated(qp) &&
	       qp_all_completed(qp) &&
	       /* the last request of a DCI may have failed since this one was admitted */
	       likely(!atomic_load_explicit(&qp->comp.withdrawn, memory_order_relaxed)) &&
	       /* the last request may have been a READ whose signature error stopped the queue */
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

/* Called after the peer was entered for an XRC request: the queue that the request names gives the
 * protection domain (IBTA annex A14).  False: the target has no such queue. */
bool bypass_srq_enter(const struct qp *qp, uint32_t srqn, struct bypass_peer *r) must_check;

/* Executes a request: true if it is done and retired.  The requester calls this with sq held, as a
 * reader. */
bool bypass_take(struct qp *qp, const struct send_wqe *w);

/* Ends what peers in other processes may do by themselves at a queue pair, and with what it has
 * sent. */

/*
 * Called after one of these: the responder's word was revoked (resp_revoke, resp_set_view), so
 * peers begin nothing there any more, and what they have begun does not count; the word allows
 * less; or payloads were given up (completer_withdraw).  On return nobody is in the memory.  The
 * caller calls this before the program hears of the change: after a modification, and in front of
 * the end of a queue pair.  It holds no locks.
 */
void bypass_revoke_qp(struct qp *qp);

/* These do the same without waiting, in front of completions in error, with the requester's baton
 * and as a reader: the first asks once, and the second tells whether the revocation is over. */
void bypass_revoke_ask(struct qp *qp);
bool bypass_revoke_over(struct qp *qp);

/* Executes bursts of the plainest requests (rdma_burst.c), from the head of the ring on.  True: the
 * ring is empty.  False: the requester handles the request at the head, if there is one.  sq held. */
bool rdma_burst_run(struct qp *qp);
