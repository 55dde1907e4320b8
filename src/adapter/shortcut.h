/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The short way of the commonest request: an RDMA WRITE between two QPs of one process and port.
 *
 * Nothing lies between the two queues then, so the write is done at both ends in one go, without
 * making a packet.  It leaves exactly the state, counters and completion that the long way would.
 * Whatever is unusual (something outstanding, a key that refuses, a peer that is busy or not ready)
 * is left to the long way, which knows what to do about it; so there is no error handling here.
 */
#pragma once

#include "adapter/qp.h"
#include "adapter/send_wqe.h"

/* Requester, sq held, under RCU: true if the request is done and retired. */
bool shortcut_write(struct qp *qp, const struct send_wqe *w);
