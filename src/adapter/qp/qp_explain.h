/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sentences about queue pairs (base/explain.h).  Each begins with the queue pair and what it is
 * about:
 *
 *   host2/mlx5_0 QP 0x800 RDMA_WRITE psn 0x1234 to host1/mlx5_0 QP 0x400: ...
 *
 * Callers test explaining() first.
 */
#pragma once

#include "adapter/qp/qp.h"
#include "base/explain.h"
#include "wire/pkt.h"

/* Explains a request in the QP's send queue. */
void qp_explain_sent(struct qp *qp, const struct send_op *op, const char *fmt, ...)
	printf_like(3, 4) __attribute__((cold));
/* Explains a packet that the QP has received. */
void qp_explain_received(struct qp *qp, const struct pkt *pkt, const char *fmt, ...)
	printf_like(3, 4) __attribute__((cold));
/* Explains something about the queue pair itself. */
void qp_explain(struct qp *qp, const char *fmt, ...) printf_like(2, 3) __attribute__((cold));
/* Explains a packet for a number that no queue pair of this adapter takes. */
void qp_explain_stray(struct adapter *a, const struct pkt *pkt, const char *why)
	__attribute__((cold));

/* Explains a frame that does not go to a queue; number: the queue's, or IB_MULTICAST_QPN. */
void qp_explain_frame(const struct adapter *a, uint32_t number, const struct pkt *pkt,
		      const char *why) __attribute__((cold));

/* What has moved the queue pair to the error state. */
static inline const char *qp_failed_by(const struct qp *qp)
{
	const char *why = atomic_load_explicit(&qp->failed_by, memory_order_relaxed);

	return why ? why : "a request has failed";
}

/* The name of a completion status, such as "IBV_WC_REM_ACCESS_ERR". */
const char *qp_wc_name(uint8_t syndrome);
/*
 * Words to put behind a sentence about PSNs that do not fit, if the QP is connected to itself;
 * otherwise "".
 */
const char *qp_self_hint(const struct qp *qp);
/* Why nothing that goes this way arrives at a QP with that number; NULL: it arrives. */
const char *qp_way_missing(const struct adapter *a, const struct path *path, uint32_t dqpn);
