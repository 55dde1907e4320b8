// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/bypass/revoke.h"

#include "base/trace.h"

void bypass_revoke_qp(struct qp *qp)
{
	const struct responder *r = &qp->resp;
	uint32_t given_up = atomic_load(&qp->comp.given_up);

	if (!r->shared && given_up == atomic_load(&qp->comp.waited_for))
		return;
	expose_revoke(wire_expose(qp->adapter->wire));
	atomic_store(&qp->comp.waited_for, given_up);
	if (!r->shared)
		return;
	trace(bypass, revoked, qp->qpn, r->view.dest_qpn,
	      qp_word_epoch(qp_word_load(&r->shared->word)));
}

void bypass_revoke_ask(struct qp *qp)
{
	uint32_t given_up = atomic_load(&qp->comp.given_up);

	if (!qp->resp.shared && given_up == atomic_load(&qp->comp.waited_for))
		return;
	qp->req.revocation = expose_revoke_ask(wire_expose(qp->adapter->wire));
	qp->req.revocation_for = given_up;
}

bool bypass_revoke_over(struct qp *qp)
{
	uint64_t ticket = qp->req.revocation;

	if (!ticket)
		return true;
	if (!expose_revoke_over(wire_expose(qp->adapter->wire), ticket))
		return false;
	qp->req.revocation = 0;
	atomic_store(&qp->comp.waited_for, qp->req.revocation_for);
	if (qp->resp.shared)
		trace(bypass, revoked, qp->qpn, qp->resp.view.dest_qpn,
		      qp_word_epoch(qp_word_load(&qp->resp.shared->word)));
	return true;
}
