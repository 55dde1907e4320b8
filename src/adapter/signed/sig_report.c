// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/signed/sig_report.h"

#include "adapter/qp/qp.h"
#include "adapter/qp/qp_explain.h"

/* Each sets one bit only, because libmlx5 and the kernel look at several bits in different
 * orders. */
static const uint16_t syndrome[] = {
	[SIG_BAD_GUARD] = CQE_SIG_ERR_GUARD,
	[SIG_BAD_APP_TAG] = CQE_SIG_ERR_APP_TAG,
	[SIG_BAD_REF_TAG] = CQE_SIG_ERR_REF_TAG,
};

void sig_report_explain(struct qp *qp, uint32_t key, const struct sig_error *e)
{
	/* This reading says which value is which, whatever the program gets. */
	struct sig_report r = sig_error_report(e, SIG_REPORT_MANUAL);
	const char *side = e->side == SIG_MEMORY ? "the memory" : "the wire";

	if (e->transaction) {
		qp_explain(qp,
			   "signature error: the transaction signature that ends on %s under key "
			   "0x%x is 0x%llx, and 0x%llx was expected; the transfer goes on "
			   "(mlx5dv_mkey_check answers EINVAL)",
			   side, key, (unsigned long long)sig_report_part(e, r.expected),
			   (unsigned long long)sig_report_part(e, r.actual));
		return;
	}
	qp_explain(qp,
		   "signature error: the %s of block %llu, which begins at offset %llu of %s under "
		   "key 0x%x, is 0x%llx, and 0x%llx was expected; the transfer goes on "
		   "(mlx5dv_mkey_check)",
		   sig_error_name(e->kind), (unsigned long long)e->block,
		   (unsigned long long)r.offset, side, key,
		   (unsigned long long)sig_report_part(e, r.expected),
		   (unsigned long long)sig_report_part(e, r.actual));
}

void sig_report_push(struct qp *qp, struct cq *cq, uint32_t key, const struct sig_error *e,
		     uint16_t block)
{
	enum sig_report_style style =
		qp->adapter->attr.sig_report_hardware ? SIG_REPORT_HARDWARE : SIG_REPORT_MANUAL;
	struct sig_report r = sig_error_report(e, style);
	struct cqe64_sig_err cqe = {
		.expected_trans_sig = be32_of((uint32_t)(r.expected >> 32)),
		.actual_trans_sig = be32_of((uint32_t)(r.actual >> 32)),
		.expected_ref_tag = be32_of((uint32_t)r.expected),
		.actual_ref_tag = be32_of((uint32_t)r.actual),
		.syndrome = be16_of(syndrome[e->kind]),
		.sig_type = e->transaction,
		.domain = e->side == SIG_MEMORY,
		.mkey = be32_of(key),
		.offset = be64_of(r.offset),
		.sop_drop_qpn = be32_of(qp->qpn),
		.wqe_counter = be16_of(block),
		.op_own = CQE_OP_SIG_ERR << 4,
	};

	if (unlikely(!cq_push(cq, (struct cqe64 *)&cqe, CQ_WAKE_SOLICITED)))
		qp_cannot_complete(qp);
}
