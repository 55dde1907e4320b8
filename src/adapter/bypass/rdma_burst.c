// SPDX-License-Identifier: BSD-2-Clause
/*
 * Executes bursts of the plainest requests: RDMA WRITEs of one packet with one piece of data, in
 * one block of the ring (of a DCI: in two), to a peer of the bypass (bypass_peer.h); and READs of
 * the same form from a peer in another process.  This file runs ahead of bypass.c and of the
 * requester.  It decodes no other requests, and checks once per burst what holds for all of its
 * requests, because programs that want a message rate post such requests.
 */
#include "adapter/bypass/remote_plain.h"
#include "adapter/bypass/rdma_burst.h"
#include "adapter/bypass/rdma_request.h"

#include "adapter/qp/send_cqe.h"
#include "adapter/qp/send_wqe.h"
#include "adapter/bypass/bypass.h"
#include "base/trace.h"

/* The most requests in one visit to the peer's responder. */
#define TURN 32u

static bool write_one(struct qp *qp, const struct bypass_peer *r, const struct rdma_request *w)
{
	const uint8_t *from = rdma_request_at(qp, w);
	uint8_t *to =
		mkey_region_at(qp->adapter, be32_get(w->seg.remote.rkey), r->pdn,
			       IB_ACCESS_REMOTE_WRITE, be64_get(w->seg.remote.va), w->piece.bytes);

	if (unlikely(!from || !to))
		return false;
	return w->piece.bytes == 8 ? usermem_copy_8(to, from)
				   : usermem_copy(to, from, w->piece.bytes);
}

/* What a turn has executed.  A turn ends with the first signaled request, whose completion waits
 * until we have left the peer's responder. */
struct turn {
	struct message_sizes sizes;
	uint32_t blocks; /* of each request */
	uint32_t srqn;	 /* XRC: of all requests */
	bool read;	 /* all of them */
	uint32_t bytes;	 /* of the last request so far */
	uint8_t ce;	 /* of that one */
	enum key_way way;
};

static uint32_t right_of(bool read)
{
	return read ? IB_ACCESS_REMOTE_READ : IB_ACCESS_REMOTE_WRITE;
}

static void turn_add(const struct qp *qp, struct turn *t, const struct rdma_request *w)
{
	t->sizes.messages++;
	t->sizes.payload += align_up(w->piece.bytes, 4);
	t->bytes = w->piece.bytes;
	t->ce = qp_ce(qp, w->seg.ctrl.fm_ce_se);
}

static bool turn_next(const struct qp *qp, const struct turn *t, uint32_t limit,
		      struct rdma_request *w)
{
	return t->sizes.messages < limit && !ce_is_signaled(t->ce) &&
	       rdma_request_fetch(qp, qp->req.next_block + t->sizes.messages * t->blocks, w) &&
	       w->read == t->read && (likely(qp->bth != BTH_XRC) || w->srqn == t->srqn);
}

/* Executes WRITEs one after the other, to memory of this process.  w: the first of them. */
static void turn_here(struct qp *qp, const struct bypass_peer *r, uint32_t limit, struct turn *t,
		      struct rdma_request *w)
{
	do {
		if (!write_one(qp, r, w))
			break;
		turn_add(qp, t, w);
	} while (turn_next(qp, t, limit, w));
}

/* Lists the requests first, because another process's memory is reached for all of them at once. */
static void turn_remote(struct qp *qp, const struct bypass_peer *r, uint32_t limit, struct turn *t,
			struct rdma_request *w)
{
	struct remote_range ranges[WAY_REQUESTS];
	struct run local[WAY_REQUESTS];
	struct remote_move m = {.right = right_of(t->read),
				.ranges = ranges,
				.local = local,
				.memo = &qp->req.memo};
	struct turn listed = {.blocks = t->blocks, .srqn = t->srqn, .read = t->read};

