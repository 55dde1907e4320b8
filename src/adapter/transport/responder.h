/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder: takes request packets and makes responses. */
#pragma once

#include "adapter/qp/qp.h"
#include "adapter/qp/recv.h"
#include "wire/short_send.h"

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

/* How the responder takes short SENDs (wire/short_send.h). */

/*
 * Executes the requests of a record if the state machine (responder.c) would execute them without a
 * refusal, with the same effect.  Returns how many it has executed.  The state machine has to take the
 * next one: nothing has happened with it, except that it may have taken its receive, which the state
 * machine then uses.  The caller is a reader.
 */
uint32_t responder_receive_short_sends(struct qp *qp, const struct short_send *b) must_check;
