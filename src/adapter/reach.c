// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/reach.h"

#include "wire/tally.h"

/* Takes the lock if the responder expects this very request. */
static bool enter(const struct qp *qp, uint32_t right, struct qp_block *b)
{
	if (unlikely(!far_try(&b->lock, qp->adapter->slot)))
		return false;
	if (likely(b->quiet && b->dest_qpn == qp->qpn && b->dest_port == qp->path.src_port &&
		   b->epsn == qp->req.psn && (b->access & right) == right &&
		   pkey_match((uint16_t)b->pkey, qp->pkey)))
		return true;
	far_unlock(&b->lock);
	return false;
}

static bool enter_here(const struct qp *qp, struct reach *r)
{
	const struct qp *peer = number_find(&qp->adapter->qps, qp->attr.dest_qpn);

	if (unlikely(!peer || !enter(qp, IB_ACCESS_REMOTE_WRITE, peer->resp.b)))
		return false;
	*r = (struct reach){.b = peer->resp.b, .pdn = peer->resp.b->pdn};
	return true;
}

static bool enter_far(const struct qp *qp, uint32_t right, struct reach *r)
{
	struct far *f = wire_far(qp->adapter->wire, &qp->path, qp->attr.dest_qpn);
	struct qp_block *b;

	if (!f)
		return false;
	b = far_qp(f, qp->attr.dest_qpn);
	if (!enter(qp, right, b))
		return false;
	*r = (struct reach){.b = b, .far = f, .pdn = b->pdn};
	if (likely(b->qpn == qp->attr.dest_qpn))
		return true;
	far_unlock(&b->lock);
	return false;
}

bool reach_enter(const struct qp *qp, uint32_t right, struct reach *r)
{
	if (!wire_loops(qp->adapter->wire, &qp->path, qp->attr.dest_qpn))
		return enter_far(qp, right, r);
	return right == IB_ACCESS_REMOTE_WRITE && enter_here(qp, r);
}

void reach_leave(const struct qp *qp, const struct reach *r, const struct message_sizes *done)
{
	if (likely(done)) {
		r->b->epsn = psn_add(r->b->epsn, done->packets);
		r->b->msn = psn_add(r->b->msn, done->messages);
	}
	far_unlock(&r->b->lock);
	if (unlikely(!done))
		return;
	if (r->far)
		tally_far(qp->adapter->wire, &qp->path, r->far, done);
	else
		tally_looped(qp->adapter->wire, &qp->path, done);
}

/* The key is looked at under the responder's lock, and the peer's arena outlives the key: a late
 * copy harms nobody. */
uint8_t *reach_far_memory(const struct reach *r, uint32_t rkey, uint32_t right, uint64_t va,
			  uint64_t len)
{
	struct key_block k;

	if (!far_key(r->far, rkey, &k) || k.pdn != r->pdn || (k.access & right) != right ||
	    !range_inside(va - k.iova, len, k.length))
		return NULL;
	return r->far->arena + k.offset + (va - k.iova);
}
