/* SPDX-License-Identifier: BSD-2-Clause */
/* The plainest request, as rdma_burst.c reads it from the ring: an RDMA WRITE or READ of one packet
 * with one piece of data. */
#pragma once

#include "adapter/qp/send_piece.h"

/* The segments at the start of such a request. */
struct rdma_segments {
	struct wqe_ctrl ctrl;
	struct wqe_raddr remote;
	struct wqe_data data;
};

#define RDMA_UNITS (sizeof(struct rdma_segments) / WQE_UNIT)

struct rdma_request {
	struct rdma_segments seg; /* a copy */
	struct send_piece piece;
	uint32_t blocks; /* of the ring */
	uint32_t srqn;	 /* XRC */
	bool read;
};

/* Does the control segment begin such a request?  Then w->read is set. */
static inline bool rdma_request_begins(const struct qp *qp, const struct wqe_ctrl *ctrl,
				       struct rdma_request *w)
{
	uint8_t opcode = wqe_opcode(ctrl);

	w->read = opcode == WQE_OP_RDMA_READ;
	return (likely(opcode == WQE_OP_RDMA_WRITE) || (w->read && qp->reliable)) &&
	       wqe_qpn(ctrl) == qp->qpn;
}

/* Reads the data segment, which is this one in the ring and the last of 'units'. */
static inline bool rdma_request_piece(const struct qp *qp, const uint8_t *at, uint32_t units,
				      struct rdma_request *w)
{
	return send_piece_read(qp, &w->seg.ctrl, &w->seg.data, at, units, &w->piece) &&
	       likely(!w->read || !w->piece.inlined);
}

/* Where the data lie in our memory; NULL: its key refuses. */
static inline uint8_t *rdma_request_at(const struct qp *qp, const struct rdma_request *w)
{
	return (uint8_t *)(uintptr_t)send_piece_at(qp, &w->seg.data, &w->piece,
						   w->read ? IB_ACCESS_LOCAL_WRITE : 0);
}

/*
 * Reads the request at block of an XRC or DC queue pair, which has a further segment behind the
 * first.  False: it is of another kind, or for another target than that to which the DCI is
 * connected.
 */
bool rdma_request_xrc_dc(const struct qp *qp, uint32_t block, struct rdma_request *w);

/* Reads the request at block; false: it is of another kind. */
static inline __attribute__((always_inline)) bool
rdma_request_fetch(const struct qp *qp, uint32_t block, struct rdma_request *w)
{
	const uint8_t *at = send_ring_at(qp, block);

	if (unlikely(qp->bth != BTH_RC && qp->bth != BTH_UC))
		return rdma_request_xrc_dc(qp, block, w);
	w->blocks = 1;
	w->srqn = 0;
	return likely(usermem_fetch(&w->seg, at, sizeof(w->seg))) &&
	       rdma_request_begins(qp, &w->seg.ctrl, w) &&
	       rdma_request_piece(qp, at + offsetof(struct rdma_segments, data), RDMA_UNITS, w);
}
