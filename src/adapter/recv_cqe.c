// SPDX-License-Identifier: BSD-2-Clause
/* Completions of receives. */
#include "adapter/responder.h"

#include "wire/lane.h"

/* An XRC target has none of its own: there the shared receive queue has one. */
static uint32_t cqe_user_index(const struct qp *qp)
{
	return qp->bth == BTH_XRC && qp->resp.srq ? srq_uidx(qp->resp.srq) : qp->init.uidx;
}

/* Of an XRC target it is the CQ of the shared receive queue. */
static struct cq *recv_cq(const struct qp *qp)
{
	return qp->bth == BTH_XRC ? srq_cq(qp->resp.srq) : qp->init.recv_cq;
}

void recv_push_error(struct qp *qp, uint16_t index, uint8_t syndrome)
{
	struct cqe64_err cqe = {
		.srqn = be32_of(cqe_user_index(qp)),
		.syndrome = syndrome,
		.s_wqe_opcode_qpn = be32_of(qp->qpn),
		.wqe_counter = be16_of(index),
		.op_own = CQE_OP_RESP_ERR << 4,
	};
	bool flush = syndrome == CQE_SYN_WR_FLUSH;

	lane_count(qp->adapter->counters, flush ? HW_RESP_CQE_FLUSH_ERROR : HW_RESP_CQE_ERROR, 1);
	cq_push(recv_cq(qp), (const struct cqe64 *)&cqe, true);
}

static uint32_t service_or_header(const struct qp *qp, const struct path *path)
{
	return qp->adapter->port->ethernet ? path_header_type(path) : path->sl & 0xfu;
}

void recv_push(struct qp *qp, const struct pkt *pkt, uint32_t bytes)
{
	const struct bth_props *p = pkt_props(pkt);
	uint8_t op = p->write  ? CQE_OP_RESP_WRITE_IMM
		     : p->imm  ? CQE_OP_RESP_SEND_IMM
		     : p->ieth ? CQE_OP_RESP_SEND_INV
			       : CQE_OP_RESP_SEND;
	uint32_t src = qp->bth == BTH_UD ? pkt->sqpn : qp->attr.dest_qpn;
	struct cqe64 cqe = {
		.ml_path = qp->bth == BTH_UD ? (uint8_t)(pkt->path->dlid & 0x7f) : 0,
		.slid = be16_of(pkt->path->slid),
		.flags_rqpn = be32_of(src | service_or_header(qp, pkt->path) << CQE_FLAGS_SL_SHIFT |
				      (pkt->path->grh && qp->bth == BTH_UD ? CQE_FLAGS_GRH : 0)),
		.srqn_uidx = be32_of(cqe_user_index(qp)),
		.imm_inval_pkey = be32_of(p->imm || p->ieth ? pkt->imm : 0),
		.byte_cnt = be32_of(bytes),
		.sop_drop_qpn = be32_of(qp->qpn),
		.wqe_counter = be16_of(qp->resp.recv.index),
		.op_own = (uint8_t)(op << 4),
	};

	cq_push(recv_cq(qp), &cqe, pkt->solicited);
}
