// SPDX-License-Identifier: BSD-2-Clause
/* The target; see dc.h. */
#include "adapter/core/violation.h"
#include "adapter/transport/dc.h"

#include <stdlib.h>
#include <string.h>

#include "adapter/qp/path.h"
#include "adapter/qp/qp.h"
#include "adapter/transport/completer.h"
#include "adapter/transport/explain.h"
#include "adapter/transport/responder.h"
#include "base/explain.h"
#include "base/trace.h"
#include "base/hazard.h"
#include "wire/counter_shard.h"
#include "wire/route.h"

#define BUCKETS	  2048u
#define MAX_PEERS (1u << ADAPTER_LOG_MAX_DCT_PEERS)

#define NO_INITIATOR UINT64_MAX

/* The first search for dead owners comes when there are this many places. */
#define SWEEP_MIN 1024u

struct peer {
	struct qp qp;
	_Atomic(uint64_t) id;	   /* the initiator's, or NO_INITIATOR */
	_Atomic(uint32_t) process; /* the initiator's */
	uint64_t connection;
	_Atomic(struct peer *) next; /* the next in the same bucket */
	struct peer *all;
	struct peer *spare;
};

/*
 * A reader finds peers without a lock.  A writer may give a place to another initiator under the
 * lock, so a reader checks the initiator's number again under the responder's lock.
 */
struct dct {
	uint64_t key;
	struct spin lock;
	uint32_t count;
	uint32_t sweep_at; /* search when there are this many places, none of them spare, */
	uint32_t ends;	   /* and the count of ended processes is no longer this */
	struct peer *all;
	struct peer *spare; /* places without an initiator */
	_Atomic(struct peer *) bucket[BUCKETS];
};

struct dct *dct_create(const struct qp_create_attr *attr)
{
	struct dct *d = calloc(1, sizeof(*d));

	if (d) {
		d->key = attr->dc_key;
		d->sweep_at = SWEEP_MIN;
	}
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

static struct peer *dct_find(struct dct *d, uint64_t id)
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
	/* The consumer only hears of receives; connections are not its business. */
	qp->create.async = NULL;
	qp->resp.established = true;
	qp->qpn = target->qpn;
	qp->bth = BTH_DC;
	qp->reliable = true;
	qp->mtu = target->mtu;
	qp->pkey = target->pkey;
	p->all = d->all;
	d->all = p;
	d->count++;
	return p;
}

static void unlink_peer(struct dct *d, struct peer *p)
{
	_Atomic(struct peer *) *at = bucket_of(d, atomic_load(&p->id));

	while (atomic_load(at) != p)
		at = &atomic_load(at)->next;
	atomic_store(at, atomic_load(&p->next));
}

static bool peer_ended(const struct peer *p)
{
	return !dc_process_lives(p->qp.adapter->slots,
				 atomic_load_explicit(&p->process, memory_order_relaxed));
}

/* ---- what initiators of other processes may execute by themselves ---- */

/* Gives the responder of an initiator that has just come a block, if one is free.  The caller holds
 * the responder's lock. */
static void peer_expose(struct peer *p, uint32_t dcin)
{
	struct responder *r = &p->qp.resp;

	if (r->shared)
		return;
	__atomic_store_n(&r->shared, expose_dc(wire_expose(p->qp.adapter->wire), p->qp.qpn, dcin),
			 __ATOMIC_RELAXED);
	r->view = (struct qp_view){0}; /* the block says nothing yet */
}

/* Takes the block back, because the initiator does nothing any more, or must not.  The caller holds
 * the responder's lock. */
static void peer_unexpose(struct peer *p)
{
	struct responder *r = &p->qp.resp;
	struct qp_block *b = r->shared;

	if (!b)
		return;
	resp_close(&p->qp);
	resp_revoke(&p->qp);
	__atomic_store_n(&r->shared, NULL, __ATOMIC_RELAXED);
	expose_qp_end(b);
}

/*
 * Lets the initiator execute by itself: it has opened the connection with a packet, hence with the
 * key of the target.  Nobody need wait for accesses of the last connection, because an initiator
 * opens another one only when it has nothing under way.
 */
static void peer_set_view(struct peer *p)
{
	struct qp *qp = &p->qp;

	(void)resp_set_view(qp, &(struct qp_view){
					.transport = qp->bth,
					.dest_qpn = qp->attr.dest_qpn,
					.port = qp->path.src_port,
					.dest_port = qp->path.dst_port,
					.pdn = qp->create.pdn,
					.access = qp->attr.access,
					.pkey = qp->pkey,
					.connection = p->connection,
				});
}

/* Forgets the last connection.  The caller holds the responder's lock. */
static void end_connection(struct peer *p)
{
	struct responder *r = &p->qp.resp;

	/* the initiator gave up in the middle of a message */
	if (r->have_recv)
		recv_push_error(&p->qp, r->recv.index, CQE_SYN_REM_ABORTED);
	qp_reset_queues(&p->qp);
}

