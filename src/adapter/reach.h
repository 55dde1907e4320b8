/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer within reach: a responder that requests are executed at directly, because it is one of
 * this process or lies open to it (wire/expose.h).  What concerns one of this process is inline:
 * the rate of small messages depends on it.
 */
#pragma once

#include "adapter/qp.h"
#include "wire/tally.h"

struct reach {
	struct qp_block *b;
	struct far *far; /* the process that it is in; NULL: this one */
	uint32_t pdn;
};

/* The rest of reach_enter. */
bool reach_enter_far(const struct qp *qp, uint32_t right, struct reach *r) must_check;

/* Takes the lock if the responder expects this very request. */
static inline must_check bool reach_lock(const struct qp *qp, uint32_t right, struct qp_block *b)
{
	if (unlikely(!far_try(&b->lock, qp->adapter->slot)))
		return false;
	if (likely(b->quiet && b->dest_qpn == qp->qpn && b->dest_port == qp->path.src_port &&
		   b->epsn == qp->req.psn && (b->access & right) == right &&
		   pkey_match((uint16_t)b->pkey, qp->pkey)))
		return true;
	far_unlock(&b->lock);
	return false;
}

/* The peer if it is of this device: on its port, with a number of this process. */
static inline const struct qp *reach_peer_here(const struct qp *qp)
{
	struct adapter *a = qp->adapter;

	if (qp->path.dst_port != qp->path.src_port ||
	    unlikely(atomic_load_explicit(&a->port->state, memory_order_acquire) != IB_PORT_ACTIVE))
		return NULL;
	return number_find(&a->qps, qp->attr.dest_qpn);
}

/*
 * The peer of a connected queue pair that would accept a request of this right (0: SEND) with our
 * next PSN.  Its responder's lock is held on success.  sq held, under RCU.
 */
static inline must_check bool reach_enter(const struct qp *qp, uint32_t right, struct reach *r)
{
	const struct qp *peer = reach_peer_here(qp);

	if (!peer)
		return reach_enter_far(qp, right, r);
	if (unlikely(right != IB_ACCESS_REMOTE_WRITE || !reach_lock(qp, right, peer->resp.b)))
		return false;
	*r = (struct reach){.b = peer->resp.b, .pdn = peer->resp.b->pdn};
	return true;
}

/* Ends it, when these were executed; NULL: none. */
static inline void reach_leave(const struct qp *qp, const struct reach *r,
			       const struct message_sizes *done)
{
	if (likely(done)) {
		r->b->epsn = psn_add(r->b->epsn, done->packets);
		r->b->msn = psn_add(r->b->msn, done->messages);
	}
	far_unlock(&r->b->lock);
	if (unlikely(!done))
		return;
	if (r->far)
		tally_far(qp->adapter->wire, &qp->path, r->far, done);
	else
		tally_looped(qp->adapter->counters, &qp->path, qp->adapter->port->ethernet, done);
}

/* Where [va, va + len) of a key of another process lies here; NULL: the key refuses. */
uint8_t *reach_far_memory(const struct reach *r, uint32_t rkey, uint32_t right, uint64_t va,
			  uint64_t len) must_check;
