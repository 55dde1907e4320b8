// SPDX-License-Identifier: BSD-2-Clause
/* Answers of the responder: acknowledgements and refusals. */
#include "adapter/transport/path_migration.h"
#include "adapter/transport/responder_state.h"

void resp_answer_init(const struct qp *qp, struct pkt *out, uint8_t op, uint32_t psn)
{
	*out = (struct pkt){
		.opcode = (uint8_t)(qp->bth | op),
		.pkey = qp->pkey,
		.sqpn = qp->qpn,
		.dqpn = qp->attr.dest_qpn,
		.psn = psn,
		.migreq_clear = !qp_is_migrated(qp),
		.npkts = 1,
		.msn = qp->resp.msn,
		.aeth = AETH_ACK | AETH_NO_CREDIT,
		.path = &qp->path,
	};
}

static bool resp_send_ack(struct qp *qp, uint8_t syndrome, uint32_t psn)
{
	struct pkt out;

	resp_answer_init(qp, &out, BTH_ACK, psn);
	out.aeth = syndrome;
	return wire_xmit(qp->adapter->wire, &out) != WIRE_BUSY;
}

/*
 * Sends an answer, or owes it if the wire is busy or the queue pair is about to migrate; a newer one
 * replaces it because it says more.
 * An answer must not overtake a read answer that still waits: the requester would take the read
 * answer for lost.
 */
void resp_acknowledge(struct qp *qp, uint8_t syndrome, uint32_t psn)
{
	struct responder *r = &qp->resp;
	bool behind_read = unlikely(r->rd_answered != r->rd_count) && resp_receives(qp);

	r->ack_owed = behind_read || migration_is_due(qp) || !resp_send_ack(qp, syndrome, psn);
	if (r->ack_owed) {
		r->ack_syndrome = syndrome;
		r->ack_psn = psn;
		qp_kick_later(qp);
	}
}

void responder_acknowledge_first(struct qp *qp)
{
	struct responder *r = &qp->resp;

	if (!resp_try_lock(qp))
		return;
	if (r->ack_owed && r->rd_answered == r->rd_count)
		resp_acknowledge(qp, r->ack_syndrome, r->ack_psn);
	resp_unlock(qp);
}

void resp_owe(struct qp *qp, uint32_t psn)
{
	struct responder *r = &qp->resp;
	bool owed = r->ack_owed;

	atomic_store_explicit(&r->ack_owed, true, memory_order_relaxed);
	r->ack_syndrome = AETH_ACK | AETH_NO_CREDIT;
	r->ack_psn = psn;
	/* If an answer was owed already, somebody is noted to send it, and finds under the lock
	 * which one it is. */
	if (!owed)
		qp_kick(qp);
}

/*
 * A positive answer to a packet of a batch waits for the batch's end, and then acknowledges the
 * whole batch (IBTA 9.7.5.1.2, acknowledge coalescing).  If the message completed a receive, the
 * answer may wait a little longer: the program now has work to do, and its next poll or post sends
 * it.
 */
void resp_acknowledge_message(struct qp *qp, const struct pkt *pkt)
{
	struct responder *r = &qp->resp;
	uint32_t psn = psn_add(r->epsn, IB_PSN_MASK);

	if (!pkt->batched) {
		resp_acknowledge(qp, AETH_ACK | AETH_NO_CREDIT, psn);
		return;
	}
	if (!pkt_props(pkt)->last || (pkt_props(pkt)->write && !pkt_props(pkt)->imm))
		atomic_store_explicit(&qp->adapter->prompt, true, memory_order_relaxed);
	resp_owe(qp, psn);
}

void resp_nak(struct qp *qp, enum aeth_nak code, uint32_t psn)
{
	trace(nak, sent, qp->qpn, qp->attr.dest_qpn, aeth_nak_name(code), psn);
	resp_acknowledge(qp, (uint8_t)(AETH_NAK | code), psn);
}
