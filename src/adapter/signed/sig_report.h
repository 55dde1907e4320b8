/* SPDX-License-Identifier: BSD-2-Clause */
/* Signature errors as completions. */
#pragma once

#include "adapter/sig/sig.h"

struct cq;
struct qp;

/* Explains e, which a transfer of qp has found under key; call it after explaining(). */
void sig_report_explain(struct qp *qp, uint32_t key, const struct sig_error *e)
	__attribute__((cold));
/* Reports to cq that a request of qp, whose WQE is at that block, has found e under key. */
void sig_report_push(struct qp *qp, struct cq *cq, uint32_t key, const struct sig_error *e,
		     uint16_t block);
