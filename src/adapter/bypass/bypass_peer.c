// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/bypass/bypass_peer.h"

#include "wire/tap.h"

bool bypass_peer_enter_remote(const struct qp *qp, uint32_t right, struct bypass_peer *r)
{
	struct remote *f = wire_remote(qp->adapter->wire, &qp->path, qp->attr.dest_qpn);
	struct qp_block *b;

	if (!f || slot_observed(f->slot))
		return false;
	b = remote_qp(f, qp->attr.dest_qpn);
	if (!bypass_peer_lock(qp, right, b))
		return false;
	*r = (struct bypass_peer){.shared = b, .remote = f, .pdn = b->pdn};
	if (likely(b->qpn == qp->attr.dest_qpn))
		return true;
	shared_unlock(&b->lock);
	return false;
}

/* Looks at the key under the responder's lock.  The peer's arena outlives the key, so a late copy
 * harms nobody. */
uint8_t *bypass_peer_remote_memory(const struct bypass_peer *r, uint32_t rkey, uint32_t right,
				   uint64_t va, uint64_t len)
{
	struct key_block k;

	if (!remote_key(r->remote, rkey, &k) || k.pdn != r->pdn || (k.access & right) != right ||
	    !range_inside(va - k.iova, len, k.length))
		return NULL;
	return r->remote->arena + k.offset + (va - k.iova);
}
