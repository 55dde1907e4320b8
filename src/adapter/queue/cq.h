/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues, as code that completes requests sees them. */
#pragma once

#include "adapter/core/device.h"
#include "prm/cqe.h"

/* Whom a completion wakes. */
enum cq_wake {
	CQ_WAKE_ARMED,	   /* programs that armed for any completion */
	CQ_WAKE_SOLICITED, /* also those that armed for solicited ones only; errors count as such */
	CQ_WAKE_ALWAYS,	   /* also those that did not arm: it gives an event of its own */
};

/*
 * Appends a CQE and fills in the owner bit of op_own and the time; the caller fills in the rest.
 * False: the queue has overrun, and nothing completes there any more.
 */
bool cq_push(struct cq *cq, struct cqe64 *cqe, enum cq_wake wake);
/* The same for n completions that differ only in their wqe_counter, which is 0 in 'like'; *appended of
 * them are in the queue. */
bool cq_push_like(struct cq *cq, struct cqe64 *like, const uint16_t *wqe_counter, uint32_t n,
		  bool solicited, uint32_t *appended);

/* Says where completion queues have their figures, for people (exposure/object.h); a process need
 * call it only once. */
void cq_form_expose(struct wire *wire);

/* Asks for the line of the next completion, to write to it, as the thread that polls may have it on
 * another processor.  Call it before other work for that completion; no lock is needed. */
void cq_own_ahead(const struct cq *cq);

/* Queue pairs hold their CQs by their numbers, for explanations; other users pass 0. */
void cq_hold(struct cq *cq, uint32_t qpn);
void cq_release(struct cq *cq, uint32_t qpn);

/*
 * Requests of send queues that wait until a completion queue is filled up to an index; they name
 * the queue by its number.  The list of all queues has a lock, which keeps a queue while somebody
 * looks at it; a thread takes the queue's own lock under that lock.
 */

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

/* Puts those queues for which fn says so into the state after an overrun, with its event. */
void cqs_overrun(struct adapter *a, bool (*fn)(void *user, uint32_t cqn), void *user);

/* ---- for cq.c ---- */
