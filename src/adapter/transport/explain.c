// SPDX-License-Identifier: BSD-2-Clause
/* What the roles of a queue pair say when something fails (base/explain.h). */
#include "adapter/transport/explain.h"

#include "adapter/memory/mkey.h"
#include "adapter/qp/qp_explain.h"
#include "adapter/qp/qp_state.h"
#include "adapter/transport/completer.h"
#include "adapter/transport/responder_state.h"
#include "base/clock.h"
#include "wire/fault.h"
#include "wire/tied_peers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- requester and completer ---- */

#define PEERS_LINE "; the peer's own line says what was wrong"

static const char *length_reason(const struct qp *qp, const struct send_op *op)
{
	uint32_t most = wire_datagram_max(qp->adapter->wire);

	if (qp->bth == BTH_UD)
		explain_because("the message has %u bytes, and a datagram at most %u, the %s MTU "
				"(%u too many)",
				op->len, most,
				most == ib_mtu_bytes(IB_MTU_4096) ? "largest" : "port's",
				op->len - most);
	else if (qp->bth != BTH_RAW)
		explain_because("the message has %u bytes, and the port takes at most %llu "
				"(max_msg_sz)",
				op->len, (unsigned long long)IB_MAX_MSG_BYTES);
	return explain_reason("the frame is longer than the port's MTU");
}

/* Why packets may be missing on their way: the reason why there is no way, or faults on demand; NULL:
 * neither. */
static const char *loss_reason(const struct qp *qp)
{
	const char *missing = qp_way_missing(qp->adapter, &qp->path, qp->attr.dest_qpn);

	if (missing || !fault_of_links(qp->adapter->wire))
		return missing;
	return "links lose or change packets on purpose (softhca fabric impair lists how)";
}

/* What its own machine knows of a peer outside of the fabric, of which nothing is heard here. */
#define OUTSIDE_PEER                                                                            \
	"If 'softhca fabric status' there counts nothing that comes in, the network does not "  \
	"lead there (UDP port 4791). in_foreign: its peers= leaves us out; in_checksum: "       \
	"something on the way rewrites packets (NAT); in_dropped: it has no such QP in RTR or " \
	"RTS"

static const char *unreachable_reason(uint32_t error)
{
	switch (error) {
	case ECONNREFUSED:
		return "its host says that nobody has UDP port 4791: no port is tied to that "
		       "address there";
	case EMSGSIZE:
		return "packets are too large for a link on the way; see 'softhca fabric status'";
	case EACCES:
		return "a filter on the way refuses the packets";
	default:
		return "the network says that there is no such host, or no way to it";
	}
}

#define OUTSIDE_BYTES 512u

/* When the peer has fallen silent, or somewhat later. */
static uint64_t silent_since(const struct qp *qp)
{
	uint64_t now = clock_ns(), timeout = qp->ack_timeout_ns;

	if (qp->comp.late.silent_since)
		return qp->comp.late.silent_since;
	return now > timeout ? now - timeout : 0;
}

/* Says why a peer on another machine is silent, by what its port's carrier has heard of that machine
 * since then. */
static const char *outside_reason(const struct qp *qp, uint64_t since, char text[OUTSIDE_BYTES])
{
	bool ipv4 = ib_gid_is_ipv4(&qp->path.dgid);
	char address[INET6_ADDRSTRLEN] = "";
	struct tied_peer peer;
	uint64_t heard;

	(void)inet_ntop(ipv4 ? AF_INET : AF_INET6, qp->path.dgid.raw + (ipv4 ? 12 : 0), address,
			sizeof(address));
	if (!wire_tied_peer(qp->adapter->wire, &qp->path.dgid, &peer)) {
		(void)snprintf(text, OUTSIDE_BYTES, "the peer is on another machine, %s. %s",
			       address, OUTSIDE_PEER);
		return text;
	}
	heard = atomic_load(&peer.heard_ns);
	if (atomic_load(&peer.unreachable_ns) >= since)
		(void)snprintf(text, OUTSIDE_BYTES, "the peer is on another machine, %s: %s",
			       address, unreachable_reason(atomic_load(&peer.unreachable_errno)));
	else if (atomic_load(&peer.checksum_ns) >= since)
		(void)snprintf(
			text, OUTSIDE_BYTES,
			"the peer is on another machine, %s, and packets from there have wrong "
			"checksums: something rewrites the packets (a NAT?)",
			address);
	else if (heard >= since)
		(void)snprintf(
			text, OUTSIDE_BYTES,
			"the peer is on another machine, %s, from which other packets come: the "
			"peer has no such queue pair (0x%x) any more, or not in RTR or RTS and "
			"connected to this one",
			address, qp->attr.dest_qpn);
	else
		(void)snprintf(
			text, OUTSIDE_BYTES,
			"the peer is on another machine, %s, and the peer's host did not answer: "
			"nothing has come from there %s. %s",
			address, heard ? "since" : "yet", OUTSIDE_PEER);
	return text;
}

