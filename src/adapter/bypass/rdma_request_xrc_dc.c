// SPDX-License-Identifier: BSD-2-Clause
/* Reads plain requests of XRC and of a DCI: the queue or the target that they name stands in front
 * of the address. */
#include <string.h>

#include "adapter/bypass/rdma_request.h"

/* The segments behind the leading one. */
struct request_rest {
	struct wqe_raddr remote;
	struct wqe_data data;
};

static bool request_piece(const struct qp *qp, const struct request_rest *rest, const uint8_t *at,
			  uint32_t leading_bytes, struct rdma_request *w)
{
	w->seg.remote = rest->remote;
	w->seg.data = rest->data;
	return rdma_request_piece(qp, at + offsetof(struct request_rest, data),
				  RDMA_UNITS + leading_bytes / WQE_UNIT, w);
}

static bool fetch_xrc(const struct qp *qp, const uint8_t *at, struct rdma_request *w)
{
	struct {
		struct wqe_xrc xrc;
		struct request_rest rest;
	} s;

	if (!usermem_fetch(&s, at + sizeof(struct wqe_ctrl), sizeof(s)))
		return false;
	w->blocks = 1;
	w->srqn = be32_get(s.xrc.xrc_srqn) & IB_QPN_MASK;
	return request_piece(qp, &s.rest, at + sizeof(struct wqe_ctrl) + sizeof(s.xrc),
			     sizeof(s.xrc), w);
}

/* Does the DCI stay with the target that it is connected to? */
static bool stays_connected(const struct qp *qp, const struct wqe_av *av)
{
	const struct wqe_av *target = qp->req.target;

	return target && be32_get(av->dqp_dct) & WQE_AV_EXTENDED &&
	       memcmp(av, target, sizeof(*av)) == 0;
}

static bool fetch_dc(const struct qp *qp, const uint8_t *at, const uint8_t *next,
		     struct rdma_request *w)
{
	struct request_rest rest;
	struct wqe_av av;

	static_assert(sizeof(struct wqe_ctrl) + sizeof(av) == WQE_BLOCK, "it fills the block");
	if (!usermem_fetch(&av, at + sizeof(struct wqe_ctrl), sizeof(av)) ||
	    !stays_connected(qp, &av) || !usermem_fetch(&rest, next, sizeof(rest)))
		return false;
	w->blocks = 2;
	return request_piece(qp, &rest, next, sizeof(av), w);
}

bool rdma_request_xrc_dc(const struct qp *qp, uint32_t block, struct rdma_request *w)
{
	const uint8_t *at = send_ring_at(qp, block);

	w->srqn = 0;
	if (!usermem_fetch(&w->seg.ctrl, at, sizeof(w->seg.ctrl)) ||
	    !rdma_request_begins(qp, &w->seg.ctrl, w))
		return false;
	if (qp->bth == BTH_XRC)
		return fetch_xrc(qp, at, w);
	/* a ring's end lies between blocks */
	return fetch_dc(qp, at, send_ring_at(qp, block + 1), w);
}
