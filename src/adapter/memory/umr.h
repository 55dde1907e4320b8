/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * User-mode memory registration: work requests that change what a key means.  They take no packet
 * and are over when the requester has passed them, so what follows in the queue sees the new
 * meaning.
 */
#pragma once

#include "adapter/queue/send_wqe.h"
#include "base/compiler.h"

struct qp;

/* Executes a UMR of the QP.  Requester, sq held, under RCU.  enum cqe_syndrome, 0: done. */
uint8_t umr_execute(struct qp *qp, const struct send_wqe *w) must_check;
