// SPDX-License-Identifier: BSD-2-Clause
/* See send_cqe.h. */
#include "adapter/qp/send_cqe.h"

#include "adapter/qp/qp_explain.h"
#include "adapter/qp/qp_state.h"
#include "adapter/qp/send_wqe.h"
#include "base/trace.h"
#include "prm/vendor_err.h"
#include "wire/counter_shard.h"

void send_cqe_success(struct qp *qp, const struct send_op *op)
{
	const struct wqe_props *p = wqe_props(op->opcode);
	struct cqe64 cqe = {
		.word[CQE_WORD_INDEX] = word_of(be32_of(qp->create.uidx), be32_of(0)),
		.word[CQE_WORD_BYTES] =
			word_of(be32_of(0), be32_of(p->read || p->atomic ? op->len : 0)),
		.word[CQE_WORD_LAST] = cqe_last_word((uint32_t)op->opcode << 24 | qp->qpn,
						     op->block, CQE_OP_REQ << 4),
	};

	if (unlikely(!cq_push(qp->create.send_cq, &cqe,
			      op->ce == WQE_CTRL_CE_EVENT ? CQ_WAKE_ALWAYS : CQ_WAKE_ARMED)))
		qp_cannot_complete(qp);
}

static void note_flush(struct qp *qp, const struct send_op *op)
{
	trace(send, flush, qp->qpn, op->block, wqe_opcode_name(op->opcode));
	if (explaining())
		qp_explain_sent(qp, op, "flushed (IBV_WC_WR_FLUSH_ERR): the QP is in state %s (%s)",
				qp_state_name(qp_state(qp)), qp_failed_by(qp));
}

void send_cqe_error(struct qp *qp, const struct send_op *op)
{
	struct cqe64_err cqe = {
		.srqn = be32_of(qp->create.uidx),
		.vendor_err_synd = op->vendor_err ? op->vendor_err
						  : vendor_err_of(CQE_OP_REQ_ERR, op->syndrome),
		.syndrome = op->syndrome,
		.s_wqe_opcode_qpn = be32_of((uint32_t)op->opcode << 24 | qp->qpn),
		.wqe_counter = be16_of(op->block),
		.op_own = CQE_OP_REQ_ERR << 4 | CQE_SOLICITED,
	};
	bool flush = op->syndrome == CQE_SYN_WR_FLUSH;
	bool told = atomic_exchange(&qp->comp.error_told, true);

	/* A request that did not fail by itself may keep silent if the program knows of the error. */
	if (told && flush && op->ce == WQE_CTRL_CE_FIRST_ERROR) {
		trace(wqe, done, qp->qpn, op->block, cqe_syndrome_name(op->syndrome));
		return;
	}
	/* Nothing has failed before: the program moved the queue to the error state. */
	if (!told && flush)
		cqe.vendor_err_synd = VENDOR_ERR_FIRST_FLUSH;
	if (flush)
		note_flush(qp, op);
	else
		trace(send, error, qp->qpn, qp->attr.dest_qpn, op->block,
		      wqe_opcode_name(op->opcode), cqe_syndrome_name(op->syndrome));
	/* The first flush counts as an error if nothing else was one. */
	shard_count(qp->adapter->counters,
		    flush && told ? HW_REQ_CQE_FLUSH_ERROR : HW_REQ_CQE_ERROR, 1);
	if (unlikely(!cq_push(qp->create.send_cq, (struct cqe64 *)&cqe,
			      op->ce == WQE_CTRL_CE_EVENT ? CQ_WAKE_ALWAYS : CQ_WAKE_SOLICITED)))
		qp_cannot_complete(qp);
}

void send_cqe_flush(struct qp *qp, const struct send_op *op)
{
	struct send_op flushed = {.block = op->block,
				  .opcode = op->opcode,
				  .ce = op->ce,
				  .syndrome = CQE_SYN_WR_FLUSH};

	send_cqe_error(qp, &flushed);
}
