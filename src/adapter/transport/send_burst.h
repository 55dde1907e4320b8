/* SPDX-License-Identifier: BSD-2-Clause */
/* See send_burst.c. */
#pragma once

#include "adapter/qp/qp.h"

/* Sends what it can from the head of the ring.  True: nothing is left to do for the requester.  sq
 * held, under RCU. */
bool send_burst_run(struct qp *qp) must_check;
