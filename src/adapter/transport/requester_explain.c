// SPDX-License-Identifier: BSD-2-Clause
/* What requester and completer say about requests that fail or are sent again (base/explain.h). */
#include "adapter/transport/requester_explain.h"

#include <string.h>

#include "adapter/qp/qp_explain.h"
#include "adapter/qp/qp_state.h"

#define PEERS_LINE "; the peer's own line says what was wrong"

static const char *length_reason(const struct qp *qp, const struct send_op *op)
{
	if (qp->bth == BTH_UD)
		explain_because("the message has %u bytes, and a datagram at most %u, the largest "
				"MTU (%u too many)",
				op->len, ib_mtu_bytes(IB_MTU_4096),
				op->len - ib_mtu_bytes(IB_MTU_4096));
	else if (qp->bth != BTH_RAW)
		explain_because("the message has %u bytes, and the port takes at most %llu "
				"(max_msg_sz)",
				op->len, (unsigned long long)IB_MAX_MSG_BYTES);
	return explain_reason("the frame is longer than the port's MTU");
}

/* The reason of silence: what keeps packets from the peer, or what the peer may not like. */
static const char *silence_reason(const struct qp *qp)
{
	const char *missing = qp_way_missing(qp->adapter, &qp->path, qp->attr.dest_qpn);

	explain_because("no answer after %u retries (retry_cnt), each after %llu us (timeout %u): "
			"%s%s",
			qp->attr.retry_cnt, (unsigned long long)(qp->ack_timeout_ns / 1000),
			qp->attr.timeout,
			missing ? missing
				: "packets arrive at the peer's process, which drops them or is "
				  "stopped: is its QP in RTR or RTS, and connected to this one "
				  "with the same PSN? "
				  "Its own line says why",
			qp_self_hint(qp));
	return explain_reason("");
}

static const char *not_ready_reason(const struct qp *qp)
{
	explain_because("the peer had no receive posted, also not after %u retries (rnr_retry)",
			qp->attr.rnr_retry);
	return explain_reason("");
}

static const char *failure_reason(const struct qp *qp, const struct send_op *op, uint8_t syndrome)
{
	switch (syndrome) {
	case CQE_SYN_LOCAL_LENGTH:
		return length_reason(qp, op);
	case CQE_SYN_LOCAL_QP_OP:
		return explain_reason("the work request is malformed, its operation is not one of "
				      "this type of QP, or a READ or an atomic has inline data");
	case CQE_SYN_LOCAL_PROT:
		return explain_reason("memory of the request cannot be accessed: it is not mapped "
				      "any more, or not with these rights");
	case CQE_SYN_MW_BIND:
		return explain_reason("the memory window or mkey cannot be changed so");
	case CQE_SYN_REM_INVAL_REQ:
		return "the peer answered NAK invalid request" PEERS_LINE;
	case CQE_SYN_REM_ACCESS:
		return "the peer answered NAK remote access" PEERS_LINE;
	case CQE_SYN_REM_OP:
		return "the peer answered NAK remote operational error" PEERS_LINE;
	case CQE_SYN_RETRY_EXC:
		return silence_reason(qp);
	case CQE_SYN_RNR_RETRY_EXC:
		return not_ready_reason(qp);
	case CQE_SYN_BAD_RESP:
		return "the answer does not belong to the request";
	default:
		return explain_reason("no more is known");
	}
}

void explain_failed(struct qp *qp, const struct send_op *op, uint8_t syndrome)
{
	if (syndrome != CQE_SYN_WR_FLUSH)
		qp_explain_sent(qp, op, "completes with %s: %s", qp_wc_name(syndrome),
				failure_reason(qp, op, syndrome));
}

static const char *retry_reason(const struct qp *qp, const char *why)
{
	const char *missing;

	if (!strcmp(why, "sequence-nak"))
		return "the peer answered NAK PSN sequence error: it has missed a packet";
	if (strcmp(why, "timeout") != 0)
		return "an answer was lost";
	missing = qp_way_missing(qp->adapter, &qp->path, qp->attr.dest_qpn);
	explain_because("no answer within %llu us (timeout %u)%s%s",
			(unsigned long long)(qp->ack_timeout_ns / 1000), qp->attr.timeout,
			missing ? ": " : "", missing ? missing : "");
	return explain_reason("");
}

void explain_retry(struct qp *qp, const struct send_op *op, const char *why)
{
	qp_explain_sent(qp, op, "sent again from psn 0x%x on: %s; retries left: %u",
			atomic_load(&qp->comp.acked_psn), retry_reason(qp, why),
			qp->comp.retry_left);
}

void explain_not_ready(struct qp *qp, const struct send_op *op, uint32_t us, bool forever)
{
	if (forever)
		qp_explain_sent(qp, op,
				"RNR NAK: the peer has no receive posted; sent again after %u us, "
				"without a limit (rnr_retry 7)",
				us);
	else if (qp->comp.rnr_left)
		qp_explain_sent(qp, op,
				"RNR NAK: the peer has no receive posted; sent again after %u us, "
				"retries left: %u",
				us, qp->comp.rnr_left - 1u);
}

void explain_foreign_psn(struct qp *qp, const struct pkt *pkt)
{
	if ((pkt->aeth & AETH_KIND_MASK) == AETH_NAK)
		qp_explain(qp,
			   "dropped: an answer %s for psn 0x%x of QP 0x%x, of which nothing is "
			   "outstanding; sent and not answered is psn 0x%x: is rq_psn of the peer "
			   "sq_psn of this QP?%s",
			   aeth_nak_name(pkt->aeth), pkt->psn, pkt->sqpn,
			   atomic_load(&qp->comp.acked_psn), qp_self_hint(qp));
}

void explain_answer_dropped(struct qp *qp, uint32_t sqpn, const char *why)
{
	if (strcmp(why, "pkey") != 0)
		qp_explain(qp,
			   "dropped: an answer of QP 0x%x: the QP is connected to QP 0x%x, or to "
			   "another port",
			   sqpn, qp->attr.dest_qpn);
	else
		qp_explain(qp, "dropped: an answer of QP 0x%x: P_Key mismatch, the QP has 0x%04x",
			   sqpn, qp->pkey);
}

void explain_lost(struct qp *qp, const struct send_op *op, const struct pkt *pkt)
{
	const char *missing = qp_way_missing(qp->adapter, pkt->path, pkt->dqpn);

	/* A reliable request comes again, and then another line says why. */
	if (!qp_is_reliable(qp))
		qp_explain_sent(qp, op, "lost on its way to QP 0x%x: %s", pkt->dqpn,
				missing ? missing : "its process takes no more packets now");
}

void explain_idle(struct qp *qp)
{
	if (send_ring_ready(qp, qp->req.next_block) > 0)
		qp_explain(qp,
			   "a send request waits: the QP is in state %s, and sends from RTS on "
			   "(ibv_modify_qp)",
			   qp_state_name(qp_state(qp)));
}

void explain_ring(struct qp *qp)
{
	qp_explain(qp, "the send queue cannot be read: its memory has gone, a request in it is "
		       "malformed, or more requests are posted than it has room for");
}
