// SPDX-License-Identifier: BSD-2-Clause
/*
 * Bursts of the plainest requests: RDMA WRITEs of one packet with one piece of data, in one block
 * of the ring, to a peer of the bypass (bypass_peer.h).  This file runs ahead of bypass.c and of
 * the requester, decodes nothing else, and checks only once per burst what holds for all of its
 * requests.  Programs that want a message rate post such requests.
 */
#include "adapter/bypass/bypass_peer.h"
#include "adapter/bypass/write_burst.h"

#include "adapter/qp/send_cqe.h"
#include "adapter/qp/send_wqe.h"
#include "adapter/bypass/bypass.h"
#include "base/trace.h"

/* The most requests in one visit to the peer's responder. */
#define TURN 32u

/* The segments at the start of such a request. */
struct segments {
	struct wqe_ctrl ctrl;
	struct wqe_raddr remote;
	struct wqe_data data;
};

#define UNITS (sizeof(struct segments) / WQE_UNIT)

struct request {
	struct segments seg; /* a copy */
	uint32_t bytes;
	const uint8_t *inlined; /* data in the ring; NULL: seg.data points to it */
};

/* Reads the request at block; false: it is of another kind. */
static bool write_burst_fetch(const struct qp *qp, uint32_t block, struct request *w)
{
	const uint8_t *at = send_ring_at(qp, block);
	uint32_t ds, count;

	if (unlikely(!usermem_fetch(&w->seg, at, sizeof(w->seg))) ||
	    wqe_opcode(&w->seg.ctrl) != WQE_OP_RDMA_WRITE || wqe_qpn(&w->seg.ctrl) != qp->qpn)
		return false;
	ds = wqe_ds(&w->seg.ctrl);
	count = be32_get(w->seg.data.byte_count);
	if (!(count & WQE_DATA_INLINE)) {
		w->bytes = count;
		w->inlined = NULL;
		return ds == UNITS && count && count <= qp->mtu;
	}
	w->bytes = count & WQE_DATA_INLINE_LEN;
	w->inlined = at + offsetof(struct segments, data) + sizeof(be32);
	return w->bytes && ds <= WQE_BLOCK / WQE_UNIT &&
	       ds == UNITS - 1 + div_round_up(sizeof(be32) + w->bytes, WQE_UNIT);
}

static bool write_one(struct qp *qp, const struct bypass_peer *r, const struct request *w)
{
	uint64_t va = be64_get(w->seg.remote.va);
	uint32_t rkey = be32_get(w->seg.remote.rkey);
	const uint8_t *from = w->inlined;
	uint8_t *to;

	if (!from)
		from = mkey_region_at(qp->adapter, be32_get(w->seg.data.lkey), qp->create.pdn, 0,
				      be64_get(w->seg.data.addr), w->bytes);
	to = r->remote ? bypass_peer_remote_memory(r, rkey, IB_ACCESS_REMOTE_WRITE, va, w->bytes)
		       : mkey_region_at(qp->adapter, rkey, r->pdn, IB_ACCESS_REMOTE_WRITE, va,
					w->bytes);
	if (unlikely(!from || !to))
		return false;
	return w->bytes == 8 ? usermem_copy_8(to, from) : usermem_copy(to, from, w->bytes);
}

/*
 * Executes requests up to the first signaled one, whose completion waits until the peer's responder
 * is released.  Returns how many there were.
 */
static uint32_t take_turn(struct qp *qp, uint32_t ready)
{
	struct message_sizes done = {.kind = MESSAGE_WRITE};
	uint32_t limit = min_u32(ready, TURN);
	bool entered = false, signaled = false;
	struct request w;
	struct bypass_peer r;

	while (done.messages < limit && !signaled &&
	       write_burst_fetch(qp, qp->req.next_block + done.messages, &w)) {
		if (!entered && !bypass_peer_enter(qp, IB_ACCESS_REMOTE_WRITE, &r))
			return 0;
		entered = true;
		if (!write_one(qp, &r, &w))
			break;
		done.messages++;
		done.payload += align_up(w.bytes, 4);
		signaled = qp_is_signaled(qp, w.seg.ctrl.fm_ce_se);
	}
	if (!entered)
		return 0;
	done.packets = done.messages;
	if (!bypass_peer_leave(qp, &r, done.messages ? &done : NULL))
		return 0;
	bypass_done(qp, done.packets, done.messages);
	trace(bypass, taken, qp->qpn, qp->attr.dest_qpn, wqe_opcode_name(WQE_OP_RDMA_WRITE),
	      done.messages, done.payload, bypass_peer_way(&r));
	if (signaled)
		send_cqe_success(qp, &(struct send_op){.block = (uint16_t)(qp->req.next_block - 1),
						       .opcode = WQE_OP_RDMA_WRITE});
	return done.messages;
}

static inline bool may_run(const struct qp *qp)
{
	return qp_state(qp) == IB_QPS_RTS && !qp->req.stopped && bypass_open(qp) &&
	       !(atomic_load_explicit(&qp->waiting, memory_order_relaxed) & QP_WAIT_RNR);
}

bool write_burst_run(struct qp *qp)
{
	int ready;

	if (!may_run(qp))
		return false;
	/* Whoever posts more makes us look again, see struct baton. */
	ready = send_ring_ready(qp, qp->req.next_block);
	while (ready > 0) {
		uint32_t n = take_turn(qp, (uint32_t)ready);

		ready -= (int)n;
		if (!n || (ready && !may_run(qp)))
			return false;
	}
	return !ready;
}
