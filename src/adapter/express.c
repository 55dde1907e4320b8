// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/express.h"

#include "adapter/reach.h"
#include "adapter/send_wqe.h"
#include "adapter/shortcut.h"
#include "wire/usermem.h"

/* So many at most under one hold of the peer's responder. */
#define TURN 32u

/* How such a request begins. */
struct request {
	struct wqe_ctrl ctrl;
	struct wqe_raddr remote;
	struct wqe_data data;
};

#define UNITS (sizeof(struct request) / WQE_UNIT)
/* Where its data begin if they are in the request itself. */
#define INLINED (offsetof(struct request, data) + sizeof(be32))

/* Bytes of data; 0: it is not such a request. */
static uint32_t plain_bytes(const struct qp *qp, const struct request *w)
{
	uint32_t ds = wqe_ds(&w->ctrl), count = be32_get(w->data.byte_count), bytes;

	if (unlikely(wqe_opcode(&w->ctrl) != WQE_OP_RDMA_WRITE || wqe_qpn(&w->ctrl) != qp->qpn))
		return 0;
	if (!(count & WQE_DATA_INLINE))
		return ds == UNITS && count <= qp->mtu ? count : 0;
	bytes = count & WQE_DATA_INLINE_LEN;
	if (ds > WQE_BLOCK / WQE_UNIT ||
	    ds != UNITS - 1 + div_round_up(sizeof(be32) + bytes, WQE_UNIT))
		return 0;
	return bytes;
}

static bool write_one(struct qp *qp, const struct reach *r, const struct request *w,
		      const uint8_t *inlined, uint32_t bytes)
{
	struct adapter *a = qp->adapter;
	uint64_t va = be64_get(w->remote.va);
	uint32_t rkey = be32_get(w->remote.rkey);
	const uint8_t *from = inlined;
	uint8_t *to;

	if (!(be32_get(w->data.byte_count) & WQE_DATA_INLINE))
		from = mkey_region_at(a, be32_get(w->data.lkey), qp->init.pdn, 0,
				      be64_get(w->data.addr), bytes);
	to = r->far ? reach_far_memory(r, rkey, IB_ACCESS_REMOTE_WRITE, va, bytes)
		    : mkey_region_at(a, rkey, r->pdn, IB_ACCESS_REMOTE_WRITE, va, bytes);
	return likely(from && to) && usermem_copy(to, from, bytes);
}

static const uint8_t *block_at(const struct qp *qp, uint32_t block)
{
	return (const uint8_t *)qp->init.sq_buf +
	       (size_t)(block & (qp->init.sq_blocks - 1)) * WQE_BLOCK;
}

static bool is_signaled(const struct qp *qp, const struct request *w)
{
	return w->ctrl.fm_ce_se & WQE_CTRL_CE_ALWAYS || qp->init.sq_sig_all;
}

/*
 * Up to the first that is signaled: its completion waits until the peer's responder is let go.
 * Says how many there were.
 */
static uint32_t take_turn(struct qp *qp, uint32_t ready)
{
	struct message_sizes done = {.kind = MESSAGE_WRITE};
	bool signaled = false;
	struct reach r;

	if (!reach_enter(qp, IB_ACCESS_REMOTE_WRITE, &r))
		return 0;
	while (done.messages < min_u32(ready, TURN) && !signaled) {
		const uint8_t *block = block_at(qp, qp->req.next_block + done.messages);
		struct request w;
		uint32_t bytes;

		if (!usermem_copy(&w, block, sizeof(w)))
			break;
		bytes = plain_bytes(qp, &w);
		if (!bytes || !write_one(qp, &r, &w, block + INLINED, bytes))
			break;
		done.messages++;
		done.payload += align_up(bytes, 4);
		signaled = is_signaled(qp, &w);
	}
	done.packets = done.messages;
	reach_leave(qp, &r, done.messages ? &done : NULL);
	if (!done.messages)
		return 0;
	qp->req.psn = psn_add(qp->req.psn, done.packets);
	atomic_store_explicit(&qp->comp.acked_psn, qp->req.psn, memory_order_release);
	qp->req.next_block += done.messages;
	if (signaled)
		completer_push_success(qp,
				       &(struct swr){.block = (uint16_t)(qp->req.next_block - 1),
						     .opcode = WQE_OP_RDMA_WRITE});
	return done.messages;
}

static bool may_run(const struct qp *qp)
{
	return qp_state(qp) == IB_QPS_RTS && !qp->req.stopped && shortcut_open(qp) &&
	       !(atomic_load_explicit(&qp->waiting, memory_order_relaxed) & QP_WAIT_RNR);
}

bool express_run(struct qp *qp)
{
	int ready;

	if (!may_run(qp))
		return false;
	/* Whoever posts more has us look again: see struct baton. */
	ready = send_ring_ready(qp, qp->req.next_block);
	while (ready > 0) {
		uint32_t n = take_turn(qp, (uint32_t)ready);

		ready -= (int)n;
		if (!n || (ready && !may_run(qp)))
			return false;
	}
	return !ready;
}
