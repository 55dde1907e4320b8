// SPDX-License-Identifier: BSD-2-Clause
/* Completions of receives. */
#include "adapter/qp/path.h"
#include "adapter/qp/recv.h"
#include "adapter/queue/recv_error.h"
#include "base/trace.h"

/* An XRC target has no user index of its own: the shared receive queue has it. */
static uint32_t cqe_user_index(const struct qp *qp)
{
	return qp->bth == BTH_XRC && qp->resp.srq ? srq_uidx(qp->resp.srq) : qp->create.uidx;
}

/* An XRC target completes to the CQ of the shared receive queue. */
static struct cq *recv_cqe_recv_cq(const struct qp *qp)
{
	return qp->bth == BTH_XRC ? srq_cq(qp->resp.srq) : qp->create.recv_cq;
}

void recv_push_error(struct qp *qp, uint16_t index, uint8_t syndrome)
{
	if (syndrome == CQE_SYN_WR_FLUSH)
		trace(recv, flush, qp->qpn, index);
	else
		trace(recv, error, qp->qpn, index, cqe_syndrome_name(syndrome));
	recv_error_push(qp->adapter, recv_cqe_recv_cq(qp), cqe_user_index(qp), qp->qpn, index,
			syndrome);
}

static uint8_t recv_cqe_op(const struct bth_props *p)
{
	if (p->write)
		return CQE_OP_RESP_WRITE_IMM;
	if (p->imm)
		return CQE_OP_RESP_SEND_IMM;
	return p->ieth ? CQE_OP_RESP_SEND_INV : CQE_OP_RESP_SEND;
}

/* The sender, and the service level; on Ethernet the kind of header. */
static uint32_t recv_cqe_peer(const struct qp *qp, const struct pkt *pkt)
{
	const bool datagram = qp->bth == BTH_UD;
	uint32_t service =
		qp->adapter->port->ethernet ? path_header_type(pkt->path) : pkt->path->sl & 0xfu;

	return (datagram ? pkt->sqpn : qp->attr.dest_qpn) | service << CQE_FLAGS_SL_SHIFT |
	       (pkt->path->grh && datagram ? CQE_FLAGS_GRH : 0);
}

void recv_push(struct qp *qp, const struct pkt *pkt, uint32_t bytes)
{
	const struct bth_props *p = pkt_props(pkt);
	uint32_t ml_path = qp->bth == BTH_UD ? pkt->path->dlid & 0x7f : 0;
	uint32_t imm = p->imm || p->ieth ? pkt->imm : 0; /* or the key invalidated */
	struct cqe64 cqe = {
		.word[CQE_WORD_ADDRESS] = word_of(be32_of(ml_path << 16), be32_of(pkt->path->slid)),
		.word[CQE_WORD_PEER] = word_of(be32_of(recv_cqe_peer(qp, pkt)), be32_of(0)),
		.word[CQE_WORD_INDEX] = word_of(be32_of(cqe_user_index(qp)), be32_of(imm)),
		.word[CQE_WORD_BYTES] = word_of(be32_of(0), be32_of(bytes)),
		.word[CQE_WORD_LAST] =
			cqe_last_word(qp->qpn, qp->resp.recv.index, (uint8_t)(recv_cqe_op(p) << 4)),
	};

	cq_push(recv_cqe_recv_cq(qp), &cqe, pkt->solicited);
}
