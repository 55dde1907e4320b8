// SPDX-License-Identifier: BSD-2-Clause
/* See cq_wait.h. */
#include "adapter/queue/cq_internal.h"

static struct cq_entry **cq_entry_row(struct adapter *a, uint32_t cqn)
{
	return &a->cqs.row[cqn % CQ_ROWS];
}

void cq_waits_begin(struct adapter *a, struct cq_entry *e)
{
	struct cq_entry **row = cq_entry_row(a, e->cqn);

	spin_lock(&a->cqs.lock);
	e->next = *row;
	*row = e;
	spin_unlock(&a->cqs.lock);
}

void cq_waits_end(struct adapter *a, struct cq_entry *e)
{
	struct cq_entry **at = cq_entry_row(a, e->cqn);
	struct cq_waiter *w, *next;

	spin_lock(&a->cqs.lock);
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	spin_lock(&e->cq->lock);
	for (w = e->cq->waiters; w; w = next) {
		next = w->next;
		w->cq = NULL;
		w->over(w);
	}
	e->cq->waiters = NULL;
	spin_unlock(&e->cq->lock);
	spin_unlock(&a->cqs.lock);
}

/* The caller holds the list's lock. */
static struct cq *cq_find(struct adapter *a, uint32_t cqn)
{
	struct cq_entry *e = *cq_entry_row(a, cqn);

	while (e && e->cqn != cqn)
		e = e->next;
	return e ? e->cq : NULL;
}

/* The caller holds both locks. */
static void cq_waiter_unlink(struct cq_waiter *w)
{
	struct cq_waiter **at = &w->cq->waiters;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	w->cq = NULL;
}

/* The caller holds the list's lock. */
static void cq_waiter_leave(struct cq_waiter *w)
{
	struct cq *cq = w->cq;

	if (!cq)
		return;
	spin_lock(&cq->lock);
	cq_waiter_unlink(w);
	spin_unlock(&cq->lock);
}

enum cq_wait_verdict cq_wait(struct adapter *a, uint32_t cqn, uint32_t index, struct cq_waiter *w)
{
	enum cq_wait_verdict v = CQ_WAIT_NO_QUEUE;
	struct cq *cq;

	spin_lock(&a->cqs.lock);
	cq_waiter_leave(w);
	cq = cq_find(a, cqn);
	if (cq) {
		spin_lock(&cq->lock);
		v = cq_has_reached(cq, index) ? CQ_WAIT_OVER : CQ_WAITS;
		if (v == CQ_WAITS) {
			w->cq = cq;
			w->index = index;
			w->told = false;
			w->next = cq->waiters;
			cq->waiters = w;
		}
		spin_unlock(&cq->lock);
	}
	spin_unlock(&a->cqs.lock);
	return v;
}

void cq_wait_end(struct adapter *a, struct cq_waiter *w)
{
	spin_lock(&a->cqs.lock);
	cq_waiter_leave(w);
	spin_unlock(&a->cqs.lock);
}
