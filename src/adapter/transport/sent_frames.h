/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Retires frames that were sent, several together: taking a lock waits for the stores before it,
 * and those wait for cache lines that the receiver reads.  The caller holds qp->sq.
 */
#pragma once

#include "adapter/qp/qp.h"

/* Marks the current request, whose frames were sent, as ended. */
void sent_frames_add(struct qp *qp);
/* Retires the marked requests, if any.  It comes before the end of each run of the requester. */
void sent_frames_retire(struct qp *qp);
