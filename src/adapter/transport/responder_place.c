// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes the answer to a READ to the places that the requester offers, instead of sending packets:
 * the mirror of what an initiator does with a WRITE (bypass/bypass.c).  It leaves what fails to
 * packets, which find the error.
 */
#include "adapter/transport/responder_state.h"

#include "adapter/signed/transfer.h"
#include "base/run.h"
#include "usermem/usermem.h"
#include "wire/payload.h"

struct transfer rd_transfer(struct qp *qp, const struct rd_resource *rd, struct send_seg *seg)
{
	return transfer_read(qp, rd, rd_srq(qp, rd), seg);
}

struct placing {
	struct qp *qp;
	const struct rd_resource *rd;
	const struct pkt *request;
	uint64_t off; /* in the answer; all bytes before have gone */
};

/* Writes n bytes of the answer into one run; stage has room for them. */
static bool place_part(const struct placing *p, uint64_t off, uint64_t n, uint8_t *stage)
{
	const struct rd_resource *rd = p->rd;
	struct qp *qp = p->qp;
	const struct mkey_use u = qp_remote_use(qp, rd->rkey, rd->pdn, IB_ACCESS_REMOTE_READ);
	const struct run made = {stage, n};
	struct send_seg seg;
	enum mkey_verdict v;
	struct runs src;

	runs_begin(&src);
	v = mkey_resolve(qp->adapter, &u, rd->va + off, n, &src);
	if (mkey_staged(v)) {
		struct transfer t = rd_transfer(qp, rd, &seg);

		return transfer_move(&t, off, n, &made, 1) == MKEY_OK &&
		       payload_put(p->request, off, &made, 1);
	}
	if (v != MKEY_OK)
		return false;
	/* Take our own faults now, so that the peer never waits for them. */
	usermem_bring_in(src.run, src.n, false);
	return payload_put(p->request, off, src.run, src.n);
}

/* Writes part by part.  Parts meet at the boundaries of cache lines in the peer's memory, so no
 * word is torn. */
static bool place_parts(void *user, uint8_t *stage, uint64_t bytes)
{
	const struct placing *p = user;
	struct run_cursor at = run_cursor_start(p->request->runs, p->request->nruns);
	uint64_t off = p->off, n;

	run_cursor_advance(&at, off);
	for (; off < p->rd->len && at.left; off += n) {
		uint64_t lead = (uintptr_t)run_cursor_at(&at) % STAGE_ALIGN;

		n = min_u64(bytes - lead, run_cursor_left(&at));
		if (!place_part(p, off, n, stage + lead))
			return false;
		run_cursor_advance(&at, n);
	}
	return off == p->rd->len;
}

bool resp_place(struct qp *qp, const struct rd_resource *rd, uint64_t off,
		const struct pkt *request)
{
	struct placing p = {qp, rd, request, off};

	return stage_work(&qp->adapter->stage, place_parts, &p);
}
