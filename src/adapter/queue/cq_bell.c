// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of the completion queues that hear bells by value.  Numbers and regions come from the
 * program, so a look-up compares both.  Numbers follow each other, so they spread over the rows.
 */
#include "adapter/queue/cq_bell.h"

#include "base/hazard.h"

static _Atomic(struct cq_bell *) *cq_bell_row(struct adapter *a, uint32_t cqn)
{
	return &a->cq_bells.row[cqn % CQ_BELL_ROWS];
}

void cq_bell_publish(struct adapter *a, struct cq_bell *bell)
{
	_Atomic(struct cq_bell *) *row = cq_bell_row(a, bell->cqn);

	spin_lock(&a->cq_bells.lock);
	atomic_store_explicit(&bell->next, atomic_load(row), memory_order_relaxed);
	atomic_store_explicit(row, bell, memory_order_release);
	spin_unlock(&a->cq_bells.lock);
}

void cq_bell_withdraw(struct adapter *a, struct cq_bell *bell)
{
	_Atomic(struct cq_bell *) *at = cq_bell_row(a, bell->cqn);

	spin_lock(&a->cq_bells.lock);
	while (atomic_load_explicit(at, memory_order_relaxed) != bell)
		at = &atomic_load_explicit(at, memory_order_relaxed)->next;
	/* The bell keeps its own next, for readers that stand at it. */
	atomic_store_explicit(at, atomic_load_explicit(&bell->next, memory_order_relaxed),
			      memory_order_release);
	spin_unlock(&a->cq_bells.lock);
	hazard_wait(cq_bell_row(a, bell->cqn), 1);
}

/* The caller is a reader.  It holds the row, hence all queues that are in the row now. */
static struct cq *cq_bell_find(struct adapter *a, uint32_t region, uint32_t cqn)
{
	_Atomic(struct cq_bell *) *row = cq_bell_row(a, cqn);
	struct cq_bell *bell;

	hazard_hold(row);
	bell = atomic_load_explicit(row, memory_order_acquire);
	while (bell && (bell->cqn != cqn || bell->region != region))
		bell = atomic_load_explicit(&bell->next, memory_order_acquire);
	return bell ? bell->cq : NULL;
}

bool cq_bell_arm(struct adapter *a, uint32_t region, uint32_t cqn, uint32_t ci)
{
	struct cq *cq;

	hazard_enter();
	cq = cq_bell_find(a, region, cqn);
	if (cq)
		cq_arm_by_value(cq, ci);
	hazard_leave();
	return cq;
}

bool cq_bell_empty(struct adapter *a, uint32_t region, uint32_t cqn)
{
	struct cq *cq;

	hazard_enter();
	cq = cq_bell_find(a, region, cqn);
	if (cq)
		cq_push_empty(cq);
	hazard_leave();
	return cq;
}
