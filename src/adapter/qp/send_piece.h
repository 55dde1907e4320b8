/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data of a plain request: it is one piece, the request is one packet, and its segments take as
 * few blocks of the ring as possible.
 *
 * For code that executes such requests straight from the ring, with a copy of the segments.
 */
#pragma once

#include "adapter/memory/mkey.h"
#include "adapter/qp/qp.h"
#include "prm/wqe.h"

struct send_piece {
	uint32_t bytes;
	const uint8_t *inlined; /* data in the ring; NULL: the segment points to it */
};

/* Reads the piece.  The data segment stands at 'at' in the ring and, if it points to its data, must
 * be the last of 'units'.  False: the data are of another kind. */
static inline bool send_piece_read(const struct qp *qp, const struct wqe_ctrl *ctrl,
				   const struct wqe_data *data, const uint8_t *at, uint32_t units,
				   struct send_piece *out)
{
	uint32_t ds = wqe_ds(ctrl), count = be32_get(data->byte_count);
	bool inlined = count & WQE_DATA_INLINE;

	out->bytes = inlined ? count & WQE_DATA_INLINE_LEN : count;
	out->inlined = inlined ? at + sizeof(be32) : NULL;
	if (!out->bytes || out->bytes > qp->mtu)
		return false;
	if (!inlined)
		return ds == units;
	return ds <= align_up(units, WQE_BLOCK / WQE_UNIT) &&
	       ds == units - 1 + div_round_up(sizeof(be32) + out->bytes, WQE_UNIT);
}

/* Where the piece lies in our memory; NULL: its key refuses, or lacks these rights. */
static inline const uint8_t *send_piece_at(const struct qp *qp, const struct wqe_data *data,
					   const struct send_piece *p, uint32_t access)
{
	if (p->inlined)
		return p->inlined;
	return mkey_region_at(qp->adapter, be32_get(data->lkey), qp->create.pdn, access,
			      be64_get(data->addr), p->bytes);
}
