/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local operations: work requests that need no packet.  Each has ended when the requester has
 * passed it, so requests behind it see its effect.
 *
 * The requester calls these functions with its baton held, under RCU.  They return an enum
 * cqe_syndrome, 0 for success.
 */
#pragma once

#include "adapter/qp/send_wqe.h"
#include "base/compiler.h"

struct qp;

/* Any of them.  *waits: it is not over; the queue pair is kicked for another look. */
uint8_t local_execute(struct qp *qp, const struct send_wqe *w, bool *waits) must_check;

/* User-mode memory registration: changes what a key means. */
uint8_t umr_execute(struct qp *qp, const struct send_wqe *w) must_check;
/* Writes a protected signature value. */
uint8_t set_psv_execute(struct qp *qp, const struct send_wqe *w) must_check;
/* Memory-to-memory operations: of the engines behind these opcodes, this device has the copy, and
 * for LOCAL_MMO what transposes. */
uint8_t mmo_execute(struct qp *qp, const struct send_wqe *w) must_check;
/* A request that waits: for completions of a queue, a word of memory or the time. */
uint8_t wait_execute(struct qp *qp, const struct send_wqe *w, bool *waits) must_check;
/* Enables requests of another send queue. */
uint8_t send_en_execute(struct qp *qp, const struct send_wqe *w) must_check;
/* Enables receives of another queue pair. */
uint8_t receive_en_execute(struct qp *qp, const struct send_wqe *w) must_check;
/* Of a new queue pair. */
void wait_init(struct qp *qp);
uint8_t transpose_execute(struct qp *qp, const struct send_wqe *w) must_check;
