// SPDX-License-Identifier: BSD-2-Clause
/*
 * The answer to a READ goes from here to the places that the requester offers, instead of by packets:
 * the mirror of what an initiator does with a WRITE (bypass/bypass.c).  What fails is left to
 * packets, which find the error.
 */
#include "adapter/transport/responder_state.h"

#include "adapter/signed/transfer.h"
#include "base/run_cursor.h"
#include "usermem/usermem.h"
#include "wire/payload.h"

/* Without the adapter's buffer. */
#define STACK_STAGE_BYTES 16384u

struct transfer rd_transfer(struct qp *qp, const struct rd_resource *rd, struct send_seg *seg)
{
	const struct srq *srq =
		qp->bth == BTH_XRC ? srq_find_xrc(qp->adapter, rd->srqn, qp->create.xrcdn) : NULL;

	*seg = (struct send_seg){.lkey = rd->rkey, .len = rd->len, .addr = rd->va};
	return transfer_remote(qp, srq, rd->pdn, IB_ACCESS_REMOTE_READ, seg);
}

/* Bytes of the answer that belong into one run; stage has room for them. */
static bool place_part(struct qp *qp, const struct rd_resource *rd, uint64_t off, uint64_t n,
		       const struct pkt *request, uint8_t *stage)
{
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
		       payload_put(request, off, &made, 1);
	}
	if (v != MKEY_OK)
		return false;
	/* The peer does not wait for faults of ours. */
	usermem_bring_in(src.run, src.n, false);
	return payload_put(request, off, src.run, src.n);
}

/* The parts meet where lines of the peer's memory do, so no word is torn. */
static bool place_parts(struct qp *qp, const struct rd_resource *rd, uint64_t off,
			const struct pkt *request, uint8_t *stage, uint64_t bytes)
{
	struct run_cursor at = run_cursor_start(request->runs, request->nruns);
	uint64_t n;

	run_cursor_advance(&at, off);
	for (; off < rd->len && at.left; off += n) {
		uint64_t lead = (uintptr_t)run_cursor_at(&at) % STAGE_ALIGN;

		n = min_u64(bytes - lead, at.run->len - at.off);
		if (!place_part(qp, rd, off, n, request, stage + lead))
			return false;
		run_cursor_advance(&at, n);
	}
	return off == rd->len;
}

static __attribute__((noinline)) bool place_by_stack(struct qp *qp, const struct rd_resource *rd,
						     uint64_t off, const struct pkt *request)
{
	_Alignas(STAGE_ALIGN) uint8_t stage[STACK_STAGE_BYTES];

	return place_parts(qp, rd, off, request, stage, sizeof(stage));
}

bool resp_place(struct qp *qp, const struct rd_resource *rd, uint64_t off,
		const struct pkt *request)
{
	uint8_t *stage = stage_take(&qp->adapter->stage);
	bool all;

	if (!stage)
		return place_by_stack(qp, rd, off, request);
	all = place_parts(qp, rd, off, request, stage, STAGE_BYTES);
	stage_give(&qp->adapter->stage);
	return all;
}
