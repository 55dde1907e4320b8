/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues, from the side of those who complete. */
#pragma once

#include "adapter/device.h"
#include "prm/cqe.h"

/*
 * Appends a CQE.  op_own's owner bit is filled in here; all else is the caller's.
 * Solicited: also wakes those who armed for solicited completions only; errors count as solicited.
 */
void cq_push(struct cq *cq, const struct cqe64 *cqe, bool solicited);

/* Queue pairs hold their CQs. */
void cq_hold(struct cq *cq);
void cq_release(struct cq *cq);
