// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/bypass/revoke.h"

#include "base/trace.h"

/* The responder of a DC target may lose its block meanwhile, or get another one for a new
 * connection. */
static struct qp_block *block_of(const struct qp *qp)
{
	return __atomic_load_n(&qp->resp.shared, __ATOMIC_RELAXED);
}

/* May peers be at the responder, or be reading payloads that were given up so far? */
static bool revocation_needed(struct qp *qp, uint32_t given_up)
{
	return block_of(qp) || given_up != atomic_load(&qp->comp.waited_for);
}

static void revocation_over(struct qp *qp, uint32_t given_up)
{
	const struct qp_block *b = block_of(qp);

	atomic_store(&qp->comp.waited_for, given_up);
	if (b)
		trace(bypass, revoked, qp->qpn, qp->resp.view.dest_qpn,
		      qp_word_epoch(qp_word_load(&b->word)));
}

void bypass_revoke_qp(struct qp *qp)
{
	uint32_t given_up = atomic_load(&qp->comp.given_up);

	if (!revocation_needed(qp, given_up))
		return;
	expose_revoke(wire_expose(qp->adapter->wire));
	revocation_over(qp, given_up);
}

void bypass_revoke_ask(struct qp *qp)
{
	uint32_t given_up = atomic_load(&qp->comp.given_up);

	if (!revocation_needed(qp, given_up))
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
	revocation_over(qp, qp->req.revocation_for);
	return true;
}
