// SPDX-License-Identifier: BSD-2-Clause
/* Receive work requests, from the ring of a queue pair, from a shared one, and from a receive work
 * queue. */
#include "adapter/queue/recvq.h"

#include "adapter/queue/cq.h"
#include "base/hazard.h"
#include "prm/vendor_err.h"
#include "usermem/usermem_touch.h"
#include "wire/counter_shard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct srq {
	struct adapter *adapter;
	struct srq_attr attr;
	uint32_t srqn;
	_Atomic(uint32_t) users;
	struct spin lock;
	uint16_t next;	   /* ring index of the oldest posted WQE, the head of the linked list */
	uint16_t consumed; /* receives taken; the doorbell record counts the posted ones */
	uint32_t limit;
	bool failed;		/* it gives no receives any more */
	bool exposed;		/* to XRC initiators of other processes */
	struct object_row *row; /* for people; may be NULL */
};

static const struct object_form srq_form = {{
	[FIGURE_NUMBER] = OBJECT_PLACE(struct srq, srqn),
	[FIGURE_TAKEN] = OBJECT_PLACE(struct srq, consumed),
	[FIGURE_ENTRIES] = OBJECT_PLACE(struct srq, attr.wqe_count),
	[FIGURE_RECORD] = OBJECT_PLACE(struct srq, attr.dbrec),
}};

void srq_form_expose(struct wire *wire)
{
	expose_object_form(wire_expose(wire), OBJECT_SRQ, &srq_form);
}

static struct object_row *srq_list(const struct srq *srq)
{
	struct wire *wire = srq->adapter->wire;
	const struct srq_attr *attr = &srq->attr;

	return expose_object(wire_expose(wire),
			     &(struct object_about){
				     .at = (uintptr_t)srq,
				     .kind = OBJECT_SRQ,
				     .number = srq->srqn,
				     .port = wire_port_row(wire),
				     .pdn = attr->pdn,
				     .send_cqn = OBJECT_NO_NUMBER,
				     .recv_cqn = attr->cq ? cq_number(attr->cq) : OBJECT_NO_NUMBER,
				     .srqn = OBJECT_NO_NUMBER,
			     });
}

/* Copies a scatter list of at most max entries; it ends at the list's end or at
 * WQE_DATA_LKEY_END. */
static bool fetch_scatter(const uint8_t *from, uint32_t bytes, struct recv_wqe *out)
{
	uint32_t max = min_u32(bytes / sizeof(struct wqe_data), RECV_MAX_SGE);

	/* Most lists have one entry: fetch that first, and go on only if the list does. */
	for (out->nsge = 0; out->nsge < max; out->nsge++) {
		struct wqe_data *d = &out->sge[out->nsge];

		if (!usermem_fetch(d, from + out->nsge * sizeof(*d), sizeof(*d)))
			return false;
		if (be32_get(d->lkey) == WQE_DATA_LKEY_END && !be32_get(d->byte_count))
			break;
	}
	return true;
}

/* How many of the 'ready' posted receives another queue has enabled. */
static uint16_t recv_ring_enabled(const struct recv_ring *ring, uint16_t ready)
{
	uint16_t enabled = (uint16_t)(atomic_load(ring->enabled) - ring->head);

	return enabled & 0x8000 ? 0 : enabled < ready ? enabled : ready;
}

enum recv_verdict recv_ring_take(struct recv_ring *ring, struct recv_wqe *out)
{
	uint32_t slot;
	uint16_t ready;

	if (!ring->wqes)
		return RECV_EMPTY;
	if ((uint16_t)ring->producer == (uint16_t)ring->head &&
	    !usermem_fetch_be32(ring->dbrec, &ring->producer))
		return RECV_FAULT;
	ready = (uint16_t)(ring->producer - ring->head);
	if (!ready)
		return RECV_EMPTY;
	if (ready > ring->wqes)
		return RECV_FAULT;
	if (unlikely(ring->enabled) && !recv_ring_enabled(ring, ready))
		return RECV_EMPTY;
	/* The counter does not wrap with the ring, for programs that keep one beside it. */
	out->index = (uint16_t)ring->head;
	slot = ring->head & (ring->wqes - 1);
	if (!fetch_scatter(ring->buf + (size_t)slot * ring->wqe_bytes, ring->wqe_bytes, out))
		return RECV_FAULT;
	ring->head++;
	return RECV_OK;
}

