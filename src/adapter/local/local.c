// SPDX-License-Identifier: BSD-2-Clause
/* Local operations, and which function executes which; see local.h. */
#include "adapter/local/local.h"

#include "adapter/memory/psv.h"
#include "adapter/qp/qp.h"
#include "base/explain.h"
#include "prm/cqe.h"
#include "usermem/usermem.h"

#include <string.h>

/* ---- SET_PSV: work requests that write a protected signature value ---- */

/* Writes a protected signature value. */
static must_check uint8_t set_psv_execute(struct qp *qp, const struct send_wqe *w)
{
	struct wqe_set_psv set;
	uint32_t number;

	if (wqe_ds(&w->ctrl) * WQE_UNIT != sizeof(w->ctrl) + sizeof(set))
		return explained(CQE_SYN_LOCAL_QP_OP, "SET_PSV of one PSV has ds 2, not %u",
				 wqe_ds(&w->ctrl));
	memcpy(&set, w->bytes + sizeof(w->ctrl), sizeof(set));
	number = be32_get(set.psv_index) & PSV_INDEX_MASK;
	if (psv_set(qp->adapter, number, qp->create.pdn, be64_get(set.transient_signature)))
		return 0;
	return explained(CQE_SYN_LOCAL_PROT, "there is no PSV 0x%x in PD %u, which is the QP's",
			 number, qp->create.pdn);
}

/* Transposes matrices, whatever their elements are. */

/* The parts of the work request, which has no others. */
struct transpose_wqe {
	struct wqe_ctrl ctrl;
	struct wqe_transpose shape;
	struct wqe_data src;
	struct wqe_data dst;
};

/* Gathers elements, as many as there is room for, which then go to the destination together. */
struct gathering {
	uint8_t bytes[2048];
	uint32_t n;
	uint64_t at; /* where they go, counted from the beginning of the destination */
};

/* Moves bytes between a place of the work request and our buffer.  A piece may lie in several
 * runs. */
static bool place_move(const struct qp *qp, const struct wqe_data *d, uint64_t off, bool store,
		       uint8_t *ours, uint32_t bytes)
{
	const struct mkey_use u = {
		.key = be32_get(d->lkey),
		.pdn = qp->create.pdn,
		.qpn = MKEY_ANY_QPN,
		.access = store ? IB_ACCESS_LOCAL_WRITE : 0,
	};
	struct run own = {ours, bytes};
	struct runs runs;

	runs_begin(&runs);
	if (mkey_resolve(qp->adapter, &u, be64_get(d->addr) + off, bytes, &runs) != MKEY_OK)
		return false;
	return store ? usermem_pull(runs.run, runs.n, &own, 1)
		     : usermem_pull(&own, 1, runs.run, runs.n);
}

static bool gathering_flush(const struct qp *qp, const struct wqe_data *dst, struct gathering *g)
{
	bool ok = place_move(qp, dst, g->at, true, g->bytes, g->n);

	g->at += g->n;
	g->n = 0;
	return ok;
}

static bool matrix_transpose(const struct qp *qp, const struct transpose_wqe *t, uint32_t rows,
			     uint32_t columns)
{
	uint32_t bytes = t->shape.element_bytes;
	struct gathering g = {.n = 0};

	for (uint32_t column = 0; column < columns; column++)
		for (uint32_t row = 0; row < rows; row++) {
			uint64_t from = (uint64_t)(row * columns + column) * bytes;

			if (g.n + bytes > sizeof(g.bytes) && !gathering_flush(qp, &t->dst, &g))
				return false;
			if (!place_move(qp, &t->src, from, false, g.bytes + g.n, bytes))
				return false;
			g.n += bytes;
		}
	return gathering_flush(qp, &t->dst, &g);
}

static must_check uint8_t transpose_execute(struct qp *qp, const struct send_wqe *w)
{
	struct transpose_wqe t;
	uint32_t rows, columns, bytes;

	if (wqe_ds(&w->ctrl) * WQE_UNIT != sizeof(t))
		return explained(CQE_SYN_LOCAL_QP_OP,
				 "a matrix is transposed by four segments, not %u",
				 wqe_ds(&w->ctrl));
	memcpy(&t, w->bytes, sizeof(t));
	rows = t.shape.rows & WQE_TRANSPOSE_MASK;
	columns = t.shape.columns & WQE_TRANSPOSE_MASK;
	bytes = rows * columns * t.shape.element_bytes;
	if (!bytes || be32_get(t.src.byte_count) != bytes || be32_get(t.dst.byte_count) != bytes)
		return explained(CQE_SYN_LOCAL_QP_OP,
				 "a matrix of %u rows and %u columns of %u bytes takes %u bytes, "
				 "from a place of %u bytes to one of %u",
				 rows, columns, t.shape.element_bytes, bytes,
				 be32_get(t.src.byte_count), be32_get(t.dst.byte_count));
	return matrix_transpose(qp, &t, rows, columns) ? 0 : CQE_SYN_LOCAL_PROT;
}

