/* SPDX-License-Identifier: BSD-2-Clause */
/* What requester and completer say about requests; all after explaining() (base/explain.h). */
#pragma once

#include "adapter/qp/qp.h"
#include "base/explain.h"
#include "wire/pkt.h"

/* A request fails; the reason of a local error may have been noted. */
void explain_failed(struct qp *qp, const struct send_op *op, uint8_t syndrome)
	__attribute__((cold));
/* It is sent again; why as completer_retry has it. */
void explain_retry(struct qp *qp, const struct send_op *op, const char *why) __attribute__((cold));
/* The peer has no receive; the last refusal is the failure's. */
void explain_not_ready(struct qp *qp, const struct send_op *op, uint32_t us, bool forever)
	__attribute__((cold));
/* An acknowledgement is not of anything that is outstanding. */
void explain_foreign_psn(struct qp *qp, const struct pkt *pkt) __attribute__((cold));
/* An answer is not the peer's, or of another partition. */
void explain_answer_dropped(struct qp *qp, uint32_t sqpn, const char *why) __attribute__((cold));
/* The wire does not carry a packet. */
void explain_lost(struct qp *qp, const struct send_op *op, const struct pkt *pkt)
	__attribute__((cold));
/* Requests may have been posted in a state in which the QP does not send. */
void explain_idle(struct qp *qp) __attribute__((cold));
/* The send queue is unusable. */
void explain_ring(struct qp *qp) __attribute__((cold));
