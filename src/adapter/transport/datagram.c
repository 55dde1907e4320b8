// SPDX-License-Identifier: BSD-2-Clause
/* The receiving side of datagrams (IBTA 9.8.3). */
#include "adapter/core/violation.h"
#include "adapter/qp/qp_explain.h"
#include "adapter/signed/transfer.h"
#include "adapter/transport/responder.h"

#include "base/trace.h"
#include "wire/counter_shard.h"
#include "usermem/usermem.h"
#include "wire/payload.h"
#include "wire/roce.h"

static void explain_short(struct qp *qp, const struct pkt *pkt)
{
	uint64_t room = recv_capacity(&qp->resp.recv);

	qp_explain_received(
		qp, pkt,
		"the receive is too short: it has room for %llu bytes, and the datagram "
		"takes %u with the %u in front of the message that are for the GRH, "
		"%llu too many; the datagram is dropped, and the receive stays",
		(unsigned long long)room, IB_GRH_BYTES + pkt->payload_len, IB_GRH_BYTES,
		(unsigned long long)(IB_GRH_BYTES + pkt->payload_len - room));
}

/*
 * A key refuses the memory of the receive, or the memory no longer exists.  Only our own consumer
 * hears of it, because a datagram has no answer.
 */
static void refuse_place(struct qp *qp, const struct pkt *pkt)
{
	if (explaining())
		qp_explain_received(qp, pkt, "the receive completes with IBV_WC_LOC_PROT_ERR: %s",
				    explain_reason("its memory cannot be accessed"));
	recv_push_error(qp, qp->resp.recv.index, CQE_SYN_LOCAL_PROT);
	qp->resp.have_recv = false;
	qp_fail(qp, cqe_syndrome_name(CQE_SYN_LOCAL_PROT));
}

void datagram_receive(struct qp *qp, const struct pkt *pkt)
{
	struct responder *r = &qp->resp;
	uint8_t grh[IB_GRH_BYTES];
	struct run run = {grh, sizeof(grh)};
	const struct pkt head = {.payload_len = sizeof(grh), .nruns = 1, .runs = &run};
	enum mkey_verdict v;

	if (pkt->qkey != qp->attr.qkey) {
		trace(packet, dropped, qp->qpn, bth_op_name(pkt->opcode), pkt->psn, pkt->sqpn,
		      "qkey");
		if (explaining())
			qp_explain_received(qp, pkt,
					    "dropped: Q_Key mismatch: the datagram has 0x%x, the "
					    "QP 0x%x",
					    pkt->qkey, qp->attr.qkey);
		violation_count(qp->adapter, pkt, PORT_QKEY_VIOLATIONS);
		return;
	}
	if (recv_take(qp) != RECV_OK) {
		trace(packet, dropped, qp->qpn, bth_op_name(pkt->opcode), pkt->psn, pkt->sqpn,
		      "no-receive");
		if (explaining())
			qp_explain_received(qp, pkt, "dropped: no receive is posted");
		shard_count(qp->adapter->counters, HW_OUT_OF_BUFFER, 1);
		return;
	}
	/* A fault of class D: the next datagram gets the receive (IBTA 9.9.6.3). */
	if (IB_GRH_BYTES + pkt->payload_len > recv_capacity(&r->recv)) {
		trace(packet, dropped, qp->qpn, bth_op_name(pkt->opcode), pkt->psn, pkt->sqpn,
		      "receive-too-short");
		if (explaining())
			explain_short(qp, pkt);
		return;
	}
	if (pkt->path->grh) {
		roce_global_header(pkt, grh);
		if (recv_place(qp, 0, &head) != MKEY_OK) {
			refuse_place(qp, pkt);
			return;
		}
	}
	v = recv_place(qp, sizeof(grh), pkt);
	if (unlikely(v == MKEY_GONE && payload_gone(pkt))) {
		/* The error is the sender's and not ours, so the next datagram gets the receive. */
		if (pkt->payload_gone)
			*pkt->payload_gone = true;
		return;
	}
	if (v != MKEY_OK) {
		refuse_place(qp, pkt);
		return;
	}
	recv_push(qp, pkt, IB_GRH_BYTES + pkt->payload_len);
	r->have_recv = false;
}
