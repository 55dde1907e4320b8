/* SPDX-License-Identifier: BSD-2-Clause */
/* The plainest request, as write_burst.c reads it from the ring: an RDMA WRITE of one packet with
 * one piece of data. */
#pragma once

#include "adapter/qp/send_piece.h"

/* The segments at the start of such a request. */
struct write_segments {
	struct wqe_ctrl ctrl;
	struct wqe_raddr remote;
	struct wqe_data data;
};

#define WRITE_UNITS (sizeof(struct write_segments) / WQE_UNIT)

struct write_request {
	struct write_segments seg; /* a copy */
	struct send_piece piece;
	uint32_t blocks; /* of the ring */
	uint32_t srqn;	 /* XRC */
};

/*
 * Reads the request at block of an XRC or DC queue pair, which has a further segment behind the
 * first.  False: it is of another kind, or for another target than that to which the DCI is
 * connected.
 */
bool write_request_led(const struct qp *qp, uint32_t block, struct write_request *w);

/* Reads the request at block; false: it is of another kind. */
static inline __attribute__((always_inline)) bool
write_request_fetch(const struct qp *qp, uint32_t block, struct write_request *w)
{
	const uint8_t *at = send_ring_at(qp, block);

	if (unlikely(qp->bth != BTH_RC && qp->bth != BTH_UC))
		return write_request_led(qp, block, w);
	w->blocks = 1;
	w->srqn = 0;
	return likely(usermem_fetch(&w->seg, at, sizeof(w->seg))) &&
	       wqe_opcode(&w->seg.ctrl) == WQE_OP_RDMA_WRITE && wqe_qpn(&w->seg.ctrl) == qp->qpn &&
	       send_piece_read(qp, &w->seg.ctrl, &w->seg.data,
			       at + offsetof(struct write_segments, data), WRITE_UNITS, &w->piece);
}
