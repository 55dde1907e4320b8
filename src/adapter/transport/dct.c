// SPDX-License-Identifier: BSD-2-Clause
/* See dct.h. */
#include "adapter/transport/dct.h"

#include <stdlib.h>
#include <string.h>

#include "adapter/qp/path.h"
#include "adapter/qp/qp.h"
#include "adapter/transport/responder.h"
#include "base/log.h"
#include "base/trace.h"
#include "base/rcu.h"
#include "wire/counter_shard.h"

#define BUCKETS	  256u
#define MAX_PEERS (1u << ADAPTER_LOG_MAX_DCT_PEERS)

struct peer {
	struct qp qp;
	_Atomic(uint64_t) id; /* of the initiator */
	uint64_t connection;
	_Atomic(struct peer *) next; /* of the same bucket */
	struct peer *all;
};

/*
 * Peers are found without a lock.  A place is given to another initiator under the lock; who finds
 * one at that moment looks at its number again under the responder's lock.
 */
struct dct {
	uint64_t key;
	struct spin lock;
	uint32_t count;
	struct peer *all;
	struct peer *hand; /* where the search for a silent one goes on */
	_Atomic(struct peer *) bucket[BUCKETS];
};

struct dct *dct_create(const struct qp_create_attr *attr)
{
	struct dct *d = calloc(1, sizeof(*d));

	if (d)
		d->key = attr->dc_key;
	return d;
}

static uint64_t id_of(const struct pkt *pkt)
{
	return (uint64_t)pkt->path->src_port << 24 | (pkt->sqpn & IB_QPN_MASK);
}

static _Atomic(struct peer *) *bucket_of(struct dct *d, uint64_t id)
{
	return &d->bucket[(id ^ id >> 8 ^ id >> 24) % BUCKETS];
}

static struct peer *find(struct dct *d, uint64_t id)
{
	struct peer *p = atomic_load_explicit(bucket_of(d, id), memory_order_acquire);

	while (p && atomic_load_explicit(&p->id, memory_order_relaxed) != id)
		p = atomic_load_explicit(&p->next, memory_order_acquire);
	return p;
}

static struct peer *new_peer(struct qp *target)
{
	struct dct *d = target->dct;
	struct peer *p = aligned_alloc(64, align_up(sizeof(*p), 64));
	struct qp *qp;

	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	qp = &p->qp;
	qp->adapter = target->adapter;
	qp->create = target->create;
	/* The consumer hears of its receives; it has no part in connections. */
	qp->create.async = NULL;
	qp->qpn = target->qpn;
	qp->bth = BTH_DC;
	qp->reliable = true;
	qp->resp.shared = &qp->resp.own;
	qp->mtu = target->mtu;
	qp->pkey = target->pkey;
	p->all = d->all;
	d->all = p;
	d->count++;
	return p;
}

static bool is_silent(const struct peer *p)
{
	const struct responder *r = &p->qp.resp;

	return !r->in_message && !r->ack_owed && r->rd_answered == r->rd_count;
}

static void unlink_peer(struct dct *d, struct peer *p)
{
	_Atomic(struct peer *) *at = bucket_of(d, atomic_load(&p->id));

	while (atomic_load(at) != p)
		at = &atomic_load(at)->next;
	atomic_store(at, atomic_load(&p->next));
}

/*
 * One that owes nothing loses its place.  Should its initiator come back, any of its packets says
 * where it stands.
 */
static struct peer *evict(struct dct *d)
{
	for (uint32_t n = 0; n < d->count; n++) {
		struct peer *p = d->hand ? d->hand : d->all;
		bool silent;

		d->hand = p->all;
		resp_lock(&p->qp);
		silent = is_silent(p);
		if (silent) {
			unlink_peer(d, p);
			p->connection = 0;
		}
		resp_unlock(&p->qp);
		if (silent)
			return p;
	}
	return NULL;
}

/* Lock held.  A peer that this initiator has from now on; its connection number is 0. */
static struct peer *add(struct qp *target, const struct pkt *pkt)
{
	struct dct *d = target->dct;
	_Atomic(struct peer *) *at = bucket_of(d, id_of(pkt));
	struct peer *p = d->count < MAX_PEERS ? new_peer(target) : evict(d);

	if (!p)
		return NULL;
	resp_lock(&p->qp);
	atomic_store(&p->id, id_of(pkt));
	path_reverse(pkt->path, &p->qp.path);
	p->qp.attr = target->attr;
	p->qp.attr.dest_qpn = pkt->sqpn;
	p->qp.attr.max_dest_rd_atomic = ADAPTER_MAX_RD_ATOMIC;
	atomic_store(&p->qp.state, (uint32_t)IB_QPS_INIT);
	resp_unlock(&p->qp);
	atomic_store_explicit(&p->next, atomic_load(at), memory_order_relaxed);
	atomic_store_explicit(at, p, memory_order_release);
	return p;
}

