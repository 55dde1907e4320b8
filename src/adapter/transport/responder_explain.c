// SPDX-License-Identifier: BSD-2-Clause
/* What the responder says about packets that it refuses or drops (base/explain.h). */
#include "adapter/transport/responder_state.h"

#include "adapter/memory/mkey.h"
#include "adapter/qp/qp_explain.h"
#include "adapter/qp/qp_state.h"
#include "adapter/transport/completer.h"

/* Explains a right that the QP does not have, as programs name it. */
void resp_explain_right(const struct qp *qp, uint32_t right)
{
	char lacks[64], has[240];

	explain_because("the QP was not given %s (ibv_modify_qp, qp_access_flags); it has %s",
			access_text(right, lacks, sizeof(lacks)),
			access_text(qp->attr.access, has, sizeof(has)));
}

static const char *depth_reason(const struct qp *qp)
{
	if (!qp->attr.max_dest_rd_atomic)
		explain_because("the QP takes no RDMA_READ and no atomic operation: its "
				"max_dest_rd_atomic is 0");
	else
		explain_because("%u reads and atomics are under way, which is max_dest_rd_atomic "
				"of this QP: max_rd_atomic of the peer is larger",
				qp->resp.rd_count - qp->resp.rd_once);
	return explain_reason("");
}

static void explain_length(struct qp *qp, const struct pkt *pkt)
{
	const struct responder *r = &qp->resp;
	uint64_t room = min_u64(recv_capacity(&r->recv), IB_MAX_MSG_BYTES);
	uint64_t come = r->off + pkt->payload_len;

	qp_explain_received(
		qp, pkt,
		"the receive is too short: it has room for %llu bytes, %llu have come so far, %llu "
		"too many; it completes with IBV_WC_LOC_LEN_ERR%s",
		(unsigned long long)room, (unsigned long long)come,
		(unsigned long long)(come - room),
		qp_is_reliable(qp) ? ", and the peer's request with IBV_WC_REM_INV_REQ_ERR" : "");
}

static void explain_psn(struct qp *qp, const struct pkt *pkt)
{
	const struct responder *r = &qp->resp;

	/* Packets behind a refused one will come again, so they need no line. */
	if (r->nak_sent && r->nak_psn == r->epsn)
		return;
	qp_explain_received(qp, pkt,
			    "NAK PSN sequence error: psn 0x%x is expected, so %d packets are "
			    "missing: they were lost, or sq_psn of the peer is not rq_psn of "
			    "this QP%s",
			    r->epsn, psn_diff(pkt->psn, r->epsn), qp_self_hint(qp));
}

static void explain_not_ready(struct qp *qp, const struct pkt *pkt)
{
	const char *queue = qp->resp.srq ? "shared receive queue" : "receive queue";

	if (qp_is_reliable(qp))
		qp_explain_received(qp, pkt,
				    "RNR NAK: no receive is posted in the %s; the peer waits for "
				    "%u us (min_rnr_timer %u) before it sends again",
				    queue, rnr_timer_us(qp->attr.min_rnr_timer),
				    qp->attr.min_rnr_timer);
	else
		qp_explain_received(qp, pkt, "dropped: no receive is posted in the %s", queue);
}

static const char *invalid_reason(const struct qp *qp, const struct pkt *pkt)
{
	uint32_t bytes = pkt_props(pkt)->masked && pkt->dma_len ? pkt->dma_len : sizeof(uint64_t);

	if (pkt_props(pkt)->atomic && pkt->va % bytes)
		explain_because(
			"the address 0x%llx of the atomic operation is not a multiple of %u",
			(unsigned long long)pkt->va, bytes);
	if (qp->bth == BTH_XRC && !qp->resp.srq)
		explain_because("no XRC shared receive queue of this domain has the number 0x%x",
				pkt->srqn);
	return explain_reason("the request is malformed, or not in the order of its message");
}

void resp_explain(struct qp *qp, const struct pkt *pkt, enum resp_state s)
{
	switch (s) {
	case RESP_ERR_PSN:
		explain_psn(qp, pkt);
		break;
	case RESP_ERR_RNR:
		explain_not_ready(qp, pkt);
		break;
	case RESP_ERR_INVALID:
		qp_explain_received(qp, pkt, "NAK invalid request: %s", invalid_reason(qp, pkt));
		break;
	case RESP_ERR_RD_DEPTH:
		qp_explain_received(qp, pkt, "NAK invalid request: %s", depth_reason(qp));
		break;
	case RESP_ERR_REMOTE_ACCESS:
		qp_explain_received(qp, pkt, "%s: %s",
				    qp_is_reliable(qp) ? "NAK remote access" : "dropped",
				    explain_reason("its memory cannot be accessed"));
		break;
	case RESP_ERR_LENGTH:
		explain_length(qp, pkt);
		break;
	case RESP_ERR_LOCAL_PROT:
		qp_explain_received(qp, pkt, "the receive completes with IBV_WC_LOC_PROT_ERR: %s",
				    explain_reason("its memory cannot be accessed"));
		break;
	case RESP_ERR_SENDER:
		qp_explain_received(qp, pkt, "the sender's memory cannot be read any more");
		break;
	case RESP_ERR_RING:
		qp_explain_received(qp, pkt,
				    "the receive queue cannot be read, or its doorbell record "
				    "counts more receives than it has");
		break;
	case RESP_ERR_INVALIDATE:
		qp_explain_received(qp, pkt,
				    "rkey 0x%x may not be invalidated by a peer: it is no memory "
				    "window of type 2 bound by this QP, and no mkey that allows "
				    "it; the peer is not told, and runs out of retries",
				    pkt->imm);
		break;
	default:
		break;
	}
}

void resp_explain_drop(struct qp *qp, const struct pkt *pkt, const char *why)
{
	qp_explain_received(qp, pkt, "dropped: %s", why);
}

void resp_explain_state(struct qp *qp, const struct pkt *pkt)
{
	if (qp->create.type == IB_QPT_XRC_INI)
		resp_explain_drop(qp, pkt, "an XRC initiator takes no requests");
	else
		qp_explain_received(qp, pkt,
				    "dropped: the QP is in state %s; it takes requests from RTR on",
				    qp_state_name(qp_state(qp)));
}

void resp_explain_peer(struct qp *qp, const struct pkt *pkt)
{
	if (pkt->sqpn != qp->attr.dest_qpn)
		qp_explain_received(qp, pkt,
				    "dropped: the QP is connected to QP 0x%x (dest_qp_num), which "
				    "is another one",
				    qp->attr.dest_qpn);
	else
		resp_explain_drop(qp, pkt,
				  "it comes from another port than the one that the QP's address "
				  "vector (ah_attr) names");
}

void resp_explain_pkey(struct qp *qp, const struct pkt *pkt)
{
	qp_explain_received(qp, pkt,
			    "dropped: P_Key mismatch: the packet has 0x%04x, the QP 0x%04x "
			    "(pkey_index %u)",
			    pkt->pkey, qp->pkey, qp->attr.pkey_index);
}

void resp_explain_duplicate(struct qp *qp, const struct pkt *pkt)
{
	const struct responder *r = &qp->resp;

	qp_explain_received(qp, pkt,
			    "psn 0x%x is expected, so this one, %d before it, counts as a "
			    "repetition and is %s, not executed: it was sent again, or sq_psn of "
			    "the peer is not rq_psn of this QP%s",
			    r->epsn, -psn_diff(pkt->psn, r->epsn),
			    pkt_props(pkt)->read || pkt_props(pkt)->atomic ? "answered from memory"
									   : "acknowledged",
			    qp_self_hint(qp));
}
