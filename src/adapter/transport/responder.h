/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder: takes request packets and makes responses. */
#pragma once

#include "adapter/qp/recv.h"

/* Takes a request packet for us. */
void responder_receive(struct qp *qp, const struct pkt *pkt);
/* Sends owed acknowledgements and the rest of read answers.  False if the wire is still busy. */
bool responder_continue(struct qp *qp);
/* Sends an owed acknowledgement before requests go.  It does not wait for the responder's lock,
 * because its holder may be about to send it.  The caller holds qp->sq and is a reader. */
void responder_acknowledge_first(struct qp *qp);
/* Completes all posted receives with flush errors.  The caller holds the responder's lock. */
void responder_flush(struct qp *qp);

/* Takes a datagram, which needs no connection state: checks the Q_Key, takes a receive, delivers
 * GRH and payload.  The caller holds the responder's lock. */
void datagram_receive(struct qp *qp, const struct pkt *pkt);
