// SPDX-License-Identifier: BSD-2-Clause
/*
 * Of the many things that a UMR can do, these are here: binding a memory window, and invalidating
 * a key.  libmlx5 posts both ibv_bind_mw and the work requests BIND_MW and LOCAL_INV in this form.
 *
 * What a work request asks and the rules of the architecture forbid completes with the memory
 * management error (IBTA 11.6.2); a work request that this device cannot make sense of with the
 * local QP operation error.
 */
#include "adapter/umr.h"

#include <string.h>

#include "adapter/qp.h"
#include "adapter/window.h"
#include "base/log.h"
#include "prm/cqe.h"
#include "prm/umr.h"

/* Fields of the key's context that may change. */
#define MASK_ACCESS                                                  \
	(UMR_MASK_ACCESS_LOCAL_WRITE | UMR_MASK_ACCESS_REMOTE_READ | \
	 UMR_MASK_ACCESS_REMOTE_WRITE | UMR_MASK_ACCESS_ATOMIC)
#define MASK_BIND  (UMR_MASK_LEN | UMR_MASK_START_ADDR | MASK_ACCESS)
#define MASK_KNOWN (MASK_BIND | UMR_MASK_MKEY | UMR_MASK_QPN | UMR_MASK_FREE)

struct umr {
	struct umr_ctrl ctrl;
	struct umr_mkey_context context;
	struct umr_klm klm;
	uint64_t mask;
	bool has_klm;
};

static bool decode(const struct send_wqe *w, struct umr *u)
{
	const uint8_t *at = w->bytes + sizeof(struct wqe_ctrl);
	uint32_t bytes = wqe_ds(&w->ctrl) * WQE_UNIT;
	uint32_t fixed = sizeof(struct wqe_ctrl) + sizeof(u->ctrl) + sizeof(u->context);

	if (bytes < fixed)
		return false;
	memcpy(&u->ctrl, at, sizeof(u->ctrl));
	memcpy(&u->context, at + sizeof(u->ctrl), sizeof(u->context));
	u->mask = be64_get(u->ctrl.mkey_mask);
	u->has_klm = u->ctrl.flags & UMR_INLINE && bytes >= fixed + sizeof(u->klm);
	if (u->has_klm)
		memcpy(&u->klm, w->bytes + fixed, sizeof(u->klm));
	return true;
}

static uint32_t access_of(uint8_t bits)
{
	return (bits & MKEY_CTX_ACCESS_LOCAL_WRITE ? IB_ACCESS_LOCAL_WRITE : 0) |
	       (bits & MKEY_CTX_ACCESS_REMOTE_READ ? IB_ACCESS_REMOTE_READ : 0) |
	       (bits & MKEY_CTX_ACCESS_REMOTE_WRITE ? IB_ACCESS_REMOTE_WRITE : 0) |
	       (bits & MKEY_CTX_ACCESS_ATOMIC ? IB_ACCESS_REMOTE_ATOMIC : 0);
}

static uint8_t bind(struct qp *qp, const struct send_wqe *w, const struct umr *u)
{
	uint32_t qpn_mkey = be32_get(u->context.qpn_mkey);
	const struct window_bind b = {
		.key = w->imm,
		.pdn = qp->init.pdn,
		.qpn = qp->qpn,
		.type = u->mask & UMR_MASK_QPN ? WINDOW_TYPE_2 : WINDOW_TYPE_1,
		.variant = (uint8_t)qpn_mkey,
		.access = access_of(u->context.access),
		.iova = be64_get(u->context.start_addr),
		.length = be64_get(u->context.len),
		.mr_key = be32_get(u->klm.mkey),
		.mr_va = be64_get(u->klm.va),
	};

	if ((u->mask & MASK_BIND) != MASK_BIND || !(u->mask & UMR_MASK_MKEY) || !u->has_klm)
		return CQE_SYN_LOCAL_QP_OP;
	/* A type 2 window becomes that of the QP which binds it, and of no other. */
	if (b.type == WINDOW_TYPE_2 && qpn_mkey >> 8 != qp->qpn)
		return CQE_SYN_LOCAL_QP_OP;
	/* one entry, which carries all of the window */
	if (!b.length || b.length > be32_get(u->klm.byte_count))
		return CQE_SYN_LOCAL_QP_OP;
	return window_bind(qp->adapter, &b) ? 0 : CQE_SYN_MW_BIND;
}

static uint8_t local_invalidate(struct qp *qp, const struct send_wqe *w)
{
	enum mkey_verdict v = mkey_invalidate(qp->adapter, w->imm, qp->init.pdn, qp->qpn);

	if (v != MKEY_OK) {
		log_info("QP 0x%x: local invalidate of key 0x%x refused (verdict %d)", qp->qpn,
			 w->imm, (int)v);
		return CQE_SYN_MW_BIND;
	}
	/*
	 * Its users are requests to this QP.  One that found the key valid may be in the midst of
	 * its copy: it is over when the responder's lock can be had, and no access outlives the
	 * completion.
	 */
	resp_lock(qp);
	resp_unlock(qp);
	return 0;
}

uint8_t umr_execute(struct qp *qp, const struct send_wqe *w)
{
	struct umr u;
	uint8_t syndrome = CQE_SYN_LOCAL_QP_OP;

	if (!decode(w, &u) || u.mask & ~MASK_KNOWN || be16_get(u.ctrl.bsf_octowords))
		goto out;
	if (!(u.mask & UMR_MASK_FREE) || !(u.context.free & MKEY_CTX_FREE))
		syndrome = bind(qp, w, &u);
	else if (u.ctrl.flags & UMR_CHECK_QPN)
		return local_invalidate(qp, w);
	else
		return window_unbind(qp->adapter, w->imm, qp->init.pdn) ? 0 : CQE_SYN_MW_BIND;
out:
	if (syndrome == CQE_SYN_LOCAL_QP_OP)
		log_info("QP 0x%x: this UMR is not supported (key 0x%x, ds %u)", qp->qpn, w->imm,
			 wqe_ds(&w->ctrl));
	return syndrome;
}
