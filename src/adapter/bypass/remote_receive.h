/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A SEND to a queue pair of another process that lays its receive queue, its completion queue and
 * its receive buffers open (wire/expose.h): the sender takes the receive, places the payload and
 * writes the completion, as the device would.  The receiver finds all of it by polling its CQ.
 *
 * Only the plain case: a receive is posted, long enough, and into memory that is exposed; the CQ
 * has room.  Everything else is for packets, so each error and the RNR NAK have their one place.
 */
#pragma once

#include "adapter/qp/send_wqe.h"
#include "wire/expose.h"

/* With the lock of the peer's block held.  False: nothing has happened. */
bool remote_receive(const struct qp *qp, const struct remote *f, struct qp_block *b,
		    const struct send_wqe *w) must_check;
