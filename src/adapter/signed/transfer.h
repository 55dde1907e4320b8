/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where messages lie in memory, for each role of a queue pair.  Normally that is a list of runs; it
 * is a transfer (signed.h) for keys with signatures, and for lists of more runs than one packet
 * describes.
 */
#pragma once

#include "adapter/qp/qp.h"
#include "adapter/signed/signed.h"

/* True for verdicts of a look-up by runs that ask for a transfer, which also says which QP asks. */
static inline bool mkey_staged(enum mkey_verdict v)
{
	return v == MKEY_SIGNED || v == MKEY_TOO_MANY_RUNS || v == MKEY_BOUND;
}

/* Requester: the message that a request gathers.  block: the request's block. */
struct transfer transfer_sent(struct qp *qp, const struct send_wqe *w, uint16_t block);
/* Completer: the answer to a read, which it scatters. */
struct transfer transfer_answered(struct qp *qp, const struct send_wqe *w, uint16_t block);
/* Responder: the memory that a peer names in a request that needs this right; srq NULL: no XRC.
 * Fills seg. */
struct transfer transfer_remote(struct qp *qp, const struct srq *srq, uint32_t pdn, uint32_t right,
				struct send_seg *seg);
/* The same for the answer to a read that was accepted.  Fills seg and what it names. */
struct transfer transfer_read(struct qp *qp, const struct rd_resource *rd, const struct srq *srq,
			      struct send_seg *seg);

/* Says whether the peer may access this range.  The caller holds resp.lock. */
enum mkey_verdict remote_check(struct qp *qp, uint32_t pdn, uint32_t right, uint32_t rkey,
			       uint64_t va, uint32_t len) must_check;
/* Writes a packet's payload to byte off of the write in progress, or of the receive.  MKEY_GONE:
 * see payload_gone. */
enum mkey_verdict write_place(struct qp *qp, uint64_t off, const struct pkt *pkt) must_check;
enum mkey_verdict recv_place(struct qp *qp, uint64_t off, const struct pkt *pkt) must_check;
