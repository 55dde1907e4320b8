/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A READ offers the peer the places for its answer, and the peer may write there until the request
 * is given up (responder_rd.c).  It offers them only once: an offer leaves the channel before
 * the request completes, but an offer in a packet that was sent again might stay.
 */
#pragma once

#include "adapter/qp/qp.h"
#include "wire/pkt.h"

/* The longest answer that a READ makes an offer for.  A longer one would keep the responder's
 * thread, and what arrives there, for too long, because placing an answer brings in all its pages
 * first. */
#define READ_PLACE_MAX_BYTES (4u << 20)

/* Notes where the answer to the current request, a READ or atomic, goes.  runs: all places for it;
 * NULL: nobody knows them. */
void read_note_places(struct qp *qp, const struct runs *runs);

/* Makes an offer in pkt if it can; op->offered says whether it has.  If the wire is busy, the
 * caller takes the offer back.  op: the current request, whose places are noted; runs: all of
 * them. */
void read_offer_places(const struct qp *qp, struct send_op *op, const struct runs *runs,
		       struct pkt *pkt);
