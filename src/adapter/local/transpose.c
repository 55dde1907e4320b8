// SPDX-License-Identifier: BSD-2-Clause
/* Transposes matrices (local.h), whatever their elements are. */
#include "adapter/local/local.h"

#include <string.h>

#include "adapter/qp/qp.h"
#include "base/explain.h"
#include "prm/cqe.h"
#include "usermem/usermem.h"

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

uint8_t transpose_execute(struct qp *qp, const struct send_wqe *w)
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
