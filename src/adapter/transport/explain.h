/* SPDX-License-Identifier: BSD-2-Clause */
/* What the roles of a queue pair say about requests, packets and modifications that fail.  Call these
 * after explaining() (base/explain.h).  responder_state.h has what the responder says. */
#pragma once

#include "adapter/qp/qp.h"
#include "base/explain.h"
#include "wire/pkt.h"

/* ---- requester and completer ---- */

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

/* ---- why a queue pair is not modified ---- */

/* The transition does not exist, or does not take these attributes. */
void explain_transition(const struct qp *qp, enum ib_qp_state cur, enum ib_qp_state next,
			uint32_t mask) __attribute__((cold));
/* The queue pair is not in the state that the program says. */
void explain_cur_state(const struct qp *qp, enum ib_qp_state cur, enum ib_qp_state said)
	__attribute__((cold));

/* ---- a DC target, about requests that it refuses or drops ---- */

/* why: the text that dct.c traces. */
void dct_explain_drop(struct qp *target, const struct pkt *pkt, const char *why)
	__attribute__((cold));
/* Explains a wrong access key, of which the initiator hears. */
void dct_explain_key(struct qp *target, const struct pkt *pkt, uint64_t key) __attribute__((cold));