uint16_t recv_ring_left(struct recv_ring *ring, uint16_t enough)
{
	uint16_t left = (uint16_t)(ring->producer - ring->head);

	if (left >= enough || !usermem_fetch_be32(ring->dbrec, &ring->producer))
		return left;
	return (uint16_t)(ring->producer - ring->head);
}

uint64_t recv_capacity(const struct recv_wqe *wqe)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < wqe->nsge; i++)
		n += be32_get(wqe->sge[i].byte_count);
	return n;
}

enum mkey_verdict recv_runs(struct adapter *a, const struct recv_wqe *wqe, uint32_t pdn,
			    uint64_t off, uint64_t len, struct runs *runs)
{
	struct mkey_use u = {.pdn = pdn, .qpn = MKEY_ANY_QPN, .access = IB_ACCESS_LOCAL_WRITE};

	for (uint32_t i = 0; i < wqe->nsge && len; i++) {
		uint64_t have = be32_get(wqe->sge[i].byte_count);
		enum mkey_verdict v;
		uint64_t part;

		if (off >= have) {
			off -= have;
			continue;
		}
		part = min_u64(have - off, len);
		u.key = be32_get(wqe->sge[i].lkey);
		v = mkey_resolve(a, &u, be64_get(wqe->sge[i].addr) + off, part, runs);
		if (unlikely(v != MKEY_OK))
			return mkey_piece_refused(a, v, &u, be64_get(wqe->sge[i].addr) + off, part);
		len -= part;
		off = 0;
	}
	return len ? MKEY_OUT_OF_RANGE : MKEY_OK;
}

int srq_create(struct adapter *a, const struct srq_attr *attr, struct srq **out)
{
	struct srq *srq;
	int64_t srqn;

	if (!attr->wqe_count || attr->wqe_count & (attr->wqe_count - 1) ||
	    attr->wqe_count > ADAPTER_MAX_SRQ_WR + 1 || attr->wqe_bytes < 32 ||
	    attr->wqe_bytes & (attr->wqe_bytes - 1) || attr->limit > attr->wqe_count ||
	    !attr->xrcdn != !attr->cq)
		return -EINVAL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	srqn = number_take(&a->srqs, &a->attr, NUMBER_SRQN);
	if (srqn < 0) {
		free(srq);
		return (int)srqn;
	}
	srq->adapter = a;
	srq->attr = *attr;
	srq->srqn = (uint32_t)srqn;
	srq->limit = attr->limit;
	if (attr->cq)
		cq_hold(attr->cq, 0);
	srq->row = srq_list(srq);
	srq->exposed =
		attr->xrcdn && expose_srq(wire_expose(a->wire), srq->srqn, attr->xrcdn, attr->pdn);
	number_publish(&a->srqs, srq->srqn, srq);
	*out = srq;
	return 0;
}

uint32_t srq_number(const struct srq *srq)
{
	return srq->srqn;
}

uint32_t srq_pdn(const struct srq *srq)
{
	return srq->attr.pdn;
}

struct srq *srq_find_xrc(struct adapter *a, uint32_t srqn, uint32_t xrcdn)
{
	struct srq *srq = number_find(&a->srqs, srqn);

	return srq && srq->attr.cq && srq->attr.xrcdn == xrcdn ? srq : NULL;
}

struct cq *srq_cq(const struct srq *srq)
{
	return srq->attr.cq;
}

uint32_t srq_uidx(const struct srq *srq)
{
	return srq->attr.uidx;
}

void srq_hold(struct srq *srq)
{
	atomic_fetch_add(&srq->users, 1);
}

void srq_release(struct srq *srq)
{
	atomic_fetch_sub(&srq->users, 1);
}

/* Receives posted and not taken; -1 if the record cannot be read or makes no sense.  The caller
 * holds the lock. */
static int ready_count(const struct srq *srq)
{
	uint32_t producer;
	uint16_t ready;

	if (!usermem_fetch_be32((const be32 *)srq->attr.dbrec + DBREC_RECV, &producer))
		return -1;
	ready = (uint16_t)(producer - srq->consumed);
	return ready <= srq->attr.wqe_count ? ready : -1;
}

uint16_t srq_posted(const struct srq *srq)
{
	uint32_t producer;

	return usermem_fetch_be32((const be32 *)srq->attr.dbrec + DBREC_RECV, &producer)
		       ? (uint16_t)producer
		       : srq->consumed;
}

/* Raises the event of the limit, which also disarms the limit (IBTA 10.2.9.3).  The caller holds
 * the lock. */
