// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/bypass/revoke.h"

#include "base/trace.h"

void bypass_revoke_qp(struct qp *qp)
{
	const struct responder *r = &qp->resp;

	if (!r->shared)
		return;
	expose_revoke(wire_expose(qp->adapter->wire));
	trace(bypass, revoked, qp->qpn, r->view.dest_qpn,
	      qp_word_epoch(qp_word_load(&r->shared->word)));
}