static struct peer *find_or_add(struct qp *target, const struct pkt *pkt)
{
	struct dct *d = target->dct;
	struct peer *p = find(d, id_of(pkt));

	if (likely(p))
		return p;
	spin_lock(&d->lock);
	p = find(d, id_of(pkt));
	if (!p)
		p = add(target, pkt);
	spin_unlock(&d->lock);
	return p;
}

/* A new connection of the same initiator: nothing of the last one counts any more. */
static void open_connection(struct peer *p, const struct pkt *pkt)
{
	struct qp *qp = &p->qp;

	/* the initiator gave up in the midst of a message */
	if (qp->resp.have_recv)
		recv_push_error(qp, qp->resp.recv.index, CQE_SYN_REM_ABORTED);
	qp_reset_queues(qp);
	path_reverse(pkt->path, &qp->path);
	qp->resp.shared->epsn = pkt->dc->psn & IB_PSN_MASK;
	p->connection = pkt->dc->connection;
	atomic_store(&qp->state, (uint32_t)IB_QPS_RTR);
}

/* False: the packet is none that this peer may take. */
static bool enter(struct peer *p, const struct pkt *pkt)
{
	bool ok = false;

	resp_lock(&p->qp);
	if (atomic_load(&p->id) == id_of(pkt) && pkt->dc->connection >= p->connection &&
	    qp_state(&p->qp) != IB_QPS_RESET) {
		if (pkt->dc->connection > p->connection)
			open_connection(p, pkt);
		ok = true;
	}
	resp_unlock(&p->qp);
	return ok;
}

static void dct_trace_drop(const struct qp *target, const struct pkt *pkt, const char *why)
{
	trace(packet, dropped, target->qpn, bth_op_name(pkt->opcode), pkt->psn, pkt->sqpn, why);
}

/*
 * Does no packet before this one wait for its answer?  Others get none without a place: it would
 * say that all before them had been executed.
 */
static bool is_oldest(const struct pkt *pkt)
{
	return psn_diff(pkt->psn, pkt->dc->psn) <= 0;
}

/* Without a place for the initiator, which has shown no right to one. */
static void refuse_key(struct qp *target, const struct pkt *pkt)
{
	struct path back;
	struct pkt nak = {
		.opcode = BTH_DC | BTH_ACK,
		.aeth = AETH_NAK | NAK_REMOTE_ACCESS,
		.pkey = target->pkey,
		.sqpn = target->qpn,
		.dqpn = pkt->sqpn,
		.psn = pkt->psn,
		.npkts = 1,
		.path = &back,
	};

	if (!is_oldest(pkt)) {
		dct_trace_drop(target, pkt, "access-key");
		return;
	}
	trace(nak, sent, target->qpn, pkt->sqpn, aeth_nak_name(nak.aeth), pkt->psn);
	log_info("DCT 0x%x: QP 0x%x has not got the access key", target->qpn, pkt->sqpn);
	shard_count(target->adapter->counters, HW_RESP_REMOTE_ACCESS_ERRORS, 1);
	path_reverse(pkt->path, &back);
	/* if the wire is busy, the request comes again */
	(void)wire_xmit(target->adapter->wire, &nak);
}

void dct_receive(struct qp *target, const struct pkt *pkt)
{
	struct peer *p;

	/* a DCI takes no requests */
	if (unlikely(!target->dct || qp_state(target) != IB_QPS_RTR || !pkt->dc)) {
		dct_trace_drop(target, pkt, target->dct ? "state" : "not-a-target");
		return;
	}
	/* as responder_receive, but without a place for strangers */
	if (unlikely(!pkey_match(pkt->pkey, target->pkey))) {
		dct_trace_drop(target, pkt, "pkey");
		shard_count(target->adapter->counters, PORT_RCV_ERRORS, 1);
		return;
	}
	if (unlikely(pkt->dc->key != target->dct->key)) {
		refuse_key(target, pkt);
		return;
	}
	p = find_or_add(target, pkt);
	if (likely(p && enter(p, pkt)))
		responder_receive(&p->qp, pkt);
	else
		dct_trace_drop(target, pkt, p ? "old-connection" : "too-many-initiators");
}

static void stop(struct peer *p)
{
	struct qp *qp = &p->qp;

	(void)responder_continue(qp);
	resp_lock(qp);
	if (qp->resp.have_recv)
		recv_push_error(qp, qp->resp.recv.index, CQE_SYN_WR_FLUSH);
	qp->resp.have_recv = false;
	atomic_store(&qp->state, (uint32_t)IB_QPS_RESET);
	resp_unlock(qp);
	qp_forget(qp);
}

void dct_destroy(struct qp *target)
{
	struct dct *d = target->dct;
	struct peer *next;

	for (struct peer *p = d->all; p; p = p->all)
		stop(p);
	rcu_wait();
	for (struct peer *p = d->all; p; p = next) {
		next = p->all;
		/* a reader of before may have listed it once more */
		qp_forget(&p->qp);
		free(p);
	}
	free(d);
}