static void reach_limit(struct srq *srq)
{
	srq->limit = 0;
	if (srq->attr.async)
		srq->attr.async(srq->attr.user, IB_EVENT_SRQ_LIMIT_REACHED);
}

static void check_limit(struct srq *srq, int ready)
{
	if (srq->limit && ready < (int)srq->limit)
		reach_limit(srq);
}

/* The queue ends, and its users find out when they want a receive (IBTA 10.2.9.4).  The caller holds
 * the lock. */
static __attribute__((cold)) void enter_error(struct srq *srq)
{
	if (srq->failed)
		return;
	srq->failed = true;
	if (srq->attr.async)
		srq->attr.async(srq->attr.user, IB_EVENT_SRQ_ERR);
}

void srq_begin(struct srq *srq)
{
	spin_lock(&srq->lock);
}

void srq_end(struct srq *srq)
{
	spin_unlock(&srq->lock);
}

enum recv_verdict srq_take_next(struct srq *srq, struct recv_wqe *out)
{
	struct wqe_srq_next link;
	int ready = ready_count(srq);
	const uint8_t *at;

	if (unlikely(srq->failed || ready < 0))
		goto failed;
	if (!ready)
		return RECV_EMPTY;
	out->index = srq->next;
	out->count = srq->consumed;
	at = (const uint8_t *)srq->attr.buf + (size_t)srq->next * srq->attr.wqe_bytes;
	if (!usermem_fetch(&link, at, sizeof(link)) ||
	    !fetch_scatter(at + sizeof(link), srq->attr.wqe_bytes - sizeof(link), out))
		goto failed;
	srq->next = (srq->attr.cyclic ? srq->next + 1u : be16_get(link.next_wqe_index)) &
		    (uint16_t)(srq->attr.wqe_count - 1);
	srq->consumed++;
	check_limit(srq, ready - 1);
	return RECV_OK;
failed:
	enter_error(srq);
	return RECV_FAULT;
}

enum recv_verdict srq_take(struct srq *srq, struct recv_wqe *out)
{
	enum recv_verdict v;

	srq_begin(srq);
	v = srq_take_next(srq, out);
	srq_end(srq);
	return v;
}

void srq_set_limit(struct srq *srq, uint32_t limit)
{
	int ready;

	spin_lock(&srq->lock);
	srq->limit = limit;
	ready = ready_count(srq);
	if (ready >= 0)
		check_limit(srq, ready);
	spin_unlock(&srq->lock);
}

void srq_reach_limit(struct srq *srq)
{
	spin_lock(&srq->lock);
	if (srq->limit)
		reach_limit(srq);
	spin_unlock(&srq->lock);
}

void srq_fail(struct srq *srq)
{
	spin_lock(&srq->lock);
	enter_error(srq);
	spin_unlock(&srq->lock);
}

bool srq_has_failed(const struct srq *srq)
{
	return srq->failed;
}

uint32_t srq_limit(const struct srq *srq)
{
	return srq->limit;
}

int srq_destroy(struct srq *srq)
{
	struct adapter *a = srq->adapter;

	if (atomic_load(&srq->users))
		return -EBUSY;
	number_publish(&a->srqs, srq->srqn, NULL);
	if (srq->exposed) {
		expose_srq_end(wire_expose(a->wire), srq->srqn);
		expose_revoke(wire_expose(a->wire));
	}
	/* Packets of XRC name the queue, so a responder may still use it; so may a fault on demand. */
	hazard_wait(srq, sizeof(*srq));
	if (srq->attr.cq)
		cq_release(srq->attr.cq, 0);
	number_give(&a->srqs, srq->srqn);
	expose_object_end(wire_expose(srq->adapter->wire), srq->row);
	free(srq);
	return 0;
}

bool recv_error_push(struct adapter *a, struct cq *cq, uint32_t uidx, uint32_t number,
		     uint16_t index, uint8_t syndrome)
{
	struct cqe64_err cqe = {
		.srqn = be32_of(uidx),
		.vendor_err_synd = vendor_err_of(CQE_OP_RESP_ERR, syndrome),
		.syndrome = syndrome,
		.s_wqe_opcode_qpn = be32_of(number),
		.wqe_counter = be16_of(index),
		.op_own = CQE_OP_RESP_ERR << 4 | CQE_SOLICITED,
	};
	bool flush = syndrome == CQE_SYN_WR_FLUSH;

	shard_count(a->counters, flush ? HW_RESP_CQE_FLUSH_ERROR : HW_RESP_CQE_ERROR, 1);
	return cq_push(cq, (struct cqe64 *)&cqe, CQ_WAKE_SOLICITED);
}

