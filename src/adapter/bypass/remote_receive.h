/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A SEND to a queue pair of another process that exposes its receive queue, its completion queue
 * and its receive buffers (wire/expose.h).  The sender takes the receive, places the payload and
 * writes the completion, as the device would.  The receiver finds all of it when it polls its CQ.
 *
 * Only the plain case: a receive is posted, is long enough and lies in exposed memory; the CQ has
 * room.  Packets handle everything else, so each error and the RNR NAK have one place.
 */
#pragma once

#include "adapter/qp/send_wqe.h"
#include "wire/expose.h"

/* Called with the lock of the peer's block held.  False: nothing has happened. */
bool remote_receive(const struct qp *qp, const struct remote *f, struct qp_block *b,
		    const struct send_wqe *w) must_check;
