/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer of the bypass: a responder at which this process executes requests directly, because the
 * responder is in this process or its memory is exposed (wire/expose.h).  The functions for a peer
 * of this process are inline, because the rate of small messages depends on them.
 */
#pragma once

#include "adapter/qp/qp.h"
#include "wire/port_account.h"
#include "wire/route.h"

struct bypass_peer {
	struct qp_block *shared;
	struct remote *remote; /* the peer's process; NULL: this one */
	uint32_t pdn;
};

/* For traces. */
static inline const char *bypass_peer_way(const struct bypass_peer *r)
{
	return r->remote ? "exposed-memory" : "same-process";
}

/* The rest of bypass_peer_enter. */
bool bypass_peer_enter_remote(const struct qp *qp, uint32_t right,
			      struct bypass_peer *r) must_check;

/* Takes the lock if the responder expects this very request. */
static inline must_check bool bypass_peer_lock(const struct qp *qp, uint32_t right,
					       struct qp_block *b)
{
	if (unlikely(!shared_lock_try(&b->lock, qp->adapter->slot)))
		return false;
	if (likely(b->bypass_ok && b->dest_qpn == qp->qpn && b->dest_port == qp->path.src_port &&
		   b->port == qp->path.dst_port && b->epsn == qp->req.psn &&
		   (b->access & right) == right && pkey_match((uint16_t)b->pkey, qp->pkey)))
		return true;
	shared_unlock(&b->lock);
	return false;
}

/* The peer if it belongs to this device: on its port, with a number of this process. */
static inline const struct qp *bypass_peer_here(const struct qp *qp)
{
	struct adapter *a = qp->adapter;

	if (qp->path.dst_port != qp->path.src_port)
		return NULL;
	if (unlikely(!route_leads_here(&qp->route,
				       atomic_load_explicit(a->epoch, memory_order_acquire))) &&
	    !route_here(a->wire, &qp->path, qp->attr.dest_qpn))
		return NULL;
	return number_find(&a->qps, qp->attr.dest_qpn);
}

/*
 * Finds the peer of a connected queue pair, if it accepts a request of this right with
 * our next PSN.  On success its responder's lock is held.  sq held, under RCU.
 */
static inline must_check bool bypass_peer_enter(const struct qp *qp, uint32_t right,
						struct bypass_peer *r)
{
	const struct qp *peer = bypass_peer_here(qp);

	if (!peer)
		return bypass_peer_enter_remote(qp, right, r);
	if (unlikely(right != IB_ACCESS_REMOTE_WRITE ||
		     !bypass_peer_lock(qp, right, peer->resp.shared)))
		return false;
	*r = (struct bypass_peer){.shared = peer->resp.shared, .pdn = peer->resp.shared->pdn};
	return true;
}

/* Leaves the peer after these messages were executed; NULL: none. */
static inline void bypass_peer_leave(const struct qp *qp, const struct bypass_peer *r,
				     const struct message_sizes *done)
{
	if (likely(done)) {
		r->shared->epsn = psn_add(r->shared->epsn, done->packets);
		r->shared->msn = psn_add(r->shared->msn, done->messages);
	}
	shared_unlock(&r->shared->lock);
	if (unlikely(!done))
		return;
	if (r->remote)
		port_account_remote(qp->adapter->wire, &qp->path, r->remote, done);
	else
		port_account_looped(qp->adapter->counters, &qp->path, qp->adapter->port->ethernet,
				    done);
}

/* The address here of [va, va + len) under a key of another process; NULL: the key refuses. */
uint8_t *bypass_peer_remote_memory(const struct bypass_peer *r, uint32_t rkey, uint32_t right,
				   uint64_t va, uint64_t len) must_check;
