// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/qp/send_wqe.h"

#include <string.h>

#include "adapter/qp/qp.h"
#include "base/log.h"
#include "prm/wqe.h"
#include "usermem/usermem.h"

static const struct wqe_props props[256] = {
	[WQE_OP_NOP] = {.valid = 1, .local = 1, .rc = 1, .uc = 1, .ud = 1, .raw = 1},
	[WQE_OP_SEND] = {.valid = 1, .send = 1, .rc = 1, .uc = 1, .ud = 1, .raw = 1},
	[WQE_OP_SEND_IMM] = {.valid = 1, .send = 1, .imm = 1, .rc = 1, .uc = 1, .ud = 1},
	[WQE_OP_SEND_INVAL] = {.valid = 1, .send = 1, .inval = 1, .rc = 1},
	[WQE_OP_RDMA_WRITE] = {.valid = 1, .write = 1, .rc = 1, .uc = 1},
	[WQE_OP_RDMA_WRITE_IMM] = {.valid = 1, .write = 1, .imm = 1, .rc = 1, .uc = 1},
	[WQE_OP_TSO] = {.valid = 1, .send = 1, .raw = 1},
	[WQE_OP_WAIT] = {.valid = 1, .local = 1, .rc = 1, .uc = 1, .ud = 1, .raw = 1},
	[WQE_OP_RECEIVE_EN] = {.valid = 1, .local = 1, .rc = 1, .uc = 1, .ud = 1, .raw = 1},
	[WQE_OP_SEND_EN] = {.valid = 1, .local = 1, .rc = 1, .uc = 1, .ud = 1, .raw = 1},
	[WQE_OP_RDMA_READ] = {.valid = 1, .read = 1, .rc = 1},
	[WQE_OP_ATOMIC_CS] = {.valid = 1, .atomic = 1, .rc = 1},
	[WQE_OP_ATOMIC_FA] = {.valid = 1, .atomic = 1, .rc = 1},
	[WQE_OP_ATOMIC_MASKED_CS] = {.valid = 1, .atomic = 1, .masked = 1, .rc = 1},
	[WQE_OP_ATOMIC_MASKED_FA] = {.valid = 1, .atomic = 1, .masked = 1, .rc = 1},
	[WQE_OP_SET_PSV] = {.valid = 1, .local = 1, .rc = 1, .uc = 1},
	[WQE_OP_UMR] = {.valid = 1, .local = 1, .rc = 1, .uc = 1},
	[WQE_OP_ENHANCED_MPSW] = {.valid = 1, .send = 1, .raw = 1},
	[WQE_OP_MMO] = {.valid = 1, .local = 1, .rc = 1},
	[WQE_OP_LOCAL_MMO] = {.valid = 1, .local = 1, .rc = 1, .uc = 1, .raw = 1},
};

const struct wqe_props *wqe_props(uint8_t opcode)
{
	return &props[opcode];
}

/* Copies n bytes at ring position block; a WQE may wrap at the ring's end. */
static bool copy_blocks(const struct qp *qp, uint32_t block, void *to, size_t n)
{
	size_t ring = (size_t)qp->create.sq_blocks * WQE_BLOCK;
	size_t at = (size_t)(block & (qp->create.sq_blocks - 1)) * WQE_BLOCK;
	size_t first = n <= ring - at ? n : ring - at;
	const uint8_t *buf = qp->create.sq_buf;

	return usermem_copy(to, buf + at, first) &&
	       (first == n || usermem_copy((uint8_t *)to + first, buf, n - first));
}

