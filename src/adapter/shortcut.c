// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/shortcut.h"

#include "adapter/far_send.h"
#include "adapter/place.h"
#include "wire/usermem.h"

/* Longer ones would hold the peer's responder for too long; packets let it breathe. */
#define FAR_MAX_BYTES (4u << 20)

/* Takes the peer's responder if it would accept a write with our next PSN.  Its lock is held on
 * success. */
static bool enter_peer(const struct qp *qp, struct qp *peer)
{
	const struct responder *r = &peer->resp;
	enum ib_qp_state state;

	if (!far_try(&peer->resp.b->lock, peer->adapter->slot))
		return false;
	state = qp_state(peer);
	if (likely((state == IB_QPS_RTS || state == IB_QPS_RTR) && peer->bth == BTH_RC &&
		   peer->attr.dest_qpn == qp->qpn && peer->path.dst_port == qp->path.src_port &&
		   r->b->epsn == qp->req.psn && pkey_match(peer->pkey, qp->pkey) &&
		   !r->in_message && !r->ack_owed && r->rd_answered == r->rd_count &&
		   peer->attr.access & IB_ACCESS_REMOTE_WRITE))
		return true;
	far_unlock(&peer->resp.b->lock);
	return false;
}

/* A message to one run list or another, in one pass also if it is made on the way. */
static bool gather(struct qp *qp, const struct send_wqe *w, const struct run *dst, uint32_t ndst)
{
	struct runs src;
	enum mkey_verdict v;

	runs_begin(&src);
	v = send_wqe_runs(qp->adapter, w, qp->init.pdn, 0, 0, w->len, &src);
	if (likely(v == MKEY_OK))
		return usermem_pull(dst, ndst, src.run, src.n, 0);
	if (long_way(v)) {
		struct transfer t = transfer_sent(qp, w, (uint16_t)qp->req.next_block);

		return transfer_move(&t, 0, w->len, dst, ndst) == MKEY_OK;
	}
	return false;
}

static bool scatter(struct qp *qp, const struct send_wqe *w, const struct run *src)
{
	struct runs dst;
	enum mkey_verdict v;

	runs_begin(&dst);
	v = send_wqe_runs(qp->adapter, w, qp->init.pdn, IB_ACCESS_LOCAL_WRITE, 0, w->len, &dst);
	if (likely(v == MKEY_OK))
		return usermem_pull(dst.run, dst.n, src, 1, 0);
	if (long_way(v)) {
		/* nothing is outstanding: the completer is at rest */
		struct transfer t = transfer_answered(qp, w, (uint16_t)qp->req.next_block);

		return transfer_move(&t, 0, w->len, src, 1) == MKEY_OK;
	}
	return false;
}

static bool copy(struct qp *qp, const struct qp *peer, const struct send_wqe *w)
{
	struct runs dst;

	runs_begin(&dst);
	return mkey_append_runs(qp->adapter, w->rkey, peer->init.pdn, IB_ACCESS_REMOTE_WRITE,
				w->raddr, w->len, &dst) == MKEY_OK &&
	       gather(qp, w, dst.run, dst.n);
}

/* To a QP of this process. */
static bool write_here(struct qp *qp, const struct send_wqe *w, uint32_t npkts)
{
	struct adapter *a = qp->adapter;
	struct qp *peer = number_find(&a->qps, qp->attr.dest_qpn);
	bool done;

	if (unlikely(!peer || !enter_peer(qp, peer)))
		return false;
	done = copy(qp, peer, w);
	if (likely(done)) {
		peer->resp.b->epsn = psn_add(peer->resp.b->epsn, npkts);
		peer->resp.b->msn = psn_add(peer->resp.b->msn, 1);
		peer->resp.nak_sent = false;
	}
	far_unlock(&peer->resp.b->lock);
	if (likely(done))
		wire_count_looped_write(a->wire, &qp->path, (uint32_t)w->len, npkts);
	return done;
}

/* As enter_peer, by what the peer's process says of itself. */
static bool enter_far(const struct qp *qp, struct qp_block *b, uint32_t right)
{
	if (!far_try(&b->lock, qp->adapter->slot))
		return false;
	if (likely(b->quiet && b->qpn == qp->attr.dest_qpn && b->dest_qpn == qp->qpn &&
		   b->dest_port == qp->path.src_port && b->epsn == qp->req.psn &&
		   (b->access & right) == right && pkey_match((uint16_t)b->pkey, qp->pkey)))
		return true;
	far_unlock(&b->lock);
	return false;
}

