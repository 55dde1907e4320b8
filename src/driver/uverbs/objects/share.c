// SPDX-License-Identifier: BSD-2-Clause
#include "driver/uverbs/objects/share.h"

#include "driver/runtime/process.h"
#include "driver/runtime/share.h"
#include "driver/uverbs/objects/mr.h"
#include "driver/uverbs/objects/qp.h"
#include "prm/wqe.h"

static bool may_be_reached(const struct ufile *f, uint32_t access)
{
	if (access & IB_ACCESS_ON_DEMAND)
		return false;
	return access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ) ||
	       (f->shares_receives && access & IB_ACCESS_LOCAL_WRITE);
}

void ushare_region(struct ufile *f, struct umr *mr)
{
	struct process *p = process_current();
	int64_t offset;

	if (!p || mr->share || mr->dm_handle || !may_be_reached(f, mr->attr.access))
		return;
	offset = share_begin(p, (uintptr_t)mr->attr.addr, mr->attr.length, &mr->share);
	if (offset >= 0)
		mkey_expose(f->hca->adapter, mr->mkey, (uint64_t)offset);
}

/* Both parts of a ring or none. */
static bool share_ring(struct process *p, struct ushared_ring *r, uint64_t bytes, uint64_t *ring,
		       uint64_t *dbrec)
{
	int64_t at[2];

	if (r->pages[0])
		return false;
	at[0] = share_begin(p, r->buf, bytes, &r->pages[0]);
	if (at[0] < 0)
		return false;
	at[1] = share_begin(p, r->dbrec, DBREC_BYTES, &r->pages[1]);
	if (at[1] < 0) {
		ushare_ring_end(r);
		return false;
	}
	*ring = (uint64_t)at[0];
	*dbrec = (uint64_t)at[1];
	return true;
}

void ushare_ring_end(struct ushared_ring *r)
{
	for (size_t i = 0; i < array_size(r->pages); i++) {
		share_end(r->pages[i]);
		r->pages[i] = NULL;
	}
}

/* Regions that were registered before there was somebody to receive from. */
static void share_regions(struct ufile *f)
{
	if (f->shares_receives)
		return;
	f->shares_receives = true;
	for (uint32_t handle = 0; handle < f->objects.limit; handle++) {
		struct uobj *obj = uobj_peek(&f->objects, UOBJ_MR, handle);

		if (obj)
			ushare_region(f, container_of(obj, struct umr, uobj));
	}
}

void ushare_receive(struct ufile *f, struct uqp *qp)
{
	struct process *p = process_current();
	struct ucq *cq = qp->recv_cq;
	uint64_t ring, dbrec;

	if (!p || !qp->pd || qp->shared.pages[0] || !qp_recv_exposable(qp->qp))
		return;
	if (share_ring(p, &cq->shared, (uint64_t)cq->entries * cq->cqe_bytes, &ring, &dbrec))
		cq_expose(cq->cq, ring, dbrec);
	if (!cq->shared.pages[0] ||
	    !share_ring(p, &qp->shared, qp_recv_ring_bytes(qp->qp), &ring, &dbrec))
		return;
	qp_recv_expose(qp->qp, ring, dbrec + DBREC_RECV * sizeof(be32));
	share_regions(f);
}