/* The reason of silence: what keeps packets from the peer, or what the peer may not like. */
static const char *silence_reason(const struct qp *qp)
{
	const char *missing = loss_reason(qp);
	char outside[OUTSIDE_BYTES];

	if (!missing && wire_leads_out(qp->adapter->wire, &qp->path))
		missing = outside_reason(qp, silent_since(qp), outside);
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
	if (op->injected)
		return "softhca inject says so; it was not sent";
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
	missing = loss_reason(qp);
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

/* ---- responder ---- */

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

static void explain_no_receive(struct qp *qp, const struct pkt *pkt)
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
	if (qp->resp.injected) {
		qp_explain_received(qp, pkt,
				    "the receive completes with %s, because softhca inject "
				    "says so",
				    s == RESP_ERR_LENGTH ? "IBV_WC_LOC_LEN_ERR"
							 : "IBV_WC_LOC_PROT_ERR");
		return;
	}
	switch (s) {
	case RESP_ERR_PSN:
		explain_psn(qp, pkt);
		break;
	case RESP_ERR_RNR:
		explain_no_receive(qp, pkt);
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

static const char *reason_words(const char *why)
{
	static const char *const words[][2] = {
		{"not-a-target", "the QP is a DC initiator (DCI), which takes no requests"},
		{"access-key",
		 "its access key is not that of the target, and the initiator is told "
		 "so when its oldest request comes"},
		{"too-many-initiators",
		 "no place for another connection: living initiators have all that the target "
		 "has; this one is told to wait (RNR NAK) and sends again"},
		{"initiator-ended", "the initiator's process has ended"},
		{"old-connection", "the initiator has given up the connection that it belongs to"},
		{"target-goes", "the target is being destroyed"},
	};

	for (size_t i = 0; i < array_size(words); i++)
		if (!strcmp(words[i][0], why))
			return words[i][1];
	return why;
}

void dct_explain_drop(struct qp *target, const struct pkt *pkt, const char *why)
{
	if (!strcmp(why, "state"))
		qp_explain_received(target, pkt,
				    "dropped: the DC target is in state %s; it takes requests in "
				    "RTR",
				    qp_state_name(qp_state(target)));
	else if (!strcmp(why, "pkey"))
		qp_explain_received(target, pkt,
				    "dropped: P_Key mismatch: the packet has 0x%04x, the DC target "
				    "0x%04x (pkey_index %u)",
				    pkt->pkey, target->pkey, target->attr.pkey_index);
	else
		qp_explain_received(target, pkt, "dropped: %s", reason_words(why));
}

void dct_explain_key(struct qp *target, const struct pkt *pkt, uint64_t key)
{
	qp_explain_received(target, pkt,
			    "NAK remote access: the request has the access key 0x%llx, the DC "
			    "target 0x%llx (dc_access_key of mlx5dv_create_qp, remote_dc_key of "
			    "mlx5dv_wr_set_dc_addr)",
			    (unsigned long long)pkt->dc->key, (unsigned long long)key);
}

#define NAMES_BYTES 320

/* Attributes as programs name them; each stands at the place of its bit. */
static const char *const attribute_names[] = {
	"IBV_QP_STATE",
	"IBV_QP_CUR_STATE",
	"IBV_QP_EN_SQD_ASYNC_NOTIFY",
	"IBV_QP_ACCESS_FLAGS",
	"IBV_QP_PKEY_INDEX",
	"IBV_QP_PORT",
	"IBV_QP_QKEY",
	"IBV_QP_AV",
	"IBV_QP_PATH_MTU",
	"IBV_QP_TIMEOUT",
	"IBV_QP_RETRY_CNT",
	"IBV_QP_RNR_RETRY",
	"IBV_QP_RQ_PSN",
	"IBV_QP_MAX_QP_RD_ATOMIC",
	"IBV_QP_ALT_PATH",
	"IBV_QP_MIN_RNR_TIMER",
	"IBV_QP_SQ_PSN",
	"IBV_QP_MAX_DEST_RD_ATOMIC",
	"IBV_QP_PATH_MIG_STATE",
	"IBV_QP_CAP",
	"IBV_QP_DEST_QPN",
};

static const char *attribute_names_of(uint32_t mask, char text[NAMES_BYTES])
{
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < array_size(attribute_names); i++)
		if (mask >> i & 1 && n < NAMES_BYTES)
			n += (size_t)snprintf(text + n, NAMES_BYTES - n, "%s%s", n ? "|" : "",
					      attribute_names[i]);
	if (mask >> array_size(attribute_names) && n < NAMES_BYTES)
		(void)snprintf(text + n, NAMES_BYTES - n, "%sothers", n ? "|" : "");
	return text;
}

/* Names the states that a modification can reach from this one. */
static const char *next_states(const struct qp *qp, enum ib_qp_state cur, char text[NAMES_BYTES])
{
	struct qp_rule rule;
	size_t n = 0;

	text[0] = '\0';
	for (enum ib_qp_state s = IB_QPS_RESET; s < IB_QPS_COUNT; s++)
		if (qp_transition_rule(qp->create.type, cur, s, &rule))
			n += (size_t)snprintf(text + n, NAMES_BYTES - n, "%s%s", n ? ", " : "",
					      qp_state_name(s));
	return n ? text : "none";
}

void explain_transition(const struct qp *qp, enum ib_qp_state cur, enum ib_qp_state next,
			uint32_t mask)
{
	const char *from = qp_state_name(cur), *to = qp_state_name(next);
	char names[NAMES_BYTES];
	struct qp_rule rule;

	if (!qp_transition_rule(qp->create.type, cur, next, &rule))
		explain_because("QP 0x%x cannot go from state %s to %s; from %s it can go to "
				"%s",
				qp->qpn, from, to, from, next_states(qp, cur, names));
	else if (rule.required & ~mask)
		explain_because("QP 0x%x, from state %s to %s: attr_mask lacks %s", qp->qpn, from,
				to, attribute_names_of(rule.required & ~mask, names));
	else
		explain_because("QP 0x%x, from state %s to %s: attr_mask has %s, which cannot be "
				"set here",
				qp->qpn, from, to,
				attribute_names_of(mask & ~(rule.required | rule.optional), names));
}

void explain_cur_state(const struct qp *qp, enum ib_qp_state cur, enum ib_qp_state said)
{
	explain_because("QP 0x%x: cur_qp_state is %s, and the QP is in state %s", qp->qpn,
			qp_state_name(said), qp_state_name(cur));
}
