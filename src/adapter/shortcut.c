// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/shortcut.h"

#include "wire/lane.h"
#include "wire/usermem.h"

/* Takes the peer's responder if it would accept a write with our next PSN.  Its lock is held on
 * success. */
static bool enter_peer(const struct qp *qp, struct qp *peer)
{
	const struct responder *r = &peer->resp;
	enum ib_qp_state state;

	if (!spin_try(&peer->resp.lock))
		return false;
	state = qp_state(peer);
	if (likely((state == IB_QPS_RTS || state == IB_QPS_RTR) && peer->bth == BTH_RC &&
		   peer->attr.dest_qpn == qp->qpn && peer->path.dst_port == qp->path.src_port &&
		   r->epsn == qp->req.psn && !r->in_message && !r->ack_owed &&
		   r->rd_answered == r->rd_count && peer->attr.access & IB_ACCESS_REMOTE_WRITE))
		return true;
	spin_unlock(&peer->resp.lock);
	return false;
}

static bool copy(const struct qp *qp, const struct qp *peer, const struct send_wqe *w)
{
	struct runs src, dst;

	runs_begin(&src);
	runs_begin(&dst);
	return send_wqe_runs(qp->adapter, w, qp->init.pdn, 0, 0, w->len, &src) == MKEY_OK &&
	       mkey_append_runs(qp->adapter, w->rkey, peer->init.pdn, IB_ACCESS_REMOTE_WRITE,
				w->raddr, w->len, &dst) == MKEY_OK &&
	       usermem_pull(dst.run, dst.n, src.run, src.n, 0);
}

bool shortcut_write(struct qp *qp, const struct send_wqe *w)
{
	struct adapter *a = qp->adapter;
	uint32_t npkts = w->len <= qp->mtu ? 1 : div_round_up(w->len, qp->mtu);
	struct qp *peer;
	bool done;

	/* an outstanding request must complete first, and its answer may be on its way */
	if (w->opcode != WQE_OP_RDMA_WRITE || w->bad || !w->len || qp->bth != BTH_RC ||
	    atomic_load_explicit(&qp->comp.head, memory_order_acquire) !=
		    atomic_load_explicit(&qp->req.tail, memory_order_relaxed) ||
	    !wire_loops(a->wire, &qp->path, qp->attr.dest_qpn))
		return false;
	peer = number_find(&a->qps, qp->attr.dest_qpn);
	if (unlikely(!peer || !enter_peer(qp, peer)))
		return false;
	done = copy(qp, peer, w);
	if (likely(done)) {
		peer->resp.epsn = psn_add(peer->resp.epsn, npkts);
		peer->resp.msn = psn_add(peer->resp.msn, 1);
		peer->resp.nak_sent = false;
	}
	spin_unlock(&peer->resp.lock);
	if (unlikely(!done))
		return false;

	qp->req.psn = psn_add(qp->req.psn, npkts);
	atomic_store_explicit(&qp->comp.acked_psn, qp->req.psn, memory_order_release);
	wire_count_looped_write(a->wire, &qp->path, (uint32_t)w->len, npkts);
	lane_count(a->counters, HW_RX_WRITE_REQUESTS, 1);
	if (w->fm_ce_se & WQE_CTRL_CE_ALWAYS || qp->init.sq_sig_all)
		completer_push_success(qp, &(struct swr){.block = (uint16_t)qp->req.next_block,
							 .opcode = w->opcode});
	qp->req.next_block += w->nblocks;
	return true;
}
