// SPDX-License-Identifier: BSD-2-Clause
/* Memory-to-memory copies (local.h). */
#include "adapter/local/local.h"

#include <string.h>

#include "adapter/qp/qp.h"
#include "base/explain.h"
#include "prm/cqe.h"
#include "usermem/usermem.h"

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

uint8_t mmo_execute(struct qp *qp, const struct send_wqe *w)
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
