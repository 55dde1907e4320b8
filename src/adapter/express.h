/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shortest way, for the plainest requests: RDMA WRITEs of one packet with one piece of data, in
 * one block of the ring, to a peer within reach.  A shortcut (shortcut.h) that decodes nothing else
 * and, where there are several of them, asks what holds for all only once.  Programs that are after
 * a message rate post these.
 */
#pragma once

#include "adapter/qp.h"

/*
 * Executes such requests from the head of the ring on.  True: that was all of the ring.  False:
 * what stands there now, if anything, is for requester_run.  sq held, under RCU.
 */
bool express_run(struct qp *qp) must_check;