/* Frees the place of an initiator that has ended.  False: a new owner of its number has come
 * meanwhile.  The caller holds the lock. */
static bool retire_peer(struct dct *d, struct peer *p)
{
	bool ended;

	resp_lock(&p->qp);
	ended = peer_ended(p);
	if (ended) {
		end_connection(p);
		peer_unexpose(p);
		unlink_peer(d, p);
		p->connection = 0;
		atomic_store(&p->id, NO_INITIATOR);
		atomic_store(&p->qp.state, (uint32_t)IB_QPS_RESET);
		p->spare = d->spare;
		d->spare = p;
	}
	resp_unlock(&p->qp);
	return ended;
}

/*
 * Frees the places of dead initiators.  A search costs as much as there are places, so the next one
 * comes when there are twice as many as this one found in use.  The caller holds the lock; no place
 * is spare.
 */
static void sweep_peers(struct dct *d, uint32_t ends)
{
	uint32_t live = 0;

	d->ends = ends;
	for (struct peer *p = d->all; p; p = p->all)
		if (!peer_ended(p) || !retire_peer(d, p))
			live++;
	d->sweep_at = min_u32(SWEEP_MIN + 2 * live, MAX_PEERS);
}

/* Takes a place; NULL: there is none.  The caller holds the lock. */
static struct peer *take_place(struct qp *target)
{
	uint32_t ends = wire_process_ends(target->adapter->wire);
	struct dct *d = target->dct;
	struct peer *p;

	if (!d->spare && d->count >= d->sweep_at && d->ends != ends)
		sweep_peers(d, ends);
	p = d->spare;
	if (!p)
		return d->count < MAX_PEERS ? new_peer(target) : NULL;
	d->spare = p->spare;
	return p;
}

/* Gives the initiator a place, whose connection number is 0.  The caller holds the lock. */
static struct peer *dct_add(struct qp *target, const struct pkt *pkt)
{
	struct dct *d = target->dct;
	_Atomic(struct peer *) *at = bucket_of(d, id_of(pkt));
	struct peer *p = take_place(target);

	if (!p)
		return NULL;
	resp_lock(&p->qp);
	atomic_store(&p->id, id_of(pkt));
	atomic_store(&p->process, pkt->dc->process);
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

/* Finds or makes the place of an initiator whose process lives. */
static struct peer *find_or_add(struct qp *target, const struct pkt *pkt)
{
	struct dct *d = target->dct;
	struct peer *p;

