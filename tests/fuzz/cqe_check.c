// SPDX-License-Identifier: BSD-2-Clause
/* See cqe_check.h. */
#include "cqe_check.h"

#include "adapter/queue/cq_internal.h"
#include "prm/wqe.h"

#define CE_ALWAYS 0x08u
/* Peers that a failed request waits for have left by then. */
#define END_ROUNDS 1000u

void cqe_check_begin(struct cqe_check *c, const struct fuzz_qp *q)
{
	*c = (struct cqe_check){.looked = q->cq->pi};
}

void cqe_check_overwritten(struct cqe_check *c)
{
	c->overwritten = true;
}

void cqe_check_posted(struct cqe_check *c, const struct fuzz_qp *q, uint8_t opcode,
		      uint8_t fm_ce_se, uint32_t blocks)
{
	uint32_t at = c->last++ % FUZZ_BLOCKS;
	uint16_t oldest = c->posted[c->first % FUZZ_BLOCKS].block;

	/* a ring without room: what has not been executed is written over */
	if (c->last - c->first > FUZZ_BLOCKS ||
	    (c->last - c->first > 1 && (uint16_t)(q->sq_pi + blocks - oldest) > FUZZ_BLOCKS))
		c->overwritten = true;
	c->posted[at].block = q->sq_pi;
	c->posted[at].opcode = opcode;
	c->posted[at].signaled = q->all_signaled || fm_ce_se & CE_ALWAYS;
}

void cqe_check_received(struct cqe_check *c)
{
	if ((uint16_t)(++c->receives - c->received) > FUZZ_RECVS)
		c->overwritten = true;
}

static bool syndrome_is_legal(uint8_t opcode, uint8_t syndrome)
{
	switch (syndrome) {
	case CQE_SYN_LOCAL_LENGTH:
	case CQE_SYN_LOCAL_QP_OP:
	case CQE_SYN_LOCAL_PROT:
	case CQE_SYN_WR_FLUSH:
		return true;
	case CQE_SYN_MW_BIND: /* of a receive: the sender's invalidation of a key has failed */
	case CQE_SYN_LOCAL_ACCESS:
	case CQE_SYN_REM_INVAL_REQ:
	case CQE_SYN_REM_OP:
	case CQE_SYN_REM_ABORTED:
		return true;
	case CQE_SYN_BAD_RESP:
	case CQE_SYN_REM_ACCESS:
	case CQE_SYN_RETRY_EXC:
	case CQE_SYN_RNR_RETRY_EXC:
		return opcode == CQE_OP_REQ_ERR;
	default:
		return false;
	}
}

/* The completion's request is the oldest but for those before it that asked for none. */
static void request_completed(struct cqe_check *c, const struct cqe64 *cqe, bool success)
{
	uint16_t block = be16_get(cqe->wqe_counter);

	if (c->overwritten)
		return;
	for (; c->first != c->last; c->first++) {
		uint32_t at = c->first % FUZZ_BLOCKS;

		if (c->posted[at].block == block)
			break;
		MUST(!c->posted[at].signaled);
	}
	MUST(c->first != c->last);
	MUST(be32_get(cqe->sop_drop_qpn) >> 24 == c->posted[c->first % FUZZ_BLOCKS].opcode);
	MUST(!success || c->posted[c->first % FUZZ_BLOCKS].signaled);
	c->first++;
}

static void receive_completed(struct cqe_check *c, const struct fuzz_qp *q, const struct cqe64 *cqe)
{
	uint16_t index = be16_get(cqe->wqe_counter);

	if (q->srq) {
		MUST(index < FUZZ_SRQ_WQES);
		return;
	}
	if (c->overwritten)
		return;
	MUST(c->received != c->receives);
	MUST(index % FUZZ_RECVS == c->received % FUZZ_RECVS);
	c->received++;
}

