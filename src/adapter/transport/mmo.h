/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory-to-memory operations: work requests by which a send queue has the device work on local
 * memory.  Of the engines behind this opcode the copy is here.
 */
#pragma once

#include "adapter/queue/send_wqe.h"
#include "base/compiler.h"

struct qp;

/* Executes one of the QP.  Requester, sq held, under RCU.  enum cqe_syndrome, 0: done. */
uint8_t mmo_execute(struct qp *qp, const struct send_wqe *w) must_check;
