/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A READ offers the places of its answer to the peer, which may write there until the request is given
 * up (responder_place.c).  Only once: an offer is gone from the channel when the request is complete,
 * but one in a packet that was sent again might not be.
 */
#pragma once

#include "adapter/qp/qp.h"
#include "wire/pkt.h"

/* Making a longer answer would keep the responder's thread, and what arrives, for too long.  So it is
 * not asked for: an offer brings in all pages first. */
#define READ_PLACE_MAX_BYTES (4u << 20)

/* Notes where the answer to the current request, a READ or atomic, goes.  runs: all of the places;
 * NULL: nobody knows. */
void read_note_places(struct qp *qp, const struct runs *runs);

/* op->offered says whether pkt has an offer now; if the wire is busy, the caller takes it back.  op: the
 * current request, whose places are noted; runs: all of them. */
void read_offer_places(const struct qp *qp, struct send_op *op, const struct runs *runs,
		       struct pkt *pkt);
