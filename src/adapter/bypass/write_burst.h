/* SPDX-License-Identifier: BSD-2-Clause */
/* The shortest way for the plainest requests, see write_burst.c. */
#pragma once

#include "adapter/qp/qp.h"

/*
 * Executes such requests from the head of the ring on.  True: that was all of the ring.  False:
 * what stands there now, if anything, is for the requester.  sq held.
 */
bool write_burst_run(struct qp *qp);
