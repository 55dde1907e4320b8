/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local operations: work requests that need no packet.  Each has ended when the requester has
 * passed it, so requests behind it see its effect.
 *
 * The requester calls these functions with its baton held, as a reader.  They return an enum
 * cqe_syndrome, 0 for success.
 */
#pragma once

#include "adapter/qp/send_wqe.h"
#include "base/compiler.h"

struct qp;

/* Executes any of them.  *waits: it has not ended, and something will kick the queue pair for
 * another look. */
uint8_t local_execute(struct qp *qp, const struct send_wqe *w, bool *waits) must_check;

/* User-mode memory registration: changes what a key means. */
uint8_t umr_execute(struct qp *qp, const struct send_wqe *w) must_check;
/* Executes a request that waits: for completions of a queue, a word of memory or the time. */
uint8_t wait_execute(struct qp *qp, const struct send_wqe *w, bool *waits) must_check;
/* Enables requests of another send queue. */
uint8_t send_en_execute(struct qp *qp, const struct send_wqe *w) must_check;
/* Enables receives of another queue pair. */
uint8_t receive_en_execute(struct qp *qp, const struct send_wqe *w) must_check;
/* Prepares a new queue pair for waits. */
void wait_init(struct qp *qp);
