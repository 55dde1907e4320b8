/* SPDX-License-Identifier: BSD-2-Clause */
/* What the responder's files share: its states, and the steps that more than one of them uses. */
#pragma once

#include "adapter/transport/responder.h"
#include "base/explain.h"
#include "base/trace.h"
#include "wire/counter_shard.h"

enum resp_state {
	RESP_CHECK_PSN,
	RESP_CHECK_SEQUENCE,
	RESP_CHECK_RIGHT,  /* whether the QP allows the operation at all */
	RESP_CHECK_RANGE,  /* whether the key allows the whole of a write */
	RESP_CHECK_LENGTH, /* whether the packets of a write make up its length */
	RESP_TAKE_RECV,
	RESP_BEGIN, /* a message begins: no later state puts the packet back */
	RESP_EXECUTE,
	RESP_READ,
	RESP_ATOMIC,
	RESP_COMPLETE,
	RESP_ACKNOWLEDGE,
	RESP_DUPLICATE,
	RESP_WITHDRAWN,	 /* the sender has given the request up, so it counts as lost */
	RESP_UNREADABLE, /* we may no longer read the payload, so it comes again by another way */
	/* refusals */
	RESP_ERR_PSN,		/* out of sequence: NAK once, drop */
	RESP_ERR_RNR,		/* no receive posted */
	RESP_ERR_INVALID,	/* malformed, or an operation not allowed here */
	RESP_ERR_RD_DEPTH,	/* more reads than max_dest_rd_atomic */
	RESP_ERR_REMOTE_ACCESS, /* key, range or right is wrong */
	RESP_ERR_LENGTH,	/* longer than the receive, which is our consumer's error */
	RESP_ERR_LOCAL_PROT,	/* our consumer's receive list is bad */
	/* The sender's payload no longer exists, which is the sender's error. */
	RESP_ERR_SENDER,
	RESP_ERR_RING,	     /* our consumer's receive queue is unreadable */
	RESP_ERR_INVALIDATE, /* the request may not invalidate the key */
	RESP_DONE,
};

/* ---- responder.c: answers ---- */

void resp_answer_init(const struct qp *qp, struct pkt *out, uint8_t op, uint32_t psn);
/* Sends an acknowledgement with this syndrome, or owes it. */
void resp_acknowledge(struct qp *qp, uint8_t syndrome, uint32_t psn);
/* Owes a positive acknowledgement up to psn, which goes out at the end of the batch or a little
 * later. */
void resp_owe(struct qp *qp, uint32_t psn);

/* ---- responder.c: what a request may do ---- */

/* True if the key grants the access; notes a refusal. */
bool resp_granted(struct qp *qp, enum mkey_verdict v, uint32_t right, uint32_t rkey, uint64_t va,
		  uint64_t len);
/* True if the key that the packet names grants all that the packet asks for. */
bool resp_may_access(struct qp *qp, uint32_t right, const struct pkt *pkt);

/* Counts a WRITE that the QP allows, whatever its key does. */
static inline void resp_count_write(const struct qp *qp)
{
	shard_count(qp->adapter->counters, HW_RX_WRITE_REQUESTS, 1);
}

/* ---- explain.c: call these after explaining() ---- */

/* Explains why a request is refused in this state. */
void resp_explain(struct qp *qp, const struct pkt *pkt, enum resp_state s) __attribute__((cold));
/* Explains why a packet is dropped: 'why' in a few words, or the QP's state, peer or P_Key. */
void resp_explain_drop(struct qp *qp, const struct pkt *pkt, const char *why) __attribute__((cold));
void resp_explain_state(struct qp *qp, const struct pkt *pkt) __attribute__((cold));
void resp_explain_peer(struct qp *qp, const struct pkt *pkt) __attribute__((cold));
void resp_explain_pkey(struct qp *qp, const struct pkt *pkt) __attribute__((cold));
/* Explains that a packet has come before, or that its number is behind. */
void resp_explain_duplicate(struct qp *qp, const struct pkt *pkt) __attribute__((cold));
/* Notes that the QP does not allow an operation. */
void resp_explain_right(const struct qp *qp, uint32_t right) __attribute__((cold));

/* ---- responder_rd.c ---- */

enum resp_state resp_read(struct qp *qp, const struct pkt *pkt);
enum resp_state resp_atomic(struct qp *qp, const struct pkt *pkt);
enum resp_state resp_duplicate(struct qp *qp, const struct pkt *pkt);
/* Answers accepted reads and atomics, in order. */
enum resp_state resp_answer_pending(struct qp *qp);

/* The XRC queue that the request named; NULL: it is gone, or the QP is of another kind.  The caller is a reader. */
static inline const struct srq *rd_srq(const struct qp *qp, const struct rd_resource *rd)
{
	return qp->bth == BTH_XRC ? srq_find_xrc(qp->adapter, rd->srqn, qp->create.xrcdn) : NULL;
}

/* True if the QP is in a state in which it takes requests. */
static inline bool resp_receives(const struct qp *qp)
{
	switch (qp_state(qp)) {
	case IB_QPS_RTR:
	case IB_QPS_RTS:
	case IB_QPS_SQD:
	case IB_QPS_SQE:
		return true;
	default:
		return false;
	}
}

static inline void resp_trace_drop(const struct qp *qp, const struct pkt *pkt, const char *why)
{
	trace(packet, dropped, qp->qpn, bth_op_name(pkt->opcode), pkt->psn, pkt->sqpn, why);
}
