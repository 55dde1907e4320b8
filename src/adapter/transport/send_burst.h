/* SPDX-License-Identifier: BSD-2-Clause */
/* See send_burst.c. */
#pragma once

#include "adapter/qp/qp.h"

/* Sends what it can from the head of the ring.  True: the requester has nothing left to do.  The
 * caller holds sq and is a reader. */
bool send_burst_run(struct qp *qp) must_check;