/* Decodes data segments in bytes [at, end) of the copy. */
static bool decode_segments(struct send_wqe *w, uint32_t at, uint32_t end)
{
	while (at + sizeof(struct wqe_data) <= end) {
		const struct wqe_data *d = (const struct wqe_data *)(w->bytes + at);
		uint32_t count = be32_get(d->byte_count);
		struct send_seg *s = &w->seg[w->nsegs];

		if (count & WQE_DATA_INLINE) {
			count &= WQE_DATA_INLINE_LEN;
			if (count > end - at - sizeof(be32))
				return false;
			*s = (struct send_seg){.len = count,
					       .inline_data = w->bytes + at + sizeof(be32)};
			w->has_inline = true;
			at += (uint32_t)align_up(sizeof(be32) + count, WQE_UNIT);
		} else {
			*s = (struct send_seg){.lkey = be32_get(d->lkey),
					       .len = count ? count : WQE_DATA_ZERO,
					       .addr = be64_get(d->addr)};
			at += sizeof(*d);
		}
		if (s->len || s->inline_data) {
			w->len += s->len;
			w->nsegs++;
		}
	}
	return true;
}

/* Decodes the segment of a raw packet QP, and the part of the frame that stands in it. */
static bool decode_eth(const struct qp *qp, struct send_wqe *w, uint32_t *at, uint32_t end)
{
	const uint32_t inlined = offsetof(struct wqe_eth, inline_hdr_start);
	struct wqe_eth e;

	if (end - *at < sizeof(e))
		return false;
	memcpy(&e, w->bytes + *at, sizeof(e));
	if (unlikely(e.cs_flags & WQE_ETH_TRAILER_ALIGN || e.swp_flags))
		log_info("QP 0x%x: frames with alignment of the trailer or parsing by software: "
			 "these flags are ignored",
			 qp->qpn);
	w->eth_flags = e.cs_flags;
	w->eth_mss = be16_get(e.mss);
	w->eth_header_len = be16_get(e.inline_hdr_sz);
	w->eth_header = w->bytes + *at + inlined;
	if (!range_inside(inlined, w->eth_header_len, end - *at))
		return false;
	/* all segments are whole units, so this stays inside the copy */
	*at += (uint32_t)align_up(inlined + w->eth_header_len, WQE_UNIT);
	if (w->opcode == WQE_OP_ENHANCED_MPSW)
		return qp->create.multi_packet && !w->eth_header_len;
	return w->opcode != WQE_OP_TSO || w->eth_mss;
}

/* An address vector without the extended bit has only this many bytes. */
#define AV_SHORT_BYTES 16u

static bool decode_atomic(struct send_wqe *w, uint32_t *at, uint32_t end)
{
	struct wqe_atomic x;

	if (end - *at < sizeof(x))
		return false;
	memcpy(&x, w->bytes + *at, sizeof(x));
	w->atomic_bytes = sizeof(uint64_t);
	w->swap_add = be64_get(x.swap_add);
	w->compare = be64_get(x.compare);
	*at += sizeof(x);
	return true;
}

static uint64_t masked_operand(const struct send_wqe *w, uint32_t at, unsigned n)
{
	be32 word;
	be64 wide;

	if (w->atomic_bytes == sizeof(word)) {
		memcpy(&word, w->bytes + at + n * sizeof(word), sizeof(word));
		return be32_get(word);
	}
	memcpy(&wide, w->bytes + at + n * sizeof(wide), sizeof(wide));
	return be64_get(wide);
}

/* The operands stand one behind the other and fill whole units: swap, compare and their masks, or
 * addend and boundaries. */
static bool decode_masked(struct send_wqe *w, uint32_t *at, uint32_t end)
{
	bool swap = w->opcode == WQE_OP_ATOMIC_MASKED_CS;
	uint8_t opmod = wqe_opmod(&w->ctrl);
	uint32_t bytes;

	if (opmod != WQE_OPMOD_ATOMIC_4 && opmod != WQE_OPMOD_ATOMIC_8)
		return false;
	w->atomic_bytes = opmod == WQE_OPMOD_ATOMIC_4 ? 4 : 8;
	bytes = (uint32_t)align_up((swap ? 4 : 2) * (uint64_t)w->atomic_bytes, WQE_UNIT);
	if (end - *at < bytes)
		return false;
	w->swap_add = masked_operand(w, *at, 0);
	w->compare = masked_operand(w, *at, 1);
	w->swap_mask = swap ? masked_operand(w, *at, 2) : 0;
	w->compare_mask = swap ? masked_operand(w, *at, 3) : 0;
	*at += bytes;
	return true;
}

