/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfers through memory keys with block signatures: what lies in memory is not what the message
 * carries (sig/sig.h).  This is the long way round for requester, responder and completer, taken
 * when a key answers MKEY_SIGNED; it moves pieces under ordinary keys of the same list as well.
 *
 * Addresses and lengths of work requests and of the wire count bytes of the message; what they mean
 * in memory follows from the signatures.  Each entry of a list stands alone, and the message is
 * their concatenation.
 *
 * A signature error is no failure: it is reported to a CQ before the request completes, and a queue
 * pair that asked for it drains (mlx5dv_qp_cancel_posted_send_wrs(3)).
 */
#pragma once

#include "adapter/memory/sig_resume.h"
#include "adapter/qp/send_wqe.h"
#include "wire/pkt.h"

/* Who moves data, and by what right. */
struct transfer {
	struct adapter *adapter;
	struct qp *qp;
	struct sig_resume *flow;
	struct cq *cq; /* hears of signature errors; NULL: nobody does */
	enum sig_direction direction;
	uint32_t pdn;
	uint32_t access;
	bool remote;	/* the peer named the key */
	bool drain;	/* an error is one of the send queue: it may have to drain */
	uint16_t block; /* of the request, for the CQE */
	/* The list in memory. */
	const struct send_seg *seg;
	uint32_t nsegs;
};

/* Could it move bytes [off, off + len) of the message? */
enum mkey_verdict transfer_check(const struct transfer *t, uint64_t off, uint64_t len) must_check;
/* Moves them between memory and these runs, which have as many bytes.  MKEY_GONE: some memory has,
 * here or there. */
enum mkey_verdict transfer_move(const struct transfer *t, uint64_t off, uint64_t len,
				const struct run *wire, uint32_t nwire) must_check;
/* Puts the payload of a packet into memory, from off on.  MKEY_GONE: see payload_gone. */
enum mkey_verdict transfer_place(const struct transfer *t, uint64_t off,
				 const struct pkt *pkt) must_check;

/* The payload of a packet: bytes of the message from off on, made when they are wanted. */
struct transfer_source {
	struct pkt_source source;
	struct transfer t;
	uint64_t off;
	uint64_t made; /* so many bytes of the packet's, from its beginning */
};

void transfer_source_begin(struct transfer_source *s, uint64_t off);
/*
 * After the packet was sent: if nobody took the payload, because it was dropped on the way, its
 * signatures are checked all the same, for a request behind it may be fenced.
 */
void transfer_source_end(struct transfer_source *s, uint64_t len);
