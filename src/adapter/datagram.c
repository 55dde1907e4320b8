// SPDX-License-Identifier: BSD-2-Clause
/* The receiving side of datagrams (IBTA 9.8.3). */
#include "adapter/responder.h"

#include "wire/lane.h"
#include "wire/usermem.h"

/* There is nobody to tell but our consumer. */
static void fail_recv(struct qp *qp, uint8_t syndrome)
{
	recv_push_error(qp, qp->resp.recv.index, syndrome);
	qp->resp.have_recv = false;
	qp_fail(qp);
}

void datagram_receive(struct qp *qp, const struct pkt *pkt)
{
	struct responder *r = &qp->resp;
	uint8_t grh[IB_GRH_BYTES];
	struct run head = {grh, sizeof(grh)};
	struct runs dst;

	runs_begin(&dst);
	if (pkt->qkey != qp->attr.qkey || responder_take_recv(qp) != RECV_OK) {
		if (pkt->qkey == qp->attr.qkey)
			lane_count(qp->adapter->counters, HW_OUT_OF_BUFFER, 1);
		return;
	}
	if (IB_GRH_BYTES + pkt->payload_len > recv_capacity(&r->recv)) {
		fail_recv(qp, CQE_SYN_LOCAL_LENGTH);
		return;
	}
	if (pkt->path->grh) {
		grh_from_path(pkt->path, pkt->payload_len, grh);
		if (recv_runs(qp->adapter, &r->recv, recv_pd(qp), 0, sizeof(grh), &dst) !=
			    MKEY_OK ||
		    !usermem_pull(dst.run, dst.n, &head, 1, 0)) {
			fail_recv(qp, CQE_SYN_LOCAL_PROT);
			return;
		}
		runs_begin(&dst);
	}
	if (recv_runs(qp->adapter, &r->recv, recv_pd(qp), sizeof(grh), pkt->payload_len, &dst) !=
		    MKEY_OK ||
	    (pkt->payload_len &&
	     !usermem_pull_payload(dst.run, dst.n, pkt))) {
		fail_recv(qp, CQE_SYN_LOCAL_PROT);
		return;
	}
	recv_push(qp, pkt, IB_GRH_BYTES + pkt->payload_len);
	r->have_recv = false;
}
