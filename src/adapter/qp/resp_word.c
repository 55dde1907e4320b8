// SPDX-License-Identifier: BSD-2-Clause
/* The responder's side of the word that it shares with a peer in another process (qp_word.h). */
#include "adapter/qp/qp.h"

/* A thread that takes the state away revokes the word afterwards.  So either we see the state, or
 * our exchange fails. */
void resp_open(struct qp *qp)
{
	struct responder *r = &qp->resp;
	uint64_t word = qp_word_load(&r->shared->word);

	r->published = resp_bypass_ok(qp) && qp_word_open(&r->shared->word, word, r->epsn, r->msn);
}

void resp_revoke(struct qp *qp)
{
	/* If the initiator of a DC target's responder has ended, another responder may own the
	 * block by now; that one opens it again with the next packet. */
	struct qp_block *b = __atomic_load_n(&qp->resp.shared, __ATOMIC_RELAXED);

	if (b)
		qp_word_revoke(&b->word);
}

static bool view_same_peer(const struct qp_view *a, const struct qp_view *b)
{
	return a->transport == b->transport && a->dest_qpn == b->dest_qpn && a->port == b->port &&
	       a->dest_port == b->dest_port && a->pdn == b->pdn && a->pkey == b->pkey &&
	       a->xrcdn == b->xrcdn && a->connection == b->connection;
}

bool resp_set_view(struct qp *qp, const struct qp_view *view)
{
	struct responder *r = &qp->resp;
	bool same = view_same_peer(&r->view, view), less = r->view.access & ~view->access;
	bool remote = r->shared && (view->port != view->dest_port ||
				    !wire_owns(qp->adapter->wire, view->dest_qpn));

	r->view = *view;
	if (remote != r->remote) {
		resp_close(qp);
		r->bypass_ok = 0;
		r->remote = remote;
	}
	if (!r->shared)
		return false;
	/*
	 * What the peer has executed still counts, because packets would execute it again.  Peers
	 * look at the rights once more in the access, and the caller waits for those that have
	 * looked before.
	 */
	if (same) {
		__atomic_store_n(&r->shared->view.access, view->access, __ATOMIC_RELAXED);
		return less;
	}
	resp_close(qp);
	qp_word_revoke(&r->shared->word);
	/* A peer that sees one of the new values sees the new epoch too. */
	atomic_thread_fence(memory_order_release);
	r->shared->view = *view;
	return true;
}