/* Decodes the segments in front of the data, and moves *at past them. */
static bool decode_headers(const struct qp *qp, struct send_wqe *w, uint32_t *at, uint32_t end)
{
	const struct wqe_props *p = wqe_props(w->opcode);

	if (qp->bth == BTH_RAW && !decode_eth(qp, w, at, end))
		return false;
	if ((qp->bth == BTH_UD && p->send) || qp->bth == BTH_DC) {
		uint32_t n = AV_SHORT_BYTES;

		if (end - *at < n)
			return false;
		memset(&w->av, 0, sizeof(w->av));
		memcpy(&w->av, w->bytes + *at, n);
		if (be32_get(w->av.dqp_dct) & WQE_AV_EXTENDED)
			n = sizeof(w->av);
		if (end - *at < n)
			return false;
		memcpy(&w->av, w->bytes + *at, n);
		*at += n;
	}
	if (qp->bth == BTH_XRC) {
		struct wqe_xrc x;

		if (end - *at < sizeof(x))
			return false;
		memcpy(&x, w->bytes + *at, sizeof(x));
		w->srqn = be32_get(x.xrc_srqn) & IB_QPN_MASK;
		*at += sizeof(x);
	}
	if (p->write || p->read || p->atomic) {
		struct wqe_raddr r;

		if (end - *at < sizeof(r))
			return false;
		memcpy(&r, w->bytes + *at, sizeof(r));
		w->raddr = be64_get(r.va);
		w->rkey = be32_get(r.rkey);
		*at += sizeof(r);
	}
	return !p->atomic || (p->masked ? decode_masked(w, at, end) : decode_atomic(w, at, end));
}

static bool carried_by(const struct qp *qp, const struct wqe_props *p)
{
	switch (qp->bth) {
	case BTH_RC:
	case BTH_XRC:
	case BTH_DC:
		return p->rc;
	case BTH_UC:
		return p->uc;
	case BTH_RAW:
		return p->raw;
	default:
		return p->ud;
	}
}

/* Decodes the copy.  Returns 0 or the syndrome of the completion: IBTA 11.6.2 tells a malformed
 * request from one that is too long. */
static uint8_t send_wqe_decode(const struct qp *qp, struct send_wqe *w, uint32_t ds)
{
	const struct wqe_props *p = wqe_props(w->opcode);
	uint32_t at = sizeof(struct wqe_ctrl);
	uint32_t end = ds * WQE_UNIT;

	if (!p->valid || !carried_by(qp, p) || wqe_qpn(&w->ctrl) != qp->qpn)
		return CQE_SYN_LOCAL_QP_OP;
	if (p->local)
		return 0;
	if (!decode_headers(qp, w, &at, end) || !decode_segments(w, at, end))
		return CQE_SYN_LOCAL_QP_OP;
	/* The answer is no longer than the operand; a longer list keeps the rest as it is. */
	if (p->atomic)
		w->len = min_u64(w->len, w->atomic_bytes);
	/* An answer has no place in the ring (ibv_post_send(3): inline data are sent). */
	if ((p->read || p->atomic) && w->has_inline)
		return CQE_SYN_LOCAL_QP_OP;
	return w->len <= IB_MAX_MSG_BYTES ? 0 : CQE_SYN_LOCAL_LENGTH;
}

/* Fetches one of at most so many blocks. */
static enum fetch_verdict fetch_of(const struct qp *qp, uint32_t block, uint32_t ready,
				   struct send_wqe *out)
{
	uint32_t ds;

