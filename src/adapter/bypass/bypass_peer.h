/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer of the bypass: a responder at which this process executes requests directly, because the
 * responder is in this process or its memory is exposed (exposure/expose.h).  Inline, because the
 * rate of small messages depends on it.
 */
#pragma once

#include "adapter/qp/qp.h"
#include "adapter/bypass/port_account.h"
#include "wire/route.h"
#include "wire/tap.h"

struct bypass_peer {
	struct responder *here; /* if it is in this process, with its lock held; or NULL, and: */
	struct remote *remote;	/* the peer's process */
	struct qp_block *block;
	uint64_t word; /* the block's word when the peer was entered */
	uint32_t pdn, xrcdn;
	/* XRC: the word of the queue that the request names, and its value.  Otherwise NULL. */
	const _Atomic(uint64_t) *srq;
	uint64_t srq_word;
};

static inline bool bypass_peer_fits(const struct qp *qp, uint32_t right, const struct qp_view *v)
{
	return likely(v->transport == qp->bth && v->dest_qpn == qp->qpn &&
		      v->connection == qp->req.connection && v->dest_port == qp->path.src_port &&
		      v->port == qp->path.dst_port && (v->access & right) == right &&
		      pkey_match((uint16_t)v->pkey, qp->pkey));
}

/* Takes the responder's lock if the responder expects this very request. */
static inline must_check bool bypass_peer_lock(const struct qp *qp, uint32_t right,
					       struct responder *r)
{
	if (unlikely(!spin_try(&r->lock)))
		return false;
	if (likely(r->bypass_ok && r->epsn == qp->req.psn && bypass_peer_fits(qp, right, &r->view)))
		return true;
	spin_unlock(&r->lock);
	return false;
}

/* Returns the peer if it belongs to this device: it is on the device's port, and its number is one
 * of this process. */
static inline struct qp *bypass_peer_here(const struct qp *qp)
{
	struct adapter *a = qp->adapter;
	uint64_t epoch;

	if (qp->path.dst_port != qp->path.src_port)
		return NULL;
	epoch = atomic_load_explicit(a->epoch, memory_order_acquire);
	if (!route_leads_here(&qp->route, epoch) &&
	    (likely(route_leads_away(&qp->route, epoch)) ||
	     !route_here(a->wire, &qp->path, qp->attr.dest_qpn)))
		return NULL;
	return number_find(&a->qps, qp->attr.dest_qpn);
}

/* Returns what the process of a peer that is not here opens to us; NULL: nothing. */
static inline struct remote *bypass_peer_remote(const struct qp *qp)
{
	const struct adapter *a = qp->adapter;
	uint64_t epoch = atomic_load_explicit(a->epoch, memory_order_acquire);
	uint32_t slot = route_known(&qp->path, epoch, qp->attr.dest_qpn) - 1;
	struct remote *f;

	/* As a rule we know the route, and need to ask nothing else. */
	if (unlikely(slot >= REGISTRY_SLOTS || !a->remotes))
		return wire_remote(a->wire, &qp->path, qp->attr.dest_qpn);
	f = remote_living(&a->remotes[slot]);
	return likely(f) && f->keys ? f : NULL;
}

/* Does the work of bypass_peer_enter for a peer in another process. */
static inline must_check bool bypass_peer_enter_remote(const struct qp *qp, uint32_t right,
						       struct bypass_peer *r)
{
	struct remote *f = bypass_peer_remote(qp);
	struct qp_block *b;
	struct qp_view view;
	uint64_t word;

	if (unlikely(!f || slot_observed(f->slot)))
		return false;
	b = likely(qp->bth != BTH_DC) ? remote_qp(f, qp->attr.dest_qpn)
				      : remote_dc(f, qp->attr.dest_qpn, qp->qpn);
	word = qp_word_load(&b->word);
	if (unlikely(!qp_word_is_open(word) || qp_word_epsn(word) != qp->req.psn))
		return false;
	view = b->view;
	if (unlikely(b->qpn != qp->attr.dest_qpn || !bypass_peer_fits(qp, right, &view)))
		return false;
	*r = (struct bypass_peer){
		.remote = f, .block = b, .word = word, .pdn = view.pdn, .xrcdn = view.xrcdn};
	/* The view changes only together with the word's epoch, so it holds if the word is still
	 * the same. */
	atomic_thread_fence(memory_order_acquire);
	return likely(qp_word_load(&b->word) == word);
}

/* Finds the peer of a connected queue pair, if it accepts a request of this right with our next
 * PSN.  After a success the caller must call bypass_peer_leave.  sq held, as a reader. */
static inline must_check bool bypass_peer_enter(const struct qp *qp, uint32_t right,
						struct bypass_peer *r)
{
	struct qp *peer = bypass_peer_here(qp);

	if (!peer)
		return bypass_peer_enter_remote(qp, right, r);
	if (unlikely(right != IB_ACCESS_REMOTE_WRITE || !bypass_peer_lock(qp, right, &peer->resp)))
		return false;
	*r = (struct bypass_peer){
		.here = &peer->resp, .pdn = peer->resp.view.pdn, .xrcdn = peer->resp.view.xrcdn};
	return true;
}

/* Does the work of bypass_peer_leave for a peer in another process. */
static inline must_check bool bypass_peer_leave_remote(const struct qp *qp,
						       const struct bypass_peer *r,
						       const struct message_sizes *done)
{
	if (unlikely(!qp_word_commit(&r->block->word, r->word, done->packets, done->messages)))
		return false;
	port_account_remote(qp->adapter, &qp->path, r->remote, done);
	return true;
}

/*
 * Leaves the peer after these messages were executed; NULL: none was.  False: none counts, because
 * there was none, or because a peer in another process did not wait for them.  Then packets carry
 * them.
 */
static inline must_check bool bypass_peer_leave(const struct qp *qp, const struct bypass_peer *r,
						const struct message_sizes *done)
{
	if (unlikely(r->remote))
		return done && bypass_peer_leave_remote(qp, r, done);
	if (likely(done)) {
		r->here->epsn = psn_add(r->here->epsn, done->packets);
		r->here->msn = psn_add(r->here->msn, done->messages);
	}
	spin_unlock(&r->here->lock);
	if (likely(done))
		port_account_looped(qp->adapter->counters, &qp->path, qp->adapter->port->ethernet,
				    done);
	return done;
}
