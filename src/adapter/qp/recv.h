/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives of a queue pair: takes the next one and completes it.  Under the responder's lock. */
#pragma once

#include "adapter/qp/qp.h"

/* Takes the next receive, from the queue that applies, into resp.recv. */
enum recv_verdict recv_take(struct qp *qp) must_check;
/* The same for several in a row, from recv_begin to recv_end. */
void recv_begin(struct qp *qp);
enum recv_verdict recv_take_next(struct qp *qp) must_check;
void recv_end(struct qp *qp);

/* The protection domain in which its scatter list is looked up. */
static inline uint32_t recv_pd(const struct qp *qp)
{
	return qp->resp.srq ? srq_pdn(qp->resp.srq) : qp->create.pdn;
}

/* Completes resp.recv with so many bytes; pkt ended its message. */
void recv_push(struct qp *qp, const struct pkt *pkt, uint32_t bytes);
/* The same of the first n requests of these records, BRIEF_TRAIN at most, that make up a message each:
 * completes the receives of these indices.  Returns up to which of them the sender may be told: nothing comes
 * behind one whose completion is lost. */
uint32_t recv_push_briefs(struct qp *qp, const struct brief *b, const uint16_t *index,
			  uint32_t n) must_check;
/* Completes the receive of this index with an error. */
void recv_push_error(struct qp *qp, uint16_t index, uint8_t syndrome);
