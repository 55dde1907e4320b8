// SPDX-License-Identifier: BSD-2-Clause
/*
 * Checks what a request may do: the right of the operation on the queue pair, the range and right
 * of the key, and the length of the message.
 */
#include "adapter/transport/responder_state.h"

#include "adapter/memory/mkey.h"
#include "adapter/signed/transfer.h"
#include "prm/ib.h"

/* The right that a request needs, both on the QP and on the key. */
static uint32_t resp_right(const struct bth_props *p)
{
	if (p->write)
		return IB_ACCESS_REMOTE_WRITE;
	if (p->read)
		return IB_ACCESS_REMOTE_READ;
	return p->atomic ? IB_ACCESS_REMOTE_ATOMIC : 0;
}

bool resp_granted(struct qp *qp, enum mkey_verdict v, uint32_t right, uint32_t rkey, uint64_t va,
		  uint64_t len)
{
	if (likely(v == MKEY_OK))
		return true;
	trace(access, remote, qp->qpn, rkey, va, len, ib_access_name(right), mkey_verdict_name(v));
	if (explaining())
		mkey_explain(qp->adapter,
			     &(struct mkey_refusal){qp_remote_use(qp, rkey, qp->resp.pdn, right),
						    va, len, v});
	return false;
}

bool resp_may_access(struct qp *qp, uint32_t right, const struct pkt *pkt)
{
	enum mkey_verdict v =
		remote_check(qp, qp->resp.pdn, right, pkt->rkey, pkt->va, pkt->dma_len);

	return resp_granted(qp, v, right, pkt->rkey, pkt->va, pkt->dma_len);
}

/* Refuses an operation that the QP does not allow at all as an invalid request. */
enum resp_state resp_check_right(struct qp *qp, const struct pkt *pkt)
{
	uint32_t right = resp_right(pkt_props(pkt));

	if (likely(!right || qp->attr.access & right))
		return RESP_CHECK_RANGE;
	trace(access, remote, qp->qpn, pkt->rkey, pkt->va, pkt->dma_len, ib_access_name(right),
	      "QP_FORBIDS");
	if (explaining())
		resp_explain_right(qp, right);
	return RESP_ERR_INVALID;
}

/*
 * Reads and atomics are checked when they are accepted.  The execution itself checks the range of
 * each packet of a write, so what comes in front of the first that lies outside is in place, as on
 * cards.  A message of no bytes needs no key (IBTA 9.7.4.1.4).
 */
enum resp_state resp_check_range(const struct pkt *pkt)
{
	const struct bth_props *p = pkt_props(pkt);

	if (p->read)
		return RESP_READ;
	if (p->atomic)
		return RESP_ATOMIC;
	return RESP_CHECK_LENGTH;
}

/* The packets of a write must together carry exactly as many bytes as the write says. */
enum resp_state resp_check_length(const struct qp *qp, const struct pkt *pkt)
{
	const struct bth_props *p = pkt_props(pkt);
	const struct responder *r = &qp->resp;
	uint64_t total = p->first ? pkt->dma_len : r->write_len;
	uint64_t off = p->first ? 0 : r->off;

	if (p->write &&
	    (pkt->payload_len > total - off || (p->last && off + pkt->payload_len != total)))
		return RESP_ERR_INVALID;
	if ((p->send && p->first) || (p->write && p->imm))
		return RESP_TAKE_RECV;
	return RESP_BEGIN;
}
