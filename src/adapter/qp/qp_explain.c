// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/qp/qp_explain.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wire/route.h"

#define HEAD_BYTES 160
#define BODY_BYTES 640

static const char *port_text(const struct adapter *a, uint32_t row, char text[SUBNET_PORT_TEXT])
{
	return subnet_port_text(wire_subnet(a->wire), row, text);
}

static const char *own_port(const struct adapter *a, char text[SUBNET_PORT_TEXT])
{
	return port_text(a, wire_port_row(a->wire), text);
}

/* Names what the program posted, from a packet of it. */
static const char *request_name(uint8_t opcode)
{
	const struct bth_props *p = bth_props_of(opcode);

	if (p->send)
		return p->imm ? "SEND_IMM" : p->ieth ? "SEND_INVAL" : "SEND";
	if (p->write)
		return p->imm ? "RDMA_WRITE_IMM" : "RDMA_WRITE";
	if (p->read && p->request)
		return "RDMA_READ";
	return bth_op_name(opcode);
}

/* Makes lines about different queue pairs differ, so that each is printed. */
static uint64_t subject_of(uint32_t qpn, uint32_t peer)
{
	return (uint64_t)qpn << 24 ^ peer;
}

static bool is_connected(const struct qp *qp)
{
	return qp->bth != BTH_UD && qp->bth != BTH_RAW && qp->attr.dest_qpn;
}

const char *qp_self_hint(const struct qp *qp)
{
	if (!is_connected(qp) || qp->attr.dest_qpn != qp->qpn ||
	    qp->path.dst_port != wire_port_row(qp->adapter->wire))
		return "";
	return "; this QP is connected to itself: if the peer is another program, that is in "
	       "another fabric (another user, --fabric, XDG_RUNTIME_DIR or container)";
}

static void sent_head(const struct qp *qp, const struct send_op *op, char head[HEAD_BYTES])
{
	char here[SUBNET_PORT_TEXT], there[SUBNET_PORT_TEXT];
	int n = snprintf(head, HEAD_BYTES, "%s QP 0x%x %s", own_port(qp->adapter, here), qp->qpn,
			 wqe_opcode_name(op->opcode));

	if (op->npkts)
		n += snprintf(head + n, HEAD_BYTES - (size_t)n, " psn 0x%x", op->first_psn);
	if (is_connected(qp))
		(void)snprintf(head + n, HEAD_BYTES - (size_t)n, " to %s QP 0x%x",
			       port_text(qp->adapter, qp->path.dst_port, there), qp->attr.dest_qpn);
}

void qp_explain_sent(struct qp *qp, const struct send_op *op, const char *fmt, ...)
{
	char head[HEAD_BYTES], body[BODY_BYTES];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(body, sizeof(body), fmt, ap);
	va_end(ap);
	sent_head(qp, op, head);
	explain_line((uintptr_t)fmt ^ subject_of(qp->qpn, qp->attr.dest_qpn), "%s: %s", head, body);
}

/* from: the row of the sender's port. */
static void received_head(const struct adapter *a, uint32_t qpn, const struct pkt *pkt,
			  uint32_t from, char head[HEAD_BYTES])
{
	char here[SUBNET_PORT_TEXT], there[SUBNET_PORT_TEXT];

	(void)snprintf(head, HEAD_BYTES, "%s QP 0x%x %s psn 0x%x from %s QP 0x%x",
		       own_port(a, here), qpn, request_name(pkt->opcode), pkt->psn,
		       port_text(a, from, there), pkt->sqpn);
}

void qp_explain_received(struct qp *qp, const struct pkt *pkt, const char *fmt, ...)
{
	char head[HEAD_BYTES], body[BODY_BYTES];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(body, sizeof(body), fmt, ap);
	va_end(ap);
	/* The responder's own path leads to the peer. */
	received_head(qp->adapter, qp->qpn, pkt,
		      pkt->path == &qp->path ? qp->path.dst_port : pkt->path->src_port, head);
	explain_line((uintptr_t)fmt ^ subject_of(qp->qpn, pkt->sqpn), "%s: %s", head, body);
}

void qp_explain_stray(struct adapter *a, const struct pkt *pkt, const char *why)
{
	char head[HEAD_BYTES];

	received_head(a, pkt->dqpn, pkt, pkt->path->src_port, head);
	explain_line(subject_of(pkt->dqpn, pkt->sqpn), "%s: dropped: %s", head, why);
}

void qp_explain_frame(const struct adapter *a, uint32_t number, const struct pkt *pkt,
		      const char *why)
{
	char here[SUBNET_PORT_TEXT], there[SUBNET_PORT_TEXT], queue[24] = "";

	if (number != IB_MULTICAST_QPN)
		(void)snprintf(queue, sizeof(queue), " QP 0x%x", number);
	explain_line((uintptr_t)why ^ subject_of(number, pkt->sqpn),
		     "%s%s frame of %u bytes from %s QP 0x%x: %s", own_port(a, here), queue,
		     pkt->payload_len, port_text(a, pkt->path->src_port, there), pkt->sqpn, why);
}

