/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A send WQE, fetched and decoded.  The ring is the program's memory, so the device copies the WQE
 * once, checks the copy, and uses only that.  A retransmission and the scatter of a read fetch the
 * WQE again instead of keeping it, because software may rewrite it between the error and the
 * resumption of a pipelined QP.
 */
#pragma once

#include "adapter/memory/mkey.h"
#include "adapter/qp/qp.h"
#include "prm/wqe.h"

struct qp;
struct send_op;

/* A piece of the gather or scatter list. */
struct send_seg {
	uint32_t lkey;
	uint32_t len;
	uint64_t addr;
	const uint8_t *inline_data; /* points into the copy; NULL: the segment is a pointer */
};

#define SEND_WQE_MAX_SEGS (WQE_MAX_BYTES / WQE_UNIT)

struct send_wqe {
	/* word-aligned copy of the ring's blocks */
	union {
		uint8_t bytes[WQE_MAX_BYTES];
		struct wqe_ctrl ctrl;
		uint64_t align;
	};
	uint32_t nblocks;
	bool newest; /* when we fetched it, nothing was posted behind it */
	uint8_t opcode;
	uint8_t bad; /* enum cqe_syndrome of why this QP cannot execute it; 0: it can */
	uint8_t fm_ce_se;
	uint32_t imm;
	uint64_t raddr;
	uint32_t rkey;
	uint32_t atomic_bytes; /* of each operand */
	uint64_t swap_add;
	uint64_t compare; /* of a masked fetch-and-add: the boundaries of its fields */
	uint64_t swap_mask;
	uint64_t compare_mask;
	uint32_t srqn; /* XRC */
	struct wqe_av av;
	uint8_t eth_flags; /* raw packet: WQE_ETH_* */
	uint16_t eth_mss;
	uint32_t eth_header_len;
	const uint8_t *eth_header; /* points into the copy: the frame's first bytes */
	uint32_t nsegs;
	bool has_inline; /* some of the data stands in the copy */
	uint64_t len;
	struct send_seg seg[SEND_WQE_MAX_SEGS];
};

/* What an operation consists of, and which transports carry it. */
struct wqe_props {
	bool valid : 1;
	bool send : 1;
	bool write : 1;
	bool read : 1;
	bool atomic : 1;
	bool masked : 1; /* an atomic with masks, of 4 or 8 bytes */
	bool imm : 1;
	bool inval : 1;
	bool local : 1; /* makes no packet */
	bool rc : 1;
	bool uc : 1;
	bool ud : 1;
	bool raw : 1;
};

const struct wqe_props *wqe_props(uint8_t opcode);

/* The operation (enum bth_op) of a packet of a SEND or WRITE: the first, the last or another
 * one. */
uint8_t send_wqe_bth_op(const struct wqe_props *p, bool first, bool last);

enum fetch_verdict {
	FETCH_OK,
	FETCH_NONE,  /* the ring holds no more */
	FETCH_FAULT, /* ring or doorbell record cannot be read, or the counters make no sense */
};

/* Fetches and decodes the WQE at block, which is a counter and not masked. */
enum fetch_verdict send_wqe_fetch(struct qp *qp, uint32_t block, struct send_wqe *out) must_check;

/* The same for a request that was fetched before, whatever the doorbell record says by now. */
enum fetch_verdict send_wqe_fetch_again(const struct qp *qp, const struct send_op *op,
					struct send_wqe *out) must_check;

/* Appends the runs of bytes [off, off + len) of the list. */
enum mkey_verdict send_wqe_runs(struct adapter *a, const struct send_wqe *w, uint32_t pdn,
				uint32_t access, uint64_t off, uint64_t len,
				struct runs *runs) must_check;

/*
 * The data of a plain request: it is one piece, the request is one packet, and its segments take as
 * few blocks of the ring as possible.
 *
 * For code that executes such requests straight from the ring, with a copy of the segments.
 */

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
