// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/signed/transfer.h"

#include "adapter/qp/recv.h"
#include "base/log.h"
#include "usermem/usermem.h"
#include "wire/payload.h"

/* Messages of the two ends of a queue pair, which may be its own peer. */
static uint64_t transfer_message(const struct qp *qp, bool responder, uint32_t number)
{
	return (uint64_t)responder << 63 | (uint64_t)qp->qpn << 32 | number;
}

struct transfer transfer_sent(struct qp *qp, const struct send_wqe *w, uint16_t block)
{
	uint32_t next = qp->req.next_block;

	return (struct transfer){
		.adapter = qp->adapter,
		.qp = qp,
		.flow = &qp->sent,
		.cq = qp->create.send_cq,
		.direction = SIG_GATHER,
		.pdn = qp->create.pdn,
		.drain = true,
		.block = block,
		/* the request is the next one or one of the ring, which has fewer blocks than 2^16 */
		.message = transfer_message(qp, false, next - (uint16_t)(next - block)),
		.seg = w->seg,
		.nsegs = w->nsegs,
	};
}

struct transfer transfer_answered(struct qp *qp, const struct send_wqe *w, uint16_t block)
{
	return (struct transfer){
		.adapter = qp->adapter,
		.qp = qp,
		.flow = &qp->answered,
		.cq = qp->create.send_cq,
		.direction = SIG_SCATTER,
		.pdn = qp->create.pdn,
		.access = IB_ACCESS_LOCAL_WRITE,
		.drain = true,
		.block = block,
		.seg = w->seg,
		.nsegs = w->nsegs,
	};
}

/* The completion queue of a receive; an XRC target completes to that of the shared receive
 * queue. */
static struct cq *transfer_recv_cq(const struct qp *qp, const struct srq *srq)
{
	if (qp->bth != BTH_XRC)
		return qp->create.recv_cq;
	return srq ? srq_cq(srq) : NULL;
}

struct transfer transfer_remote(struct qp *qp, const struct srq *srq, uint32_t pdn, uint32_t right,
				struct send_seg *seg)
{
	bool read = right == IB_ACCESS_REMOTE_READ;

	return (struct transfer){
		.adapter = qp->adapter,
		.qp = qp,
		.flow = read ? &qp->read : &qp->written,
		.cq = transfer_recv_cq(qp, srq),
		.direction = read ? SIG_GATHER : SIG_SCATTER,
		.pdn = pdn,
		.access = right,
		.remote = true,
		.seg = seg,
		.nsegs = 1,
	};
}

struct transfer transfer_read(struct qp *qp, const struct rd_resource *rd, const struct srq *srq,
			      struct send_seg *seg)
{
	struct transfer t = transfer_remote(qp, srq, rd->pdn, IB_ACCESS_REMOTE_READ, seg);

	*seg = (struct send_seg){.lkey = rd->rkey, .len = rd->len, .addr = rd->va};
	t.message = transfer_message(qp, true, rd->number);
	return t;
}

/* A transfer into the receive in progress; seg has room for RECV_MAX_SGE. */
static struct transfer transfer_recv(struct qp *qp, struct send_seg *seg)
{
	const struct recv_wqe *wqe = &qp->resp.recv;

	for (uint32_t i = 0; i < wqe->nsge; i++)
		seg[i] = (struct send_seg){
			.lkey = be32_get(wqe->sge[i].lkey),
			.len = be32_get(wqe->sge[i].byte_count),
			.addr = be64_get(wqe->sge[i].addr),
		};
	return (struct transfer){
		.adapter = qp->adapter,
		.qp = qp,
		.flow = &qp->written,
		.cq = transfer_recv_cq(qp, qp->resp.srq),
		.direction = SIG_SCATTER,
		.pdn = recv_pd(qp),
		.access = IB_ACCESS_LOCAL_WRITE,
		.block = wqe->index,
		.seg = seg,
		.nsegs = wqe->nsge,
	};
}

enum mkey_verdict remote_check(struct qp *qp, uint32_t pdn, uint32_t right, uint32_t rkey,
			       uint64_t va, uint32_t len)
{
	const struct mkey_use u = qp_remote_use(qp, rkey, pdn, right);
	struct send_seg seg = {.lkey = rkey, .len = len, .addr = va};
	enum mkey_verdict v;
	struct runs runs;

	runs_begin(&runs);
	v = mkey_resolve(qp->adapter, &u, va, len, &runs);
	if (unlikely(mkey_staged(v))) {
		struct transfer t = transfer_remote(qp, NULL, pdn, right, &seg);

		v = transfer_check(&t, 0, len);
	}
	return v;
}