	spin_lock(&d->lock);
	p = dct_find(d, id_of(pkt));
	if (!p)
		p = dct_add(target, pkt);
	spin_unlock(&d->lock);
	return p;
}

/* Opens a new connection for the same initiator, or for a later owner of its number. */
static void open_connection(struct peer *p, const struct pkt *pkt)
{
	struct qp *qp = &p->qp;

	end_connection(p);
	path_reverse(pkt->path, &qp->path);
	route_forget(&qp->route);
	qp->path.route = &qp->route;
	qp->resp.epsn = pkt->dc->psn & IB_PSN_MASK;
	p->connection = pkt->dc->connection;
	peer_expose(p, pkt->sqpn);
	peer_set_view(p);
	atomic_store(&p->process, pkt->dc->process);
	atomic_store(&qp->state, (uint32_t)IB_QPS_RTR);
}

/* A refusal: the place that we found has another initiator by now, or none. */
static const char place_swept[] = "no-place";

/* Why this peer may not take the packet; NULL: it may.  The caller holds the responder's lock. */
static const char *connection_refusal(struct peer *p, const struct pkt *pkt)
{
	if (atomic_load(&p->id) != id_of(pkt))
		return place_swept;
	if (qp_state(&p->qp) == IB_QPS_RESET)
		return "target-goes";
	if (pkt->dc->connection < p->connection)
		return "old-connection";
	if (pkt->dc->connection == p->connection)
		return NULL;
	if (!dc_process_lives(p->qp.adapter->slots, pkt->dc->process))
		return "initiator-ended";
	open_connection(p, pkt);
	return NULL;
}

static const char *dct_enter(struct peer *p, const struct pkt *pkt)
{
	const char *why;

	resp_lock(&p->qp);
	why = connection_refusal(p, pkt);
	resp_unlock(&p->qp);
	return why;
}

static void dct_drop(struct qp *target, const struct pkt *pkt, const char *why)
{
	trace(packet, dropped, target->qpn, bth_op_name(pkt->opcode), pkt->psn, pkt->sqpn, why);
	if (explaining())
		dct_explain_drop(target, pkt, why);
}

/*
 * True if no earlier packet waits for its answer.  An initiator without a place only gets an answer
 * to its oldest packet, because an answer to a later one would say that all before it had been
 * executed.
 */
static bool is_oldest(const struct pkt *pkt)
{
	return psn_diff(pkt->psn, pkt->dc->psn) <= 0;
}

/* Answers an initiator that has no place. */
static void dct_refuse(struct qp *target, const struct pkt *pkt, uint8_t aeth)
{
	struct path back;
	struct pkt nak = {
		.opcode = BTH_DC | BTH_ACK,
		.aeth = aeth,
		.pkey = target->pkey,
		.sqpn = target->qpn,
		.dqpn = pkt->sqpn,
		.psn = pkt->psn,
		.npkts = 1,
		.path = &back,
	};

	path_reverse(pkt->path, &back);
	/* if the wire is busy, the request comes again */
	(void)wire_xmit(target->adapter->wire, &nak);
}

/* Refuses an initiator without the access key; it gets no place. */
static void refuse_key(struct qp *target, const struct pkt *pkt)
{
	uint8_t aeth = AETH_NAK | NAK_REMOTE_ACCESS;

	if (!is_oldest(pkt)) {
		dct_drop(target, pkt, "access-key");
		return;
	}
	trace(nak, sent, target->qpn, pkt->sqpn, aeth_nak_name(aeth), pkt->psn);
	if (explaining())
		dct_explain_key(target, pkt, target->dct->key);
	dct_refuse(target, pkt, aeth);
}

/* Answers like a responder without a receive, because all places are taken. */
static void refuse_place(struct qp *target, const struct pkt *pkt)
{
	uint8_t aeth = AETH_RNR_NAK | (target->attr.min_rnr_timer & AETH_VALUE_MASK);

	dct_drop(target, pkt, "too-many-initiators");
	if (!is_oldest(pkt))
		return;
	trace(rnr, sent, target->qpn, pkt->sqpn, pkt->psn, rnr_timer_us(aeth));
	dct_refuse(target, pkt, aeth);
}

/* Finds the place of a request's initiator, or makes one.  NULL: the request was dropped or
 * refused. */
static struct peer *place_for(struct qp *target, const struct pkt *pkt)
{
	struct peer *p = dct_find(target->dct, id_of(pkt));

	if (likely(p))
		return p;
	if (!dc_process_lives(target->adapter->slots, pkt->dc->process)) {
		dct_drop(target, pkt, "initiator-ended");
		return NULL;
	}
	p = find_or_add(target, pkt);
	if (!p)
		refuse_place(target, pkt);
	return p;
}

static void dct_receive_request(struct qp *target, const struct pkt *pkt)
{
	const char *why;
	struct peer *p;

	/* If somebody sweeps the place before we enter it, it belonged to the number's last
	 * owner. */
	do {
		p = place_for(target, pkt);
		if (!p)
			return;
		why = dct_enter(p, pkt);
	} while (unlikely(why == place_swept));
	if (likely(!why))
		responder_receive(&p->qp, pkt);
	else
		dct_drop(target, pkt, why);
}

void dct_receive(struct qp *target, const struct pkt *pkt)
{
	/* A DCI takes no requests. */
	if (unlikely(!target->dct || qp_state(target) != IB_QPS_RTR || !pkt->dc)) {
		dct_drop(target, pkt, target->dct ? "state" : "not-a-target");
		return;
	}
	/* responder_receive checks the same, but these checks come before a stranger gets a
	 * place. */
	if (unlikely(!pkey_match(pkt->pkey, target->pkey))) {
		dct_drop(target, pkt, "pkey");
		violation_count(target->adapter, pkt, PORT_PKEY_VIOLATIONS);
		return;
	}
	if (unlikely(pkt->dc->key != target->dct->key)) {
		refuse_key(target, pkt);
		return;
	}
	dct_receive_request(target, pkt);
}

static void dct_stop(struct peer *p)
{
	struct qp *qp = &p->qp;

	(void)responder_continue(qp);
	resp_lock(qp);
	if (qp->resp.have_recv)
		recv_push_error(qp, qp->resp.recv.index, CQE_SYN_WR_FLUSH);
	qp->resp.have_recv = false;
	atomic_store(&qp->state, (uint32_t)IB_QPS_RESET);
	peer_unexpose(p);
	resp_unlock(qp);
	qp_forget(qp);
}

void dct_destroy(struct qp *target)
{
	struct dct *d = target->dct;
	struct peer *next;

	for (struct peer *p = d->all; p; p = p->all)
		dct_stop(p);
	/* waits for accesses that the initiators had begun */
	if (d->all)
		expose_revoke(wire_expose(target->adapter->wire));
	for (struct peer *p = d->all; p; p = next) {
		next = p->all;
		hazard_wait(p, sizeof(*p));
		free(p);
	}
	free(d);
}