	do {
		uint8_t *at = rdma_request_at(qp, w);

		if (unlikely(!at))
			break;
		ranges[m.n] = (struct remote_range){.rkey = be32_get(w->seg.remote.rkey),
						    .va = be64_get(w->seg.remote.va),
						    .len = w->piece.bytes};
		local[m.n++] = (struct run){at, w->piece.bytes};
		turn_add(qp, &listed, w);
	} while (turn_next(qp, &listed, min_u32(limit, WAY_REQUESTS), w));
	if (!m.n)
		return;
	m.nlocal = m.n;
	remote_move(r, &m);
	t->way = m.way;
	t->sizes.messages = m.done;
	t->bytes = listed.bytes;
	t->ce = m.done == m.n ? listed.ce : 0;
	for (uint32_t i = 0; i < m.done; i++)
		t->sizes.payload += align_up(ranges[i].len, 4);
}

/* Executes a request that stands alone, and whose memory is within reach, without a list.  False:
 * nothing counts as done. */
static inline bool move_alone(struct qp *qp, const struct bypass_peer *r, struct turn *t,
			      const struct rdma_request *w)
{
	const struct run local = {rdma_request_at(qp, w), w->piece.bytes};
	const struct remote_range at = {.rkey = be32_get(w->seg.remote.rkey),
					.va = be64_get(w->seg.remote.va),
					.len = w->piece.bytes};

	if (unlikely(!local.addr ||
		     !remote_move_plain(r, right_of(w->read), &qp->req.memo, &at, &local)))
		return false;
	t->way = KEY_MAPPED;
	turn_add(qp, t, w);
	return true;
}

/* Enters the peer for a request that may name a shared receive queue. */
static inline bool turn_enter(const struct qp *qp, const struct rdma_request *w,
			      struct bypass_peer *r)
{
	return bypass_peer_enter(qp, right_of(w->read), r) &&
	       (likely(qp->bth != BTH_XRC) || bypass_srq_enter(qp, w->srqn, r) ||
		bypass_peer_leave(qp, r, NULL));
}

/* Executes the requests at the head of the ring.  Returns how many blocks they had. */
static uint32_t take_turn(struct qp *qp, uint32_t ready)
{
	struct turn t = {.sizes = {.unanswered = !qp->reliable, .bth = qp->bth}};
	struct rdma_request first;
	struct bypass_peer r;
	uint8_t opcode;
	uint32_t limit;

	if (!rdma_request_fetch(qp, qp->req.next_block, &first) || unlikely(first.blocks > ready) ||
	    !turn_enter(qp, &first, &r))
		return 0;
	t.blocks = first.blocks;
	t.srqn = first.srqn;
	t.read = first.read;
	t.sizes.kind = first.read ? MESSAGE_ANSWER : MESSAGE_WRITE;
	limit = min_u32(likely(t.blocks == 1) ? ready : ready / t.blocks, TURN);
	if (!r.remote)
		turn_here(qp, &r, limit, &t, &first);
	else if (limit > 1 || !move_alone(qp, &r, &t, &first))
		turn_remote(qp, &r, limit, &t, &first);
	t.sizes.packets = t.sizes.messages;
	if (!bypass_peer_leave(qp, &r, t.sizes.messages ? &t.sizes : NULL))
		return 0;
	bypass_done(qp, t.sizes.packets, t.sizes.messages * t.blocks);
	opcode = t.read ? WQE_OP_RDMA_READ : WQE_OP_RDMA_WRITE;
	trace(bypass, taken, qp->qpn, qp->attr.dest_qpn, wqe_opcode_name(opcode), t.sizes.messages,
	      t.sizes.payload, remote_way_name(&r, t.way));
	if (ce_is_signaled(t.ce))
		send_cqe_success(
			qp, &(struct send_op){.block = (uint16_t)(qp->req.next_block - t.blocks),
					      .opcode = opcode,
					      .ce = t.ce,
					      .len = t.bytes});
	return t.sizes.messages * t.blocks;
}

static inline bool may_run(const struct qp *qp)
{
	return qp_state(qp) == IB_QPS_RTS && !qp->req.stopped && bypass_open(qp) &&
	       !(atomic_load_explicit(&qp->waiting, memory_order_relaxed) & QP_WAIT_RNR);
}

bool rdma_burst_run(struct qp *qp)
{
	int ready;

	if (!may_run(qp))
		return false;
	/* A thread that posts more makes us look again, see struct baton. */
	ready = send_ring_ready(qp, qp->req.next_block);
	while (ready > 0) {
		uint32_t n = take_turn(qp, (uint32_t)ready);

		ready -= (int)n;
		if (!n || (ready && !may_run(qp)))
			return false;
	}
	return !ready;
}