	/* copy a block at a time, because most WQEs have one */
	if (!copy_blocks(qp, block, out->bytes, WQE_BLOCK))
		return FETCH_FAULT;
	ds = wqe_ds(&out->ctrl);
	out->nblocks = div_round_up(ds * WQE_UNIT, WQE_BLOCK);
	if (!ds || ds > WQE_MAX_BYTES / WQE_UNIT || out->nblocks > ready)
		return FETCH_FAULT;
	out->newest = out->nblocks == ready;
	if (out->nblocks > 1 && !copy_blocks(qp, block + 1, out->bytes + WQE_BLOCK,
					     (size_t)(out->nblocks - 1) * WQE_BLOCK))
		return FETCH_FAULT;

	out->opcode = wqe_opcode(&out->ctrl);
	out->fm_ce_se = out->ctrl.fm_ce_se;
	out->imm = be32_get(out->ctrl.imm);
	out->nsegs = 0;
	out->has_inline = false;
	out->len = 0;
	/* The program may have changed the length between the two copies, so only the first one
	 * counts. */
	out->bad = send_wqe_decode(qp, out, ds);
	return FETCH_OK;
}

enum fetch_verdict send_wqe_fetch(struct qp *qp, uint32_t block, struct send_wqe *out)
{
	int ready = send_ring_ready(qp, block);

	if (ready <= 0)
		return ready ? FETCH_FAULT : FETCH_NONE;
	return fetch_of(qp, block, (uint32_t)ready, out);
}

enum fetch_verdict send_wqe_fetch_again(const struct qp *qp, const struct send_op *op,
					struct send_wqe *out)
{
	return fetch_of(qp, op->block, op->nblocks, out);
}

enum mkey_verdict send_wqe_runs(struct adapter *a, const struct send_wqe *w, uint32_t pdn,
				uint32_t access, uint64_t off, uint64_t len, struct runs *runs)
{
	struct mkey_use u = {.pdn = pdn, .qpn = MKEY_ANY_QPN, .access = access};

	for (uint32_t i = 0; i < w->nsegs && len; i++) {
		const struct send_seg *s = &w->seg[i];
		enum mkey_verdict v = MKEY_OK;
		uint64_t part;

		if (off >= s->len) {
			off -= s->len;
			continue;
		}
		part = min_u64(s->len - off, len);
		if (s->inline_data) {
			if (runs->n == RUNS_MAX)
				return MKEY_TOO_MANY_RUNS;
			runs_add(runs, 0, (void *)(uintptr_t)(s->inline_data + off), part);
		} else {
			u.key = s->lkey;
			v = mkey_resolve(a, &u, s->addr + off, part, runs);
		}
		if (unlikely(v != MKEY_OK))
			return mkey_piece_refused(a, v, &u, s->addr + off, part);
		len -= part;
		off = 0;
	}
	return len ? MKEY_OUT_OF_RANGE : MKEY_OK;
}

uint8_t send_wqe_bth_op(const struct wqe_props *p, bool first, bool last)
{
	/* [write][first]; columns: last, last with imm, last with inv, not last */
	static const uint8_t op[2][2][4] = {
		{{BTH_SEND_LAST, BTH_SEND_LAST_IMM, BTH_SEND_LAST_INV, BTH_SEND_MIDDLE},
		 {BTH_SEND_ONLY, BTH_SEND_ONLY_IMM, BTH_SEND_ONLY_INV, BTH_SEND_FIRST}},
		{{BTH_WRITE_LAST, BTH_WRITE_LAST_IMM, BTH_WRITE_LAST, BTH_WRITE_MIDDLE},
		 {BTH_WRITE_ONLY, BTH_WRITE_ONLY_IMM, BTH_WRITE_ONLY, BTH_WRITE_FIRST}},
	};
	unsigned column = !last ? 3 : p->imm ? 1 : p->inval ? 2 : 0;

	return op[p->write][first][column];
}
