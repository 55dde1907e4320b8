/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the responder share.  All of it runs under the responder's lock. */
#pragma once

#include "adapter/qp.h"

/* The next receive, from the queue that applies, into resp.recv. */
enum recv_verdict responder_take_recv(struct qp *qp) must_check;

/* The protection domain in which its scatter list is looked up. */
static inline uint32_t recv_pd(const struct qp *qp)
{
	return qp->resp.srq ? srq_pdn(qp->resp.srq) : qp->init.pdn;
}

/* A datagram needs no connection state: Q_Key, a receive, the GRH, the payload. */
void datagram_receive(struct qp *qp, const struct pkt *pkt);

/* Completes resp.recv, which pkt ended, with so many bytes. */
void recv_push(struct qp *qp, const struct pkt *pkt, uint32_t bytes);
/* Completes the receive of this index with an error. */
void recv_push_error(struct qp *qp, uint16_t index, uint8_t syndrome);
