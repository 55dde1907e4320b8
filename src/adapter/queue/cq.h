/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues, from the side of those who complete. */
#pragma once

#include "adapter/core/device.h"
#include "prm/cqe.h"

/*
 * Appends a CQE and fills in the owner bit of op_own and the time; the caller fills in the rest.
 * Solicited: also wakes programs that armed for solicited completions only; errors count as
 * solicited.  False: the queue has overrun, nothing completes there any more.
 */
bool cq_push(struct cq *cq, struct cqe64 *cqe, bool solicited);
/*
 * The same for several in a row: cq_begin, then cq_append_like, which appends n that differ in their
 * wqe_counter alone, which is 0 in the one that is given, any number of times, and cq_end with how many
 * those calls returned in all.
 */
void cq_begin(struct cq *cq);
uint32_t cq_append_like(struct cq *cq, struct cqe64 *like, const uint16_t *wqe_counter, uint32_t n,
			bool solicited) must_check;
bool cq_end(struct cq *cq, uint32_t appended);

/* Says where completion queues have their figures, for people (exposure/object.h); once in a process
 * is enough. */
void cq_form_expose(struct wire *wire);

/* Prefetches: a completion is about to come. */
void cq_fetch_ahead(const struct cq *cq);

/* Queue pairs hold their CQs, by their numbers, for explanations; others by 0. */
void cq_hold(struct cq *cq, uint32_t qpn);
void cq_release(struct cq *cq, uint32_t qpn);
