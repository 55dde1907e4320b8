// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/reach.h"

bool reach_enter_far(const struct qp *qp, uint32_t right, struct reach *r)
{
	struct far *f = wire_far(qp->adapter->wire, &qp->path, qp->attr.dest_qpn);
	struct qp_block *b;

	if (!f)
		return false;
	b = far_qp(f, qp->attr.dest_qpn);
	if (!reach_lock(qp, right, b))
		return false;
	*r = (struct reach){.b = b, .far = f, .pdn = b->pdn};
	if (likely(b->qpn == qp->attr.dest_qpn))
		return true;
	far_unlock(&b->lock);
	return false;
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
