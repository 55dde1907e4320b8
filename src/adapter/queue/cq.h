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