static void cqe_look(struct cqe_check *c, const struct fuzz_qp *q, uint32_t at)
{
	const struct cqe64 *cqe = (const void *)cq_entry(q->cq, at);
	const struct cqe64_err *err = (const void *)cqe;
	uint8_t opcode = cqe->op_own >> 4;

	MUST((cqe->op_own & 1) == cq_owner(q->cq, at));
	switch (opcode) {
	case CQE_OP_REQ:
	case CQE_OP_REQ_ERR:
		MUST((be32_get(cqe->sop_drop_qpn) & IB_QPN_MASK) == qp_number(q->qp));
		MUST(opcode == CQE_OP_REQ || syndrome_is_legal(opcode, err->syndrome));
		request_completed(c, cqe, opcode == CQE_OP_REQ);
		return;
	case CQE_OP_RESP_ERR:
		MUST(syndrome_is_legal(opcode, err->syndrome));
		receive_completed(c, q, cqe);
		return;
	case CQE_OP_RESP_WRITE_IMM:
	case CQE_OP_RESP_SEND:
	case CQE_OP_RESP_SEND_IMM:
	case CQE_OP_RESP_SEND_INV:
		receive_completed(c, q, cqe);
		return;
	default:
		/* The other opcodes are for what a queue of this target does not do. */
		MUST(opcode == CQE_OP_SIG_ERR);
	}
}

void cqe_check_look(struct cqe_check *c, const struct fuzz_qp *q)
{
	uint32_t now = q->cq->pi;

	if (q->cq->zip || now - c->looked > q->cq->attr.entries)
		c->overwritten = true;
	else
		for (uint32_t at = c->looked; at != now; at++)
			cqe_look(c, q, at);
	c->looked = now;
}

/* True if all that was posted has to have completed. */
static bool must_be_over(const struct cqe_check *c, const struct fuzz_qp *q)
{
	struct qp_attr attr;

	qp_query(q->qp, &attr);
	return attr.state == IB_QPS_ERR && !c->overwritten && !q->cq->overrun;
}

/* True if the queue pair takes receives from a ring of its own. */
static bool has_receives(const struct fuzz_qp *q)
{
	return !q->srq && q->type != IB_QPT_DCI && q->type != IB_QPT_XRC_INI;
}

/* True if no request is left that has to complete: one that asked for nothing may have succeeded. */
static bool is_quiet(const struct cqe_check *c)
{
	bool quiet = true;

	for (uint32_t i = c->first; i != c->last; i++)
		quiet &= !c->posted[i % FUZZ_BLOCKS].signaled;
	return quiet;
}

static bool is_over(const struct cqe_check *c, const struct fuzz_qp *q)
{
	return !must_be_over(c, q) ||
	       (is_quiet(c) && (!has_receives(q) || c->received == c->receives));
}

static bool all_over(struct cqe_check *c, const struct fuzz_device *d)
{
	bool over = true;

	for (unsigned i = 0; i < FUZZ_QPS; i++) {
		cqe_check_look(&c[i], &d->qp[i]);
		over &= is_over(&c[i], &d->qp[i]);
	}
	return over;
}

void cqe_check_end(struct cqe_check *c, struct fuzz_device *d)
{
	struct adapter *a = d->device.adapter[d->dev];
	const struct qp_attr error = {.state = IB_QPS_ERR};

	for (unsigned i = 0; i < FUZZ_QPS; i++) {
		struct fuzz_qp *q = &d->qp[i];

		(void)!qp_modify(q->qp, &error, IB_QP_STATE);
		/* a queue pair in reset has taken no bell */
		if (q->by_value)
			(void)qp_bell(a, FUZZ_REGION, qp_number(q->qp), q->sq_pi);
		adapter_doorbell(a, qp_number(q->qp), q->sq_pi);
		qp_recv_posted(q->qp);
	}
	for (unsigned round = 0; !all_over(c, d); round++) {
		uint64_t deadline = UINT64_MAX;

		MUST(round < END_ROUNDS);
		adapter_batch_end(a);
		(void)adapter_progress(a, &deadline);
	}
}
