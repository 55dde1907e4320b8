// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/bypass/bypass_peer.h"

#include "wire/tap.h"

bool bypass_peer_enter_remote(const struct qp *qp, uint32_t right, struct bypass_peer *r)
{
	struct remote *f = wire_remote(qp->adapter->wire, &qp->path, qp->attr.dest_qpn);
	struct qp_block *b;
	struct qp_view view;
	uint64_t word;

	if (!f || slot_observed(f->slot))
		return false;
	b = remote_qp(f, qp->attr.dest_qpn);
	word = qp_word_load(&b->word);
	if (!qp_word_is_open(word) || qp_word_epsn(word) != qp->req.psn)
		return false;
	view = b->view;
	if (b->qpn != qp->attr.dest_qpn || !bypass_peer_fits(qp, right, &view))
		return false;
	*r = (struct bypass_peer){.remote = f, .block = b, .word = word, .pdn = view.pdn};
	/* The view belongs to that epoch: it changes with it. */
	atomic_thread_fence(memory_order_acquire);
	return qp_word_load(&b->word) == word;
}

bool bypass_peer_leave_remote(const struct qp *qp, const struct bypass_peer *r,
			      const struct message_sizes *done)
{
	if (!qp_word_commit(&r->block->word, r->word, done->packets, done->messages))
		return false;
	port_account_remote(qp->adapter, &qp->path, r->remote, done);
	return true;
}
