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

uint32_t recv_service_or_header(const struct qp *qp, const struct path *path)
{
	return qp->adapter->port->ethernet ? path_header_type(path) : path->sl & 0xfu;
}

struct cqe64 recv_cqe(const struct recv_done *d)
{
	uint32_t ml_path = d->datagram ? d->path->dlid & 0x7f : 0;
	uint32_t peer = d->peer_qpn | d->service_or_header << CQE_FLAGS_SL_SHIFT |
			(d->path->grh && d->datagram ? CQE_FLAGS_GRH : 0);

	return (struct cqe64){
		.word[CQE_WORD_ADDRESS] = word_of(be32_of(ml_path << 16), be32_of(d->path->slid)),
		.word[CQE_WORD_PEER] = word_of(be32_of(peer), be32_of(0)),
		.word[CQE_WORD_INDEX] = word_of(be32_of(d->uidx), be32_of(d->imm)),
		.word[CQE_WORD_BYTES] = word_of(be32_of(0), be32_of(d->bytes)),
		.word[CQE_WORD_LAST] = cqe_last_word(d->qpn, d->index, (uint8_t)(d->op << 4)),
	};
}

void recv_push(struct qp *qp, const struct pkt *pkt, uint32_t bytes)
{
	const struct bth_props *p = pkt_props(pkt);
	const bool datagram = qp->bth == BTH_UD;
	struct cqe64 cqe = recv_cqe(&(struct recv_done){
		.op = p->write	? CQE_OP_RESP_WRITE_IMM
		      : p->imm	? CQE_OP_RESP_SEND_IMM
		      : p->ieth ? CQE_OP_RESP_SEND_INV
				: CQE_OP_RESP_SEND,
		.datagram = datagram,
		.path = pkt->path,
		.service_or_header = recv_service_or_header(qp, pkt->path),
		.peer_qpn = datagram ? pkt->sqpn : qp->attr.dest_qpn,
		.qpn = qp->qpn,
		.uidx = cqe_user_index(qp),
		.imm = p->imm || p->ieth ? pkt->imm : 0,
		.bytes = bytes,
		.index = qp->resp.recv.index,
	});

	cq_push(recv_cqe_recv_cq(qp), &cqe, pkt->solicited);
}
