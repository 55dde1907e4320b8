/* SPDX-License-Identifier: BSD-2-Clause */
/* The completer: takes responses and retires requests in order. */
#pragma once

#include "adapter/qp/qp.h"

struct short_send;

/* Takes a response packet for us. */
void completer_receive(struct qp *qp, const struct pkt *pkt);
/* Takes a positive acknowledgement, which came alone or with a request. */
void completer_receive_ack(struct qp *qp, const struct short_send *b);
/* Marks request n as ended and retires what is ready. */
void completer_done(struct qp *qp, uint32_t n, uint8_t syndrome);
/*
 * Called before the program may use the memory of unacknowledged requests again: packets on their
 * way then arrive with the present data or not at all.  Under comp.lock.
 */
void completer_withdraw(struct qp *qp);
enum completer_settled {
	COMPLETER_NOTHING, /* as far as we know, nothing was given up */
	/* Peers may be reading what was given up; the requester will run again. */
	COMPLETER_WAITS,
	COMPLETER_SETTLED,
};

/* Looks whether peers may still be reading what was given up.  If not, completes what has waited
 * for that.  The caller holds the requester's baton and no lock. */
enum completer_settled completer_settle(struct qp *qp) must_check;
/* Gives all outstanding requests up, if there are any, and looks as completer_settle does.  True:
 * nobody reads them. */
bool completer_give_up(struct qp *qp) must_check;
/* Called for a QP in error: gives a flush error to every outstanding request; all of them have been
 * given up.  False: some stand behind the index in memory, and complete when it is raised. */
bool completer_flush(struct qp *qp) must_check;
/* How many microseconds an RNR NAK with this syndrome asks us to wait. */
uint32_t rnr_timer_us(uint8_t aeth);

/* ---- for the timer (ack_timer.c), with comp.lock held ---- */

/* The first request that still waits for the wire, or the tail. */
uint32_t completer_oldest(struct qp *qp);
/* Makes the requester send again what is not acknowledged. */
void completer_go_back(struct qp *qp, const char *why);
/*
 * Notes that a packet was lost: the timer, a sequence error or a missing answer shows it.  Sends
 * again while the one retry count lasts that all three share (IBTA 9.9.2.4.1); false: it is
 * exhausted.
 */
bool completer_retry(struct qp *qp, const char *why);

/*
 * Retires frames that were sent, several together: taking a lock waits for the stores before it,
 * and those wait for cache lines that the receiver reads.  The caller holds qp->sq.
 */

/* Marks the current request, whose frames were sent, as ended. */
void sent_frames_add(struct qp *qp);
/* Retires the marked requests, if any.  It comes before the end of each run of the requester. */
void sent_frames_retire(struct qp *qp);