/* Places a payload by runs, or by a transfer (signed.h) if v asks for it. */
static enum mkey_verdict transfer_place_one(enum mkey_verdict v, const struct runs *dst,
					    const struct transfer *t, uint64_t off,
					    const struct pkt *pkt)
{
	if (unlikely(mkey_staged(v)))
		return transfer_place(t, off, pkt);
	if (likely(v == MKEY_OK) && pkt->payload_len && !payload_pull(dst->run, dst->n, pkt))
		return MKEY_GONE;
	return v;
}

/* Copies the first n bytes of a payload. */
static bool pull_first(const struct runs *dst, const struct pkt *pkt, uint64_t n)
{
	struct run src[RUNS_MAX];
	uint32_t nsrc = 0;

	if (pkt->source)
		return pkt->source->pull(pkt->source, 0, dst->run, dst->n);
	for (; n && nsrc < pkt->nruns && nsrc < RUNS_MAX; nsrc++) {
		src[nsrc] = pkt->runs[nsrc];
		src[nsrc].len = min_u64(src[nsrc].len, n);
		n -= src[nsrc].len;
	}
	return payload_pull_runs(dst->run, dst->n, pkt, src, nsrc);
}

/*
 * The key refuses a packet that stands for several.  As cards look at each one by itself, places
 * those in front of the first that is refused.  False: the payload could not be read.
 */
static bool write_place_first(struct qp *qp, const struct mkey_use *u, uint64_t off,
			      const struct pkt *pkt)
{
	uint64_t va = qp->resp.write_va + off;
	uint32_t fit = 0, beyond = pkt->npkts;
	struct runs dst;

	while (beyond - fit > 1) {
		uint32_t middle = fit + (beyond - fit) / 2;

		runs_begin(&dst);
		if (mkey_resolve(qp->adapter, u, va, (uint64_t)middle * qp->mtu, &dst) == MKEY_OK)
			fit = middle;
		else
			beyond = middle;
	}
	runs_begin(&dst);
	return !fit || mkey_resolve(qp->adapter, u, va, (uint64_t)fit * qp->mtu, &dst) != MKEY_OK ||
	       pull_first(&dst, pkt, (uint64_t)fit * qp->mtu);
}

enum mkey_verdict write_place(struct qp *qp, uint64_t off, const struct pkt *pkt)
{
	struct responder *r = &qp->resp;
	const struct mkey_use u = qp_remote_use(qp, r->write_rkey, r->pdn, IB_ACCESS_REMOTE_WRITE);
	struct send_seg seg;
	struct transfer t;
	struct runs dst;
	enum mkey_verdict v = MKEY_OK;

	runs_begin(&dst);
	/* Check the key again for each packet: it may have ended since the first one. */
	if (pkt->payload_len)
		v = mkey_resolve(qp->adapter, &u, r->write_va + off, pkt->payload_len, &dst);
	if (unlikely(v != MKEY_OK && !mkey_staged(v) && pkt->npkts > 1 &&
		     !write_place_first(qp, &u, off, pkt)))
		return MKEY_GONE;
	if (unlikely(mkey_staged(v))) {
		seg = (struct send_seg){
			.lkey = r->write_rkey, .len = r->write_len, .addr = r->write_va};
		t = transfer_remote(qp, r->srq, r->pdn, IB_ACCESS_REMOTE_WRITE, &seg);
	}
	return transfer_place_one(v, &dst, &t, off, pkt);
}

enum mkey_verdict recv_place(struct qp *qp, uint64_t off, const struct pkt *pkt)
{
	struct responder *r = &qp->resp;
	struct send_seg seg[RECV_MAX_SGE];
	struct transfer t;
	struct runs dst;
	enum mkey_verdict v;

	runs_begin(&dst);
	v = recv_runs(qp->adapter, &r->recv, recv_pd(qp), off, pkt->payload_len, &dst);
	if (unlikely(mkey_staged(v)))
		t = transfer_recv(qp, seg);
	return transfer_place_one(v, &dst, &t, off, pkt);
}