/* ---- Memory-to-memory copies ---- */

/* The parts of the work request, which has no others. */
struct copy_wqe {
	struct wqe_ctrl ctrl;
	struct wqe_mmo mmo;
	struct wqe_data src;
	struct wqe_data dst;
};

static enum mkey_verdict runs_of(const struct qp *qp, const struct wqe_data *d, uint32_t access,
				 uint64_t off, uint64_t len, struct runs *runs)
{
	const struct mkey_use u = {
		.key = be32_get(d->lkey),
		.pdn = qp->create.pdn,
		.qpn = MKEY_ANY_QPN,
		.access = access,
	};

	runs_begin(runs);
	return mkey_resolve(qp->adapter, &u, be64_get(d->addr) + off, len, runs);
}

/* Copies up to len bytes from off on, as many as a list of runs can name; returns how many, 0:
 * refused. */
static uint64_t copy_some(const struct qp *qp, const struct copy_wqe *c, uint64_t off, uint64_t len)
{
	struct runs src, dst;

	while (len) {
		enum mkey_verdict from = runs_of(qp, &c->src, 0, off, len, &src);
		enum mkey_verdict to = runs_of(qp, &c->dst, IB_ACCESS_LOCAL_WRITE, off, len, &dst);

		if (from == MKEY_OK && to == MKEY_OK)
			return usermem_pull(dst.run, dst.n, src.run, src.n) ? len : 0;
		if ((from != MKEY_OK && from != MKEY_TOO_MANY_RUNS) ||
		    (to != MKEY_OK && to != MKEY_TOO_MANY_RUNS))
			return 0;
		len /= 2;
	}
	return 0;
}

/* Executes memory-to-memory operations.  Of the engines behind these opcodes, this device has the
 * copy and, for LOCAL_MMO, the transposition. */
static must_check uint8_t mmo_execute(struct qp *qp, const struct send_wqe *w)
{
	struct copy_wqe c;
	uint64_t len;

	if (w->opcode == WQE_OP_LOCAL_MMO && wqe_opmod(&w->ctrl) == WQE_OPMOD_MMO_TRANSPOSE)
		return transpose_execute(qp, w);
	if (wqe_opmod(&w->ctrl) != WQE_OPMOD_MMO_DMA || wqe_ds(&w->ctrl) * WQE_UNIT != sizeof(c))
		return explained(CQE_SYN_LOCAL_QP_OP,
				 "memory operation %u is not supported (ds %u)",
				 wqe_opmod(&w->ctrl), wqe_ds(&w->ctrl));
	memcpy(&c, w->bytes, sizeof(c));
	/* 0 stands for 2^31, as in any data segment. */
	len = be32_get(c.src.byte_count);
	if (be32_get(c.dst.byte_count) != len)
		return explained(CQE_SYN_LOCAL_QP_OP, "a copy of %llu bytes to a place of %u bytes",
				 (unsigned long long)len, be32_get(c.dst.byte_count));
	if (!len || len > 1u << ADAPTER_LOG_MAX_DMA)
		return CQE_SYN_LOCAL_LENGTH;
	for (uint64_t off = 0, n; off < len; off += n) {
		n = copy_some(qp, &c, off, len - off);
		if (!n)
			return CQE_SYN_LOCAL_PROT;
	}
	return 0;
}

uint8_t local_execute(struct qp *qp, const struct send_wqe *w, bool *waits)
{
	switch (w->opcode) {
	case WQE_OP_UMR:
		return umr_execute(qp, w);
	case WQE_OP_SET_PSV:
		return set_psv_execute(qp, w);
	case WQE_OP_MMO:
	case WQE_OP_LOCAL_MMO:
		return mmo_execute(qp, w);
	case WQE_OP_WAIT:
		return wait_execute(qp, w, waits);
	case WQE_OP_RECEIVE_EN:
		return receive_en_execute(qp, w);
	case WQE_OP_SEND_EN:
		return send_en_execute(qp, w);
	default: /* NOP */
		return 0;
	}
}
