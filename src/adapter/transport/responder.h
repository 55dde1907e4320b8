/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder: takes request packets, makes responses. */
#pragma once

#include "adapter/qp/recv.h"

/* A request packet for us. */
void responder_receive(struct qp *qp, const struct pkt *pkt);
/* Sends what is owed: acknowledgements, the rest of read answers.  False if the wire is still busy.
 */
bool responder_continue(struct qp *qp);
/* Completes all posted receives with flush errors.  Under its lock. */
void responder_flush(struct qp *qp);

/* A datagram needs no connection state: Q_Key, a receive, the GRH, the payload.  Under its lock. */
void datagram_receive(struct qp *qp, const struct pkt *pkt);
