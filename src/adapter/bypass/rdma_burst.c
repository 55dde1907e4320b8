// SPDX-License-Identifier: BSD-2-Clause
/*
 * Executes bursts of the plainest requests: RDMA WRITEs of one packet with one piece of data, in
 * one block of the ring (of a DCI: in two), to a peer of the bypass (bypass_peer.h); and READs of
 * the same form from a peer in another process.  This file runs ahead of bypass.c and of the
 * requester.  It decodes no other requests, and checks once per burst what holds for all of its
 * requests, because programs that want a message rate post such requests.
 */
#include "adapter/bypass/bypass.h"

#include "adapter/bypass/remote_memory.h"
#include "adapter/qp/send_cqe.h"
#include "adapter/qp/send_wqe.h"
#include "base/trace.h"

#include <string.h>

/* The plainest request, as rdma_burst.c reads it from the ring: an RDMA WRITE or READ of one packet
 * with one piece of data. */

/* The segments at the start of such a request. */
struct rdma_segments {
	struct wqe_ctrl ctrl;
	struct wqe_raddr remote;
	struct wqe_data data;
};

#define RDMA_UNITS (sizeof(struct rdma_segments) / WQE_UNIT)

struct rdma_request {
	struct rdma_segments seg; /* a copy */
	struct send_piece piece;
	uint32_t blocks; /* of the ring */
	uint32_t srqn;	 /* XRC */
	bool read;
};

/* Does the control segment begin such a request?  Then w->read is set. */
static inline bool rdma_request_begins(const struct qp *qp, const struct wqe_ctrl *ctrl,
				       struct rdma_request *w)
{
	uint8_t opcode = wqe_opcode(ctrl);

	w->read = opcode == WQE_OP_RDMA_READ;
	return (likely(opcode == WQE_OP_RDMA_WRITE) || (w->read && qp->reliable)) &&
	       wqe_qpn(ctrl) == qp->qpn;
}

/* Reads the data segment, which is this one in the ring and the last of 'units'. */
static inline bool rdma_request_piece(const struct qp *qp, const uint8_t *at, uint32_t units,
				      struct rdma_request *w)
{
	return send_piece_read(qp, &w->seg.ctrl, &w->seg.data, at, units, &w->piece) &&
	       likely(!w->read || !w->piece.inlined);
}

/* Where the data lie in our memory; NULL: its key refuses. */
static inline uint8_t *rdma_request_at(const struct qp *qp, const struct rdma_request *w)
{
	return (uint8_t *)(uintptr_t)send_piece_at(qp, &w->seg.data, &w->piece,
						   w->read ? IB_ACCESS_LOCAL_WRITE : 0);
}

/*
 * Reads the request at block of an XRC or DC queue pair, which has a further segment behind the
 * first.  False: it is of another kind, or for another target than that to which the DCI is
 * connected.
 */
static __attribute__((noinline)) bool rdma_request_xrc_dc(const struct qp *qp, uint32_t block,
							  struct rdma_request *w);

/* Reads the request at block; false: it is of another kind. */
static inline __attribute__((always_inline)) bool
rdma_request_fetch(const struct qp *qp, uint32_t block, struct rdma_request *w)
{
	const uint8_t *at = send_ring_at(qp, block);

	if (unlikely(qp->bth != BTH_RC && qp->bth != BTH_UC))
		return rdma_request_xrc_dc(qp, block, w);
	w->blocks = 1;
	w->srqn = 0;
	return likely(usermem_fetch(&w->seg, at, sizeof(w->seg))) &&
	       rdma_request_begins(qp, &w->seg.ctrl, w) &&
	       rdma_request_piece(qp, at + offsetof(struct rdma_segments, data), RDMA_UNITS, w);
}

/* Reads plain requests of XRC and of a DCI: the queue or the target that they name stands in front
 * of the address. */

/* The segments behind the leading one. */
struct request_rest {
	struct wqe_raddr remote;
	struct wqe_data data;
};

static bool request_piece(const struct qp *qp, const struct request_rest *rest, const uint8_t *at,
			  uint32_t leading_bytes, struct rdma_request *w)
{
	w->seg.remote = rest->remote;
	w->seg.data = rest->data;
	return rdma_request_piece(qp, at + offsetof(struct request_rest, data),
				  RDMA_UNITS + leading_bytes / WQE_UNIT, w);
}

static bool fetch_xrc(const struct qp *qp, const uint8_t *at, struct rdma_request *w)
{
	struct {
		struct wqe_xrc xrc;
		struct request_rest rest;
	} s;

	if (!usermem_fetch(&s, at + sizeof(struct wqe_ctrl), sizeof(s)))
		return false;
	w->blocks = 1;
	w->srqn = be32_get(s.xrc.xrc_srqn) & IB_QPN_MASK;
	return request_piece(qp, &s.rest, at + sizeof(struct wqe_ctrl) + sizeof(s.xrc),
			     sizeof(s.xrc), w);
}

/* Does the DCI stay with the target that it is connected to? */
static bool stays_connected(const struct qp *qp, const struct wqe_av *av)
{
	const struct wqe_av *target = qp->req.target;

	return target && be32_get(av->dqp_dct) & WQE_AV_EXTENDED &&
	       memcmp(av, target, sizeof(*av)) == 0;
}

static bool fetch_dc(const struct qp *qp, const uint8_t *at, const uint8_t *next,
		     struct rdma_request *w)
{
	struct request_rest rest;
	struct wqe_av av;

	static_assert(sizeof(struct wqe_ctrl) + sizeof(av) == WQE_BLOCK, "it fills the block");
	if (!usermem_fetch(&av, at + sizeof(struct wqe_ctrl), sizeof(av)) ||
	    !stays_connected(qp, &av) || !usermem_fetch(&rest, next, sizeof(rest)))
		return false;
	w->blocks = 2;
	return request_piece(qp, &rest, next, sizeof(av), w);
}

static bool rdma_request_xrc_dc(const struct qp *qp, uint32_t block, struct rdma_request *w)
{
	const uint8_t *at = send_ring_at(qp, block);

	w->srqn = 0;
	if (!usermem_fetch(&w->seg.ctrl, at, sizeof(w->seg.ctrl)) ||
	    !rdma_request_begins(qp, &w->seg.ctrl, w))
		return false;
	if (qp->bth == BTH_XRC)
		return fetch_xrc(qp, at, w);
	/* a ring's end lies between blocks */
	return fetch_dc(qp, at, send_ring_at(qp, block + 1), w);
}

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
	uint16_t block;
	uint32_t limit;

	if (!rdma_request_fetch(qp, qp->req.next_block, &first) || unlikely(first.blocks > ready) ||
	    !turn_enter(qp, &first, &r))
		return 0;
	t.blocks = first.blocks;
	t.srqn = first.srqn;
	t.read = first.read;
	t.sizes.kind = first.read ? MESSAGE_ANSWER : MESSAGE_WRITE;
	limit = min_u32(likely(t.blocks == 1) ? ready : ready / t.blocks, TURN);
	/* A trace has the times of each request. */
	if (trace_is_on(wqe, taken))
		limit = 1;
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
	block = (uint16_t)(qp->req.next_block - t.blocks);
	trace(wqe, taken, qp->qpn, block, wqe_opcode_name(opcode), t.bytes);
	if (ce_is_signaled(t.ce))
		send_cqe_success(
			qp, &(struct send_op){
				    .block = block, .opcode = opcode, .ce = t.ce, .len = t.bytes});
	else
		trace(wqe, done, qp->qpn, block, "SUCCESS");
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
