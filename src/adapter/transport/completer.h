/* SPDX-License-Identifier: BSD-2-Clause */
/* The completer: takes responses and retires requests in order. */
#pragma once

#include "adapter/qp/qp.h"

struct brief;

/* A response packet for us. */
void completer_receive(struct qp *qp, const struct pkt *pkt);
/* A positive acknowledgement, alone or with a request. */
void completer_receive_brief(struct qp *qp, const struct brief *b);
/* Marks request n as ended and retires what is ready. */
void completer_done(struct qp *qp, uint32_t n, uint8_t syndrome);
/* Retires what is ready, if the ends of requests were noted elsewhere (sent_frames.h). */
void completer_retire_done(struct qp *qp);
/*
 * Called before the program may use the memory of unacknowledged requests again: packets on their
 * way arrive with the present data or not at all.  Under comp.lock.
 */
void completer_withdraw(struct qp *qp);
enum completer_settled {
	COMPLETER_NOTHING, /* was given up, as far as we know */
	COMPLETER_WAITS,   /* peers may be reading it; the requester will run again */
	COMPLETER_SETTLED,
};

/* Looks whether peers may still be reading what was given up, and lets complete what has waited for
 * that.  With the requester's baton and without locks. */
enum completer_settled completer_settle(struct qp *qp) must_check;
/* Gives all outstanding requests up, if there are any, and looks as above: true if nobody reads
 * them. */
bool completer_give_up(struct qp *qp) must_check;
/* The QP is in error: every outstanding request, given up by now, gets a flush error. */
void completer_flush(struct qp *qp);
/* How long an RNR NAK of this syndrome asks to wait, in microseconds. */
uint32_t rnr_timer_us(uint8_t aeth);

/* ---- for the timer (ack_timer.c), under comp.lock ---- */

/* The first request that still waits for the wire, or tail. */
uint32_t completer_oldest(struct qp *qp);
/* The requester sends again what is not acknowledged. */
void completer_go_back(struct qp *qp, const char *why);
/*
 * A packet was lost: the timer, a sequence error or a missing answer shows it.  Sends again as long
 * as the one retry count lasts that all three share (IBTA 9.9.2.4.1); false: it is exhausted.
 */
bool completer_retry(struct qp *qp, const char *why);
