// SPDX-License-Identifier: BSD-2-Clause
/*
 * UMR work requests give an indirect key a new meaning (memory/mkey_indirect.c), bind a memory window
 * or invalidate a key.  libmlx5 posts both ibv_bind_mw and the work requests BIND_MW and LOCAL_INV
 * in this form.
 *
 * A request that the rules of the architecture forbid completes with the memory management error
 * (IBTA 11.6.2), a request that this device cannot interpret with the local QP operation error.
 */
#include "adapter/local/local.h"

#include <string.h>

#include "adapter/memory/mkey_indirect.h"
#include "adapter/qp/qp.h"
#include "adapter/memory/window.h"
#include "base/explain.h"
#include "prm/cqe.h"
#include "prm/wqe.h"

/* Fields of a window's context that may change. */
#define MASK_BIND  (UMR_MASK_LEN | UMR_MASK_START_ADDR | UMR_MASK_ACCESS_WINDOW)
#define MASK_KNOWN (MASK_BIND | UMR_MASK_MKEY | UMR_MASK_QPN | UMR_MASK_FREE)

struct umr {
	struct umr_ctrl ctrl;
	struct umr_mkey_context context;
	struct umr_klm klm;
	uint64_t mask;
	bool has_klm;
};

static bool umr_decode(const struct send_wqe *w, struct umr *u)
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

