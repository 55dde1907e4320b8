/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives of a queue pair: takes the next one and completes it.  The caller holds the responder's
 * lock. */
#pragma once

#include "adapter/qp/qp.h"

/* Takes the next receive into resp.recv, from the queue that the QP uses. */
enum recv_verdict recv_take(struct qp *qp) must_check;
/* The same for several receives in a row, from recv_begin to recv_end. */
void recv_begin(struct qp *qp);
enum recv_verdict recv_take_next(struct qp *qp) must_check;
void recv_end(struct qp *qp);

/* The protection domain in which the scatter list of resp.recv is looked up. */
static inline uint32_t recv_pd(const struct qp *qp)
{
	return qp->resp.srq ? srq_pdn(qp->resp.srq) : qp->create.pdn;
}

/* Completes resp.recv with this many bytes; pkt ended its message. */
void recv_push(struct qp *qp, const struct pkt *pkt, uint32_t bytes);
/* The same for the first n requests of the record, each of which is a message: completes the receives
 * with these indices.  Returns of how many requests the sender may hear: if a completion is lost, no
 * request behind it counts. */
uint32_t recv_push_short_sends(struct qp *qp, const struct short_send *b, const uint16_t *index,
			       uint32_t n) must_check;
/* Completes the receive with this index with an error. */
void recv_push_error(struct qp *qp, uint16_t index, uint8_t syndrome);
