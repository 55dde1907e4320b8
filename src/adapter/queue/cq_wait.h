/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of send queues that wait until a completion queue is filled up to an index; they name
 * the queue by its number.  The list of all queues has a lock, which keeps a queue while somebody
 * looks at it; a thread takes the queue's own lock under that lock.
 */
#pragma once

#include "adapter/core/device.h"

/* Lies in the object that waits. over: the queue has reached the index, or is being destroyed;
 * called once, with the queue's lock held. */
struct cq_waiter {
	void (*over)(struct cq_waiter *w);
	uint32_t index; /* 24 bits */
	/* Under the lock of the list and that of the queue. */
	struct cq *cq; /* NULL: it waits for no queue */
	struct cq_waiter *next;
	bool told;
};

enum cq_wait_verdict { CQ_WAIT_OVER, CQ_WAITS, CQ_WAIT_NO_QUEUE };

/* Says whether the queue has had that many completions.  If not, the waiter will hear of it.  A
 * waiter that waits already looks again. */
enum cq_wait_verdict cq_wait(struct adapter *a, uint32_t cqn, uint32_t index, struct cq_waiter *w);
/* From now on the waiter hears nothing. */
void cq_wait_end(struct adapter *a, struct cq_waiter *w);

/* ---- for cq.c ---- */

void cq_waits_begin(struct adapter *a, struct cq_entry *e);
/* Called when the queue is destroyed: tells all waiters. */
void cq_waits_end(struct adapter *a, struct cq_entry *e);