/* The key is looked at under the block's lock, and the peer's arena outlives the key: a late copy
 * harms nobody. */
static bool copy_far(struct qp *qp, const struct far *f, uint32_t pdn, uint32_t right,
		     const struct send_wqe *w)
{
	struct key_block k;
	struct run remote;

	if (!far_key(f, w->rkey, &k) || k.pdn != pdn || (k.access & right) != right ||
	    !range_inside(w->raddr - k.iova, w->len, k.length))
		return false;
	remote = (struct run){f->arena + k.offset + (w->raddr - k.iova), w->len};
	return right == IB_ACCESS_REMOTE_READ ? scatter(qp, w, &remote) : gather(qp, w, &remote, 1);
}

static enum wire_far far_kind(const struct wqe_props *p)
{
	if (p->send)
		return p->imm ? WIRE_FAR_SEND_IMM : WIRE_FAR_SEND;
	return p->read ? WIRE_FAR_READ : WIRE_FAR_WRITE;
}

/* To a QP of another process. */
static bool transfer_far(struct qp *qp, const struct send_wqe *w, uint32_t npkts)
{
	const struct wqe_props *p = wqe_props(w->opcode);
	uint32_t right = p->send ? 0 : p->read ? IB_ACCESS_REMOTE_READ : IB_ACCESS_REMOTE_WRITE;
	struct far *f = wire_far(qp->adapter->wire, &qp->path, qp->attr.dest_qpn);
	struct qp_block *b;
	bool done;

	if (!f || w->len > FAR_MAX_BYTES)
		return false;
	b = far_qp(f, qp->attr.dest_qpn);
	if (!enter_far(qp, b, right))
		return false;
	done = p->send ? far_send(qp, f, b, w) : copy_far(qp, f, b->pdn, right, w);
	if (likely(done)) {
		b->epsn = psn_add(b->epsn, npkts);
		b->msn = psn_add(b->msn, 1);
	}
	far_unlock(&b->lock);
	if (likely(done))
		wire_count_far(qp->adapter->wire, &qp->path, f, (uint32_t)w->len, npkts,
			       far_kind(p));
	return done;
}

static bool is_short(uint8_t opcode)
{
	return opcode == WQE_OP_RDMA_WRITE || opcode == WQE_OP_RDMA_READ || opcode == WQE_OP_SEND ||
	       opcode == WQE_OP_SEND_IMM;
}

bool shortcut_take(struct qp *qp, const struct send_wqe *w)
{
	uint32_t npkts = w->len <= qp->mtu ? 1 : div_round_up(w->len, qp->mtu);

	/* an outstanding request must complete first, and its answer may be on its way */
	if (!is_short(w->opcode) || w->bad || !w->len || qp->bth != BTH_RC ||
	    atomic_load_explicit(&qp->comp.head, memory_order_acquire) !=
		    atomic_load_explicit(&qp->req.tail, memory_order_relaxed) ||
	    /* the last to complete may have been a read that stopped the queue */
	    (unlikely(atomic_load_explicit(&qp->drain_sigerr, memory_order_relaxed)) &&
	     qp_state(qp) != IB_QPS_RTS))
		return false;
	if (wire_loops(qp->adapter->wire, &qp->path, qp->attr.dest_qpn)) {
		if (w->opcode != WQE_OP_RDMA_WRITE || !write_here(qp, w, npkts))
			return false;
	} else if (!transfer_far(qp, w, npkts)) {
		return false;
	}
	qp->req.psn = psn_add(qp->req.psn, npkts);
	atomic_store_explicit(&qp->comp.acked_psn, qp->req.psn, memory_order_release);
	if (w->fm_ce_se & WQE_CTRL_CE_ALWAYS || qp->init.sq_sig_all)
		completer_push_success(qp, &(struct swr){.block = (uint16_t)qp->req.next_block,
							 .opcode = w->opcode,
							 .len = (uint32_t)w->len});
	qp->req.next_block += w->nblocks;
	return true;
}
