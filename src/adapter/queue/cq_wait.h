/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who waits for a completion queue to be filled up to an index: requests of send queues, which name the
 * queue by its number.  The list of all queues has a lock, which keeps a queue while somebody looks at
 * it; under that lock the queue's own.
 */
#pragma once

#include "adapter/core/device.h"

/* Lies in whoever waits.  over: the index has been reached, or the queue goes; called once, with the
 * queue's lock held. */
struct cq_waiter {
	void (*over)(struct cq_waiter *w);
	uint32_t index; /* 24 bits */
	/* under the list's lock and the queue's */
	struct cq *cq; /* NULL: it waits for none */
	struct cq_waiter *next;
	bool told;
};

enum cq_wait_verdict { CQ_WAIT_OVER, CQ_WAITS, CQ_WAIT_NO_QUEUE };

/* Has the queue had so many completions?  If not, the waiter hears of it.  A waiter that waits already
 * looks again. */
enum cq_wait_verdict cq_wait(struct adapter *a, uint32_t cqn, uint32_t index, struct cq_waiter *w);
/* From now on it hears nothing. */
void cq_wait_end(struct adapter *a, struct cq_waiter *w);

/* ---- for cq.c ---- */

void cq_waits_begin(struct adapter *a, struct cq_entry *e);
/* The queue goes: all that wait are told. */
void cq_waits_end(struct adapter *a, struct cq_entry *e);