static uint8_t umr_bind(struct qp *qp, const struct send_wqe *w, const struct umr *u)
{
	uint32_t qpn_mkey = be32_get(u->context.qpn_mkey);
	const struct window_bind b = {
		.key = w->imm,
		.pdn = qp->create.pdn,
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
		return explained(CQE_SYN_LOCAL_QP_OP,
				 "the bind of memory window 0x%x lacks length, address, rights, "
				 "key or list",
				 w->imm);
	/* A type 2 window belongs only to the QP that binds it. */
	if (b.type == WINDOW_TYPE_2 && qpn_mkey >> 8 != qp->qpn)
		return explained(CQE_SYN_LOCAL_QP_OP,
				 "the bind of memory window 0x%x of type 2 names QP 0x%x, not this "
				 "one",
				 w->imm, qpn_mkey >> 8);
	/* The list is one entry, which covers the whole window. */
	if (!b.length || b.length > be32_get(u->klm.byte_count))
		return explained(CQE_SYN_LOCAL_QP_OP,
				 "memory window 0x%x is to have %llu bytes, and its list has %u",
				 w->imm, (unsigned long long)b.length, be32_get(u->klm.byte_count));
	return window_bind(qp->adapter, &b) ? 0 : CQE_SYN_MW_BIND;
}

/*
 * Waits for the users of a key that has become invalid; they are requests to this QP.  A request
 * that found the key valid may still be copying, under the responder's lock.  So once this function
 * has held that lock, no access outlives the completion.
 */
static void wait_for_users(struct qp *qp)
{
	resp_lock(qp);
	resp_unlock(qp);
}

static const char *invalidate_reason(enum mkey_verdict v)
{
	switch (v) {
	case MKEY_NO_KEY:
		return "no memory window or mkey is bound to it (any more)";
	case MKEY_WRONG_PD:
		return "it belongs to another PD than the QP";
	default:
		return "it is an MR, a memory window of type 1, which a bind of no bytes "
		       "invalidates, or bound by another QP";
	}
}

static uint8_t local_invalidate(struct qp *qp, const struct send_wqe *w)
{
	const struct mkey_use u = {.key = w->imm, .pdn = qp->create.pdn, .qpn = qp->qpn};
	enum mkey_verdict v = mkey_invalidate(qp->adapter, &u);

	if (v != MKEY_OK)
		return explained(CQE_SYN_MW_BIND, "key 0x%x cannot be invalidated: %s", w->imm,
				 invalidate_reason(v));
	wait_for_users(qp);
	return 0;
}

/* Executes a UMR on a window. */
static uint8_t execute_window(struct qp *qp, const struct send_wqe *w, const struct umr *u)
{
	if (u->mask & ~MASK_KNOWN || be16_get(u->ctrl.bsf_octowords))
		return explained(CQE_SYN_LOCAL_QP_OP,
				 "a UMR of memory window 0x%x changes what no window has (mask "
				 "0x%llx)",
				 w->imm, (unsigned long long)u->mask);
	if (!(u->mask & UMR_MASK_FREE) || !(u->context.free & MKEY_CTX_FREE))
		return umr_bind(qp, w, u);
	if (u->ctrl.flags & UMR_CHECK_QPN)
		return local_invalidate(qp, w);
	return window_unbind(qp->adapter, w->imm, qp->create.pdn) ? 0 : CQE_SYN_MW_BIND;
}

/* Finds the list and the parts behind it.  False: the work request ends before they do. */
static bool find_parts(const struct send_wqe *w, const struct umr *u, struct mkey_update *out)
{
	uint32_t at = (uint32_t)(sizeof(w->ctrl) + sizeof(u->ctrl) + sizeof(u->context));
	uint32_t left = wqe_ds(&w->ctrl) * WQE_UNIT - at;
	uint32_t list = (uint32_t)(out->entries * sizeof(u->klm));

	if (u->ctrl.flags & UMR_TRANSLATION_OFFSET)
		out->at = (uint64_t)be32_get(u->ctrl.offset_47_16) << 16 |
			  be16_get(u->ctrl.bsf_octowords);
	else
		out->bsf_octowords = be16_get(u->ctrl.bsf_octowords);
	if (out->entries && !(u->ctrl.flags & UMR_INLINE)) {
		struct wqe_data d;

		/* The list is one segment, and then the format has no place for a BSF. */
		if (left < sizeof(d) || out->bsf_octowords)
			return false;
		memcpy(&d, w->bytes + at, sizeof(d));
		out->list_lkey = be32_get(d.lkey);
		out->list_va = be64_get(d.addr);
		return be32_get(d.byte_count) >= list;
	}
	if (left < list)
		return false;
	if (out->entries)
		out->entry = (const struct umr_klm *)(w->bytes + at);
	if (!out->bsf_octowords)
		return true;
	list = (uint32_t)align_up(list, WQE_BLOCK);
	if (!range_inside(list, (uint64_t)out->bsf_octowords * WQE_UNIT, left))
		return false;
	out->bsf = w->bytes + at + list;
	return true;
}

/* Executes a UMR on an indirect key; mkey_update refuses other keys. */
static uint8_t execute_update(struct qp *qp, const struct send_wqe *w, const struct umr *u)
{
	struct mkey_update update = {
		.key = w->imm,
		.pdn = qp->create.pdn,
		.qpn = qp->qpn,
		.flags = u->ctrl.flags,
		.mask = u->mask,
		.context = u->context,
		.entries = be16_get(u->ctrl.klm_octowords),
	};
	uint8_t syndrome;

	if (u->ctrl.flags & ~UMR_FLAGS)
		return explained(CQE_SYN_LOCAL_QP_OP, "UMR of mkey 0x%x: unknown flags 0x%x",
				 w->imm, u->ctrl.flags & ~UMR_FLAGS);
	if (!find_parts(w, u, &update))
		return explained(CQE_SYN_LOCAL_QP_OP,
				 "UMR of mkey 0x%x: the work request (ds %u) ends before its list "
				 "of %u entries and its BSF do",
				 w->imm, wqe_ds(&w->ctrl), update.entries);
	syndrome = mkey_update(qp->adapter, &update);
	if (!syndrome && mkey_update_invalidates(&update))
		wait_for_users(qp);
	return syndrome;
}

uint8_t umr_execute(struct qp *qp, const struct send_wqe *w)
{
	const struct mkey_meaning *m = number_find(&qp->adapter->mkeys, w->imm >> 8);
	struct umr u;

	if (!umr_decode(w, &u))
		return explained(CQE_SYN_LOCAL_QP_OP,
				 "UMR of key 0x%x: the work request (ds %u) ends before the key's "
				 "context does",
				 w->imm, wqe_ds(&w->ctrl));
	return m && m->ops == &window_ops ? execute_window(qp, w, &u) : execute_update(qp, w, &u);
}
