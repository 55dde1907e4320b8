/* SPDX-License-Identifier: BSD-2-Clause */
/* What requester and completer say about requests; call these after explaining()
 * (base/explain.h). */
#pragma once

#include "adapter/qp/qp.h"
#include "base/explain.h"
#include "wire/pkt.h"

/* Explains why a request fails; somebody may have noted the reason of a local error before. */
void explain_failed(struct qp *qp, const struct send_op *op, uint8_t syndrome)
	__attribute__((cold));
/* Explains that a request is sent again; 'why' as for completer_retry. */
void explain_retry(struct qp *qp, const struct send_op *op, const char *why) __attribute__((cold));
/* Explains that the peer has no receive; the last refusal becomes the failure's reason. */
void explain_not_ready(struct qp *qp, const struct send_op *op, uint32_t us, bool forever)
	__attribute__((cold));
/* Explains an acknowledgement of something that is not outstanding. */
void explain_foreign_psn(struct qp *qp, const struct pkt *pkt) __attribute__((cold));
/* Explains an answer that is not from the peer, or is of another partition. */
void explain_answer_dropped(struct qp *qp, uint32_t sqpn, const char *why) __attribute__((cold));
/* Explains that the wire does not carry a packet. */
void explain_lost(struct qp *qp, const struct send_op *op, const struct pkt *pkt)
	__attribute__((cold));
/* Explains that a program may have posted requests in a state in which the QP does not send. */
void explain_idle(struct qp *qp) __attribute__((cold));
/* Explains that the send queue is unusable. */
void explain_ring(struct qp *qp) __attribute__((cold));
