/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder: takes request packets and makes responses. */
#pragma once

#include "adapter/qp/recv.h"

/* A request packet for us. */
void responder_receive(struct qp *qp, const struct pkt *pkt);
/* Sends owed acknowledgements and the rest of read answers.  False if the wire is still busy. */
bool responder_continue(struct qp *qp);
/* Sends an owed acknowledgement before requests go.  Without waiting: whoever has the responder may well be about to
 * send it.  With qp->sq held, under RCU. */
void responder_acknowledge_first(struct qp *qp);
/* Completes all posted receives with flush errors.  Under the responder's lock. */
void responder_flush(struct qp *qp);

/* Takes a datagram, which needs no connection state: checks the Q_Key, takes a receive, delivers
 * GRH and payload.  Under the responder's lock. */
void datagram_receive(struct qp *qp, const struct pkt *pkt);
