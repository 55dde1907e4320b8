/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives of a queue pair: takes the next one and completes it.  Under the responder's lock. */
#pragma once

#include "adapter/qp/qp.h"

/* Takes the next receive, from the queue that applies, into resp.recv. */
enum recv_verdict recv_take(struct qp *qp) must_check;

/* The protection domain in which its scatter list is looked up. */
static inline uint32_t recv_pd(const struct qp *qp)
{
	return qp->resp.srq ? srq_pdn(qp->resp.srq) : qp->create.pdn;
}

/* What the CQE of a receive says. */
struct recv_done {
	uint8_t op; /* enum cqe_op */
	bool datagram;
	const struct path *path;    /* as the sender sees it */
	uint32_t service_or_header; /* service level; on Ethernet the kind of header */
	uint32_t peer_qpn;
	uint32_t qpn, uidx;
	uint32_t imm; /* or the key invalidated, or 0 */
	uint32_t bytes;
	uint16_t index; /* of the receive in its ring */
};

struct cqe64 recv_cqe(const struct recv_done *d);
uint32_t recv_service_or_header(const struct qp *qp, const struct path *path);

/* Completes resp.recv with so many bytes; pkt ended its message. */
void recv_push(struct qp *qp, const struct pkt *pkt, uint32_t bytes);
/* Completes the receive of this index with an error. */
void recv_push_error(struct qp *qp, uint16_t index, uint8_t syndrome);