static void ring_reset(struct wq *wq)
{
	wq->ring = (struct recv_ring){
		.buf = wq->create.buf,
		.wqes = wq->create.wqes,
		.wqe_bytes = wq->create.wqe_bytes,
		.dbrec = (const be32 *)wq->create.dbrec + DBREC_RECV,
	};
}

static bool wq_ring_possible(const struct wq_attr *attr)
{
	return attr->wqes && !(attr->wqes & (attr->wqes - 1)) && attr->wqes <= ADAPTER_MAX_QP_WR &&
	       !(attr->wqe_bytes & (attr->wqe_bytes - 1)) &&
	       attr->wqe_bytes >= sizeof(struct wqe_data);
}

int wq_create(struct adapter *a, const struct wq_attr *attr, struct wq **out)
{
	struct wq *wq;
	int64_t wqn;

	if (!attr->cq || (!attr->srq && !wq_ring_possible(attr)))
		return -EINVAL;
	wq = calloc(1, sizeof(*wq));
	if (!wq)
		return -ENOMEM;
	/* Receive queues and queue pairs share one space of numbers. */
	wqn = number_take(&a->qps, &a->attr, NUMBER_QPN);
	if (wqn < 0) {
		free(wq);
		return (int)wqn;
	}
	wq->adapter = a;
	wq->create = *attr;
	wq->wqn = (uint32_t)wqn;
	wq->strip_vlan = attr->strip_vlan;
	if (attr->srq) {
		wq->create.pdn = srq_pdn(attr->srq);
		srq_hold(attr->srq);
	} else {
		ring_reset(wq);
	}
	cq_hold(attr->cq, 0);
	*out = wq;
	return 0;
}

uint32_t wq_number(const struct wq *wq)
{
	return wq->wqn;
}

enum ib_wq_state wq_state(const struct wq *wq)
{
	return (enum ib_wq_state)atomic_load_explicit(&wq->state, memory_order_acquire);
}

/* Flushes a queue in error.  The caller holds the lock. */
static void wq_flush(struct wq *wq)
{
	struct recv_wqe wqe;

	/* Orders the store of the state before the read of the doorbell record; partner:
	 * wq_recv_posted. */
	atomic_thread_fence(memory_order_seq_cst);
	/* The receives of a shared queue stay there. */
	while (!wq->create.silent && !wq->create.srq && recv_ring_take(&wq->ring, &wqe) == RECV_OK)
		recv_error_push(wq->adapter, wq->create.cq, wq->create.uidx, wq->wqn, wqe.index,
				CQE_SYN_WR_FLUSH);
}

void wq_fail(struct wq *wq)
{
	atomic_store(&wq->state, (uint32_t)IB_WQS_ERR);
	wq_flush(wq);
	if (wq->create.async)
		wq->create.async(wq->create.user, IB_EVENT_WQ_FATAL);
}

int wq_modify(struct wq *wq, enum ib_wq_state cur, enum ib_wq_state next)
{
	int ret = -EINVAL;

	spin_lock(&wq->lock);
	/* ERR leads to RDY only through RESET; every state leads to RESET and ERR. */
	if (wq_state(wq) != cur || (next == IB_WQS_RDY && cur == IB_WQS_ERR))
		goto unlock;
	if (next == IB_WQS_RESET && !wq->create.srq)
		ring_reset(wq);
	atomic_store(&wq->state, (uint32_t)next);
	if (next == IB_WQS_ERR)
		wq_flush(wq);
	ret = 0;
unlock:
	spin_unlock(&wq->lock);
	return ret;
}

void wq_recv_posted(struct wq *wq)
{
	/* Orders the store of the doorbell record before this read; partner: wq_flush. */
	atomic_thread_fence(memory_order_seq_cst);
	if (likely(wq_state(wq) != IB_WQS_ERR))
		return;
	spin_lock(&wq->lock);
	if (wq_state(wq) == IB_WQS_ERR)
		wq_flush(wq);
	spin_unlock(&wq->lock);
}

void wq_strip_vlan(struct wq *wq, bool strip)
{
	spin_lock(&wq->lock);
	wq->strip_vlan = strip;
	spin_unlock(&wq->lock);
}

void wq_destroy(struct wq *wq)
{
	/* The queue pair that led here was destroyed before, and no reader holds it. */
	cq_release(wq->create.cq, 0);
	if (wq->create.srq)
		srq_release(wq->create.srq);
	number_give(&wq->adapter->qps, wq->wqn);
	free(wq);
}
