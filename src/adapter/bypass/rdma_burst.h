/* SPDX-License-Identifier: BSD-2-Clause */
/* Bursts of the plainest requests, see rdma_burst.c. */
#pragma once

#include "adapter/qp/qp.h"

/* Executes such requests, from the head of the ring on.  True: the ring is empty.  False: the
 * requester handles the request at the head, if there is one.  sq held. */
bool rdma_burst_run(struct qp *qp);
