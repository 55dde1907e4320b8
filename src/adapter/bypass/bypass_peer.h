/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer of the bypass: a responder at which this process executes requests directly, because the
 * responder is in this process or its memory is exposed (exposure/expose.h).  Inline, because the
 * rate of small messages depends on it.
 */
#pragma once

#include "adapter/core/device.h"
#include "adapter/qp/qp.h"
#include "exposure/expose.h"
#include "wire/pkt.h"
#include "wire/route.h"
#include "wire/tap.h"
#include "wire/traffic.h"
#include "wire/wire.h"

/* Counts at the ports for messages without packets: both ends count the packets that there would
 * have been.  Inline where the rate of small messages depends on it. */

/* In units of PortXmitData: words of 4 octets. */
struct port_account {
	uint64_t sent, sent_packets;	     /* what the requesting side has sent */
	uint64_t received, received_packets; /* what the same side has received */
	/* Counts the requests that the other side has served; PORT_COUNTERS: none. */
	enum port_counter request;
	uint32_t requests;
};

/* Adds to a shard.  add: shard_add or shard_add_shared.  It counts what was sent only if no cell
 * counts that (wire/traffic.h). */
static inline void port_account_add(_Atomic(uint64_t) *shard, const struct port_account *t,
				    uint32_t cell, shard_add_fn *add)
{
	if (unlikely(cell == TRAFFIC_NONE)) {
		add(shard, PORT_XMIT_DATA, t->sent);
		add(shard, PORT_XMIT_PACKETS, t->sent_packets);
	}
	add(shard, PORT_RCV_DATA, t->received);
	add(shard, PORT_RCV_PACKETS, t->received_packets);
	if (t->request != PORT_COUNTERS)
		add(shard, t->request, t->requests);
}

/* Counts at one port of this process; counters: the port's in shard 0. */
static inline void port_account_count(_Atomic(uint64_t) *counters, uint32_t cell,
				      const struct port_account *t)
{
	_Atomic(uint64_t) *own = shard_own(counters);

	if (likely(own))
		port_account_add(own, t, cell, shard_add);
	else
		port_account_add(counters, t, cell, shard_add_shared);
}

/* Counts RDMA WRITEs and their acknowledgements that this port sends to itself. */
static inline void port_account_looped(_Atomic(uint64_t) *counters, const struct path *path,
				       bool ethernet, const struct message_sizes *m)
{
	const struct message_sizes writes = {MESSAGE_WRITE, m->messages, m->packets,
					     m->payload,    false,	 m->bth};
	uint32_t acks = m->unanswered ? 0 : m->messages;
	uint64_t octets =
		message_octets(path, ethernet, &writes) + acks * ack_octets(path, ethernet);
	uint32_t packets = m->packets + acks;
	const struct port_account both = {
		.sent = octets / 4,
		.sent_packets = packets,
		.received = octets / 4,
		.received_packets = packets,
		.request = HW_RX_WRITE_REQUESTS,
		.requests = m->messages,
	};

	port_account_count(counters, TRAFFIC_NONE, &both);
}

/* Counts for us, and counts for the peer's process what its own device would have counted. */
static inline void port_account_both(const struct adapter *a, const struct path *path,
				     struct remote *f, const struct port_account *ours,
				     enum port_counter request)
{
	const struct port_account theirs = {
		.sent = ours->received,
		.sent_packets = ours->received_packets,
		.received = ours->sent,
		.received_packets = ours->sent_packets,
		.request = request,
		.requests = ours->requests,
	};
	/* somebody found the peer in the subnet, so its port is one of these */
	uint32_t port = a->ports[path->dst_port].host_index % SLOT_PORTS;
	uint32_t there = traffic_there(a->traffic, path), back = traffic_back(a->traffic, path);
	unsigned shard;

	port_account_count(a->counters, there, ours);
	if (likely(there != TRAFFIC_NONE))
		traffic_add(a->traffic, there, ours->sent, ours->sent_packets);
	if (likely(back != TRAFFIC_NONE))
		traffic_add(a->traffic, back, theirs.sent, theirs.sent_packets);
	/* port_account_count has given this thread a shard of its own, if there was one */
	shard = remote_shard(f, shard_plus_1 - 1);
	if (likely(shard))
		port_account_add(f->slot->counters[shard][port], &theirs, back, shard_add);
	else
		port_account_add(f->slot->counters[0][port], &theirs, back, shard_add_shared);
}

/* Counts RDMA WRITEs to another process and their acknowledgements. */
static inline void port_account_written(const struct adapter *a, const struct path *path,
					struct remote *f, const struct message_sizes *m)
{
	const struct message_sizes writes = {MESSAGE_WRITE, m->messages, m->packets,
					     m->payload,    false,	 m->bth};
	bool ethernet = a->port->ethernet;
	uint32_t acks = m->unanswered ? 0 : m->messages;
	const struct port_account ours = {
		.sent = message_octets(path, ethernet, &writes) / 4,
		.sent_packets = m->packets,
		.received = ack_octets(path, ethernet) * acks / 4,
		.received_packets = acks,
		.request = PORT_COUNTERS,
		.requests = m->messages,
	};

	port_account_both(a, path, f, &ours, HW_RX_WRITE_REQUESTS);
}

/* Counts RDMA READs from another process, or atomics there, by the answers that would have come. */
void port_account_read(const struct adapter *a, const struct path *path, struct remote *f,
		       const struct message_sizes *answers);

/* Counts messages of any kind to another process. */
static inline void port_account_remote(const struct adapter *a, const struct path *path,
				       struct remote *f, const struct message_sizes *m)
{
	if (m->kind == MESSAGE_WRITE)
		port_account_written(a, path, f, m);
	else
		port_account_read(a, path, f, m);
}

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
