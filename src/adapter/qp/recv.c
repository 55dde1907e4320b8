// SPDX-License-Identifier: BSD-2-Clause
/* Receives of a queue pair, see recv.h. */
#include "adapter/qp/recv.h"

#include "adapter/qp/path.h"
#include "adapter/qp/qp_explain.h"
#include "adapter/qp/qp_state.h"
#include "adapter/queue/recvq.h"
#include "base/trace.h"
#include "wire/short_send.h"

/* ---- completions of receives ---- */

/* The user index of a completion: an XRC target has none, so it is that of the shared receive
 * queue. */
static uint32_t cqe_user_index(const struct qp *qp)
{
	return qp->bth == BTH_XRC && qp->resp.srq ? srq_uidx(qp->resp.srq) : qp->create.uidx;
}

/* The completion queue of a receive; for an XRC target it is that of the shared receive queue. */
static struct cq *recv_cqe_recv_cq(const struct qp *qp)
{
	return qp->bth == BTH_XRC ? srq_cq(qp->resp.srq) : qp->create.recv_cq;
}

static void note_flush(struct qp *qp, uint16_t index)
{
	trace(recv, flush, qp->qpn, index);
	if (explaining())
		qp_explain(qp,
			   "a receive is flushed (IBV_WC_WR_FLUSH_ERR): the QP is in state %s (%s)",
			   qp_state_name(qp_state(qp)), qp_failed_by(qp));
}

void recv_push_error(struct qp *qp, uint16_t index, uint8_t syndrome)
{
	if (syndrome == CQE_SYN_WR_FLUSH)
		note_flush(qp, index);
	else
		trace(recv, error, qp->qpn, index, cqe_syndrome_name(syndrome));
	if (unlikely(!recv_error_push(qp->adapter, recv_cqe_recv_cq(qp), cqe_user_index(qp),
				      qp->qpn, index, syndrome)))
		qp_cannot_complete(qp);
}

static uint8_t recv_cqe_op(const struct bth_props *p)
{
	if (p->write)
		return CQE_OP_RESP_WRITE_IMM;
	if (p->imm)
		return CQE_OP_RESP_SEND_IMM;
	return p->ieth ? CQE_OP_RESP_SEND_INV : CQE_OP_RESP_SEND;
}

/* The sender and the service level; on Ethernet the kind of header. */
static uint32_t recv_cqe_peer(const struct qp *qp, const struct pkt *pkt)
{
	const bool datagram = qp->bth == BTH_UD;
	uint32_t service =
		qp->adapter->port->ethernet ? path_header_type(pkt->path) : pkt->path->sl & 0xfu;

	return (datagram ? pkt->sqpn : qp->attr.dest_qpn) | service << CQE_FLAGS_SL_SHIFT |
	       (pkt->path->grh && datagram ? CQE_FLAGS_GRH : 0);
}

/* What a completion says about the message. */
struct recv_cqe {
	const struct bth_props *props;
	uint16_t slid;
	uint32_t ml_path;
	uint32_t peer; /* and the service level */
	uint32_t imm;  /* or the key that was invalidated */
	uint32_t bytes;
};

/* Stores word by word, because the code that copies the CQE next reads words, and would wait for
 * wider stores that have just been made. */
static inline void recv_cqe_fill(struct cqe64 *out, const struct qp *qp, const struct recv_cqe *c,
				 uint16_t index)
{
	uint32_t imm = c->props->imm || c->props->ieth ? c->imm : 0;

	for (unsigned i = 0; i < array_size(out->word); i++)
		out->word[i] = 0;
	out->word[CQE_WORD_ADDRESS] = word_of(be32_of(c->ml_path << 16), be32_of(c->slid));
	out->word[CQE_WORD_PEER] = word_of(be32_of(c->peer), be32_of(0));
	out->word[CQE_WORD_INDEX] = word_of(be32_of(cqe_user_index(qp)), be32_of(imm));
	out->word[CQE_WORD_BYTES] = word_of(be32_of(0), be32_of(c->bytes));
	out->word[CQE_WORD_LAST] =
		cqe_last_word(qp->qpn, index, (uint8_t)(recv_cqe_op(c->props) << 4));
}

/* Notes a receive, because a program that has sent something may wait for it
 * (adapter_has_received). */
static void recv_note(struct adapter *a)
{
	if (!atomic_load_explicit(&a->received, memory_order_relaxed))
		atomic_store_explicit(&a->received, true, memory_order_relaxed);
}

void recv_push(struct qp *qp, const struct pkt *pkt, uint32_t bytes)
{
	const struct recv_cqe c = {
		.props = pkt_props(pkt),
		.slid = pkt->path->slid,
		.ml_path = qp->bth == BTH_UD ? pkt->path->dlid & 0x7f : 0,
		.peer = recv_cqe_peer(qp, pkt),
		.imm = pkt->imm,
		.bytes = bytes,
	};
	struct cqe64 cqe;

	recv_cqe_fill(&cqe, qp, &c, qp->resp.recv.index);
	if (unlikely(!cq_push(recv_cqe_recv_cq(qp), &cqe,
			      pkt->solicited ? CQ_WAKE_SOLICITED : CQ_WAKE_ARMED)))
		qp_cannot_complete(qp);
	recv_note(qp->adapter);
}

uint32_t recv_push_short_sends(struct qp *qp, const struct short_send *b, const uint16_t *index,
			       uint32_t n)
{
	const struct recv_cqe c = {
		.props = bth_props_of(b->opcode),
		.slid = b->slid,
		.peer = qp->attr.dest_qpn | (b->sl & 0xfu) << CQE_FLAGS_SL_SHIFT,
		.imm = b->imm,
		.bytes = b->payload_len,
	};
	struct cq *cq = recv_cqe_recv_cq(qp);
	uint32_t appended;
	struct cqe64 cqe;

	recv_cqe_fill(&cqe, qp, &c, 0);
	recv_note(qp->adapter);
	if (likely(cq_push_like(cq, &cqe, index, n, b->solicited, &appended)))
		return n;
	qp_cannot_complete(qp);
	return min_u32(n, appended + 1);
}

void recv_begin(struct qp *qp)
{
	if (qp->resp.srq)
		srq_begin(qp->resp.srq);
}

void recv_end(struct qp *qp)
{
	if (qp->resp.srq)
		srq_end(qp->resp.srq);
}

enum recv_verdict recv_take_next(struct qp *qp)
{
	struct responder *r = &qp->resp;
	enum recv_verdict v;

	/* An unreliable message that never ended has left its receive for this one (IBTA
	 * 9.8.2.2). */
	if (unlikely(r->have_recv))
		return RECV_OK;
	v = r->srq ? srq_take_next(r->srq, &r->recv) : recv_ring_take(&qp->rq, &r->recv);
	if (v == RECV_OK) {
		r->have_recv = true;
		r->recv_srqn = r->srqn;
		if (r->srq)
			trace(srq, taken, qp->qpn, srq_number(r->srq), r->recv.count);
	}
	return v;
}

enum recv_verdict recv_take(struct qp *qp)
{
	enum recv_verdict v;

	recv_begin(qp);
	v = recv_take_next(qp);
	recv_end(qp);
	return v;
}
