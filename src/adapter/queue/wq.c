// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/queue/wq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/queue/cq.h"
#include "adapter/queue/recv_error.h"

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
