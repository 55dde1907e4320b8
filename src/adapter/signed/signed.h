/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfers through memory keys with block signatures: the bytes in memory differ from those of the
 * message (sig/sig.h).  Requester, responder and completer come here when a key answers
 * MKEY_SIGNED, or when a list needs more runs than one packet describes.  Pieces under ordinary
 * keys of the same list move here as well.
 *
 * Addresses and lengths of work requests and of the wire count bytes of the message; the signatures
 * say what they mean in memory.  Each entry of a list stands alone, and the message is their
 * concatenation.
 *
 * A signature error is no failure: a CQ gets a report before the request completes, and a queue
 * pair that asked for it drains (mlx5dv_qp_cancel_posted_send_wrs(3)).
 */
#pragma once

#include "adapter/memory/mkey_indirect.h"
#include "adapter/qp/send_wqe.h"
#include "adapter/sig/sig.h"
#include "wire/pkt.h"

/* A transfer: who moves data, and by which right. */
struct transfer {
	struct adapter *adapter;
	struct qp *qp;
	struct sig_resume *flow;
	struct cq *cq; /* gets signature errors; NULL: nobody gets them */
	enum sig_direction direction;
	uint32_t pdn;
	uint32_t access;
	bool remote;	  /* a peer named the key */
	bool drain;	  /* an error concerns the send queue, which may have to drain */
	uint16_t block;	  /* the request's block, for the CQE */
	uint64_t message; /* see mkey_signed_take */
	/* The list in memory. */
	const struct send_seg *seg;
	uint32_t nsegs;
};

/* Says whether the transfer could move bytes [off, off + len) of the message. */
enum mkey_verdict transfer_check(const struct transfer *t, uint64_t off, uint64_t len) must_check;
/* Moves them between memory and these runs, which have as many bytes.  MKEY_GONE: some memory no
 * longer exists, on either side. */
enum mkey_verdict transfer_move(const struct transfer *t, uint64_t off, uint64_t len,
				const struct run *wire, uint32_t nwire) must_check;
/* Writes the payload of a packet into memory, from off on.  MKEY_GONE: see payload_gone. */
enum mkey_verdict transfer_place(const struct transfer *t, uint64_t off,
				 const struct pkt *pkt) must_check;

/* A payload made on demand: the bytes of the message from off on. */
struct transfer_source {
	struct pkt_source source;
	struct transfer t;
	uint64_t off;
	uint64_t made; /* how many bytes of the packet are made so far */
};

void transfer_source_begin(struct transfer_source *s, uint64_t off);
/*
 * Called after the packet was sent.  If nobody has taken the payload, because the packet was
 * dropped on the way, this still checks its signatures, because a request behind it may be fenced,
 * and runs its transaction signature, because other keys go on from there.
 */
void transfer_source_end(struct transfer_source *s, uint64_t len);

/* Signature errors as completions. */

struct cq;
struct qp;