void qp_explain(struct qp *qp, const char *fmt, ...)
{
	char here[SUBNET_PORT_TEXT], body[BODY_BYTES];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(body, sizeof(body), fmt, ap);
	va_end(ap);
	explain_line((uintptr_t)fmt ^ subject_of(qp->qpn, 0), "%s QP 0x%x: %s",
		     own_port(qp->adapter, here), qp->qpn, body);
}

const char *qp_wc_name(uint8_t syndrome)
{
	static const char *const names[] = {
		[CQE_SYN_LOCAL_LENGTH] = "IBV_WC_LOC_LEN_ERR",
		[CQE_SYN_LOCAL_QP_OP] = "IBV_WC_LOC_QP_OP_ERR",
		[CQE_SYN_LOCAL_PROT] = "IBV_WC_LOC_PROT_ERR",
		[CQE_SYN_WR_FLUSH] = "IBV_WC_WR_FLUSH_ERR",
		[CQE_SYN_MW_BIND] = "IBV_WC_MW_BIND_ERR",
		[CQE_SYN_BAD_RESP] = "IBV_WC_BAD_RESP_ERR",
		[CQE_SYN_LOCAL_ACCESS] = "IBV_WC_LOC_ACCESS_ERR",
		[CQE_SYN_REM_INVAL_REQ] = "IBV_WC_REM_INV_REQ_ERR",
		[CQE_SYN_REM_ACCESS] = "IBV_WC_REM_ACCESS_ERR",
		[CQE_SYN_REM_OP] = "IBV_WC_REM_OP_ERR",
		[CQE_SYN_RETRY_EXC] = "IBV_WC_RETRY_EXC_ERR",
		[CQE_SYN_RNR_RETRY_EXC] = "IBV_WC_RNR_RETRY_EXC_ERR",
		[CQE_SYN_REM_ABORTED] = "IBV_WC_REM_ABORT_ERR",
	};
	const char *name = syndrome < array_size(names) ? names[syndrome] : NULL;

	return name ? name : "IBV_WC_GENERAL_ERR";
}

const char *qp_way_missing(const struct adapter *a, const struct path *path, uint32_t dqpn)
{
	static const char *const words[][2] = {
		{"port-down", "our port is down"},
		{"carrier", "our port is tied to something outside of the fabric, and nobody "
			    "carries its packets there; see softhca fabric tie"},
		{"peer-port-down", "the peer's port is down, or its address belongs to no port of "
				   "this fabric"},
		{"other-link-type",
		 "the address is that of a port of the other link type, and InfiniBand and "
		 "Ethernet (RoCE) do not reach each other; softhca devices says which device has "
		 "which, --link-types chooses"},
		{"lid-0", "the LID is 0: the peer's port is an Ethernet port (RoCE), or has no LID "
			  "yet"},
		{"link-down", "a link on the way to the peer's port is down"},
		{"no-route", "the tables of a switch do not lead to the peer's LID"},
		{"route-loop", "the tables of the switches lead in a circle"},
		{"partition-of-a-link", "a switch on the way lets no packet of the QP's partition "
					"pass: its port enforces partitions and its table does "
					"not have the P_Key"},
		{"mtu-of-a-link", "a link on the way takes only packets smaller than the path MTU"},
		{"not-to-smi", "QP 0 of a port takes SMPs that programs send by umad (libibumad), "
			       "and nothing from queue pairs"},
		{"not-to-gsi", "QP 1 of a port takes MADs alone, which are datagrams (UD) of 256 "
			       "bytes at most; or the fabric's daemon is busy or has gone"},
		{"no-owner-of-number",
		 "no process of the fabric has a QP of that number: the peer's process has ended, "
		 "the number is wrong, or the peer is in another fabric (another user, --fabric or "
		 "XDG_RUNTIME_DIR; see softhca fabric list on both sides)"},
		{"number-of-another-host", "the QP of that number is on another host: the address "
					   "(GID or LID) and the number do not belong together, "
					   "or the peer is in another fabric"},
		{"no-device-at-port", "the peer's process has not opened that device"},
		{"process-gone", "the peer's process has ended"},
	};
	const char *why = route_missing(a->wire, path, dqpn);

	if (route_walk(a->wire, path, dqpn) && strcmp(why, "process-gone") != 0)
		return NULL;
	for (size_t i = 0; i < array_size(words); i++)
		if (!strcmp(words[i][0], why))
			return words[i][1];
	return NULL;
}
