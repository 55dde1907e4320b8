// SPDX-License-Identifier: BSD-2-Clause
/* Executes requests without packets, counts them at the ports, and ends what peers do so. */
#include "adapter/bypass/bypass.h"

#include "adapter/bypass/bypass_peer.h"
#include "adapter/bypass/remote_memory.h"
#include "adapter/qp/send_cqe.h"
#include "adapter/signed/transfer.h"
#include "base/trace.h"
#include "usermem/usermem.h"

void port_account_read(const struct adapter *a, const struct path *path, struct remote *f,
		       const struct message_sizes *answers)
{
	struct message_sizes m = *answers;
	bool ethernet = a->port->ethernet;
	const struct port_account ours = {
		.sent = request_octets(path, ethernet, &m) * m.messages / 4,
		.sent_packets = m.messages,
		.received = message_octets(path, ethernet, &m) / 4,
		.received_packets = m.packets,
		.request = PORT_COUNTERS,
		.requests = m.messages,
	};

	port_account_both(a, path, f, &ours,
			  m.kind == MESSAGE_ANSWER ? HW_RX_READ_REQUESTS : HW_RX_ATOMIC_REQUESTS);
}

/* Longer messages would keep this thread for too long; between packets it can look at other
 * work. */
#define REMOTE_MAX_BYTES (4u << 20)
/* A message to mapped memory moves in parts of this size: a part stays in the second cache, and
 * what each part costs by itself counts little. */
#define MAPPED_PART_BYTES (128u << 10)
/* After so many atomics to a key whose memory is not mapped, we look at the key again. */
#define ATOMICS_IN_VAIN 255u

/* Gathers a message into a list of runs, in one pass even if its bytes have to be made on the
 * way. */
static bool bypass_gather(struct qp *qp, const struct send_wqe *w, const struct runs *dst)
{
	struct runs src;
	enum mkey_verdict v;

	runs_begin(&src);
	v = send_wqe_runs(qp->adapter, w, qp->create.pdn, 0, 0, w->len, &src);
	if (likely(v == MKEY_OK))
		return usermem_pull(dst->run, dst->n, src.run, src.n);
	if (mkey_staged(v)) {
		struct transfer t = transfer_sent(qp, w, (uint16_t)qp->req.next_block);

		return transfer_move(&t, 0, w->len, dst->run, dst->n) == MKEY_OK;
	}
	return false;
}

static bool write_here(struct qp *qp, const struct bypass_peer *r, const struct send_wqe *w)
{
	/* We do not set .remote, so that windows and bound keys refuse: packets handle them. */
	const struct mkey_use u = {
		.key = w->rkey,
		.pdn = r->pdn,
		.qpn = MKEY_ANY_QPN,
		.access = IB_ACCESS_REMOTE_WRITE,
	};
	struct runs dst;

	runs_begin(&dst);
	return mkey_resolve(qp->adapter, &u, w->raddr, w->len, &dst) == MKEY_OK &&
	       bypass_gather(qp, w, &dst);
}

static uint32_t right_for(const struct wqe_props *p)
{
	if (p->atomic)
		return IB_ACCESS_REMOTE_ATOMIC;
	return p->read ? IB_ACCESS_REMOTE_READ : IB_ACCESS_REMOTE_WRITE;
}

bool bypass_srq_enter(const struct qp *qp, uint32_t srqn, struct bypass_peer *r)
{
	const struct srq *srq;

	if (r->remote) {
		r->srq = remote_srq(r->remote, srqn);
		r->srq_word = atomic_load_explicit(r->srq, memory_order_acquire);
		r->pdn = srq_word_pdn(r->srq_word);
		return srq_word_is(r->srq_word, srqn, r->xrcdn);
	}
	srq = srq_find_xrc(qp->adapter, srqn, r->xrcdn);
	r->pdn = srq ? srq_pdn(srq) : 0;
	return srq;
}

/* Does what bypass_peer_enter does, for a decoded request. */
static bool bypass_enter(const struct qp *qp, const struct send_wqe *w, struct bypass_peer *r)
{
	if (!bypass_peer_enter(qp, right_for(wqe_props(w->opcode)), r))
		return false;
	return likely(qp->bth != BTH_XRC) || bypass_srq_enter(qp, w->srqn, r) ||
	       bypass_peer_leave(qp, r, NULL);
}

static enum message_kind bypass_kind_of(const struct wqe_props *p)
{
	if (p->atomic)
		return MESSAGE_ATOMIC_ANSWER;
	return p->read ? MESSAGE_ANSWER : MESSAGE_WRITE;
}

/* How a request was executed, or why it was not; for traces. */
struct bypass_outcome {
	enum key_way way; /* the way to memory of another process */
	const char *why;
	/* An atomic has changed the memory, so nobody may execute it again. */
	bool atomic;
	uint64_t before;
};

struct staged_move {
	struct qp *qp;
	const struct bypass_peer *r;
	const struct send_wqe *w;
	struct remote_move *m;
	uint64_t most; /* the most bytes of a part */
};

/*
 * Moves a message with signatures, or one from or to too many places.  It makes the bytes in a
 * buffer, and moves them from there in parts, one after the other, each as if it were a request.
 * The parts meet where lines of the target's memory do, so no word is torn.
 */
static bool move_in_parts(void *user, uint8_t *stage, uint64_t bytes)
{
	const struct staged_move *s = user;
	const struct send_wqe *w = s->w;
	struct remote_move *m = s->m;
	bool read = m->right == IB_ACCESS_REMOTE_READ;
	/* nothing is outstanding, so the completer is idle and its state is ours */
	struct transfer t = (read ? transfer_answered
				  : transfer_sent)(s->qp, w, (uint16_t)s->qp->req.next_block);
	uint64_t n;

	bytes = min_u64(bytes, s->most);
	for (uint64_t off = 0; off < w->len; off += n) {
		uint64_t va = w->raddr + off, lead = va % STAGE_ALIGN;
		struct run part = {stage + lead, n = min_u64(bytes - lead, w->len - off)};
		const struct remote_range range = {.rkey = w->rkey, .va = va, .len = n};
		struct remote_move one = {
			.right = m->right,
			.ranges = &range,
			.n = 1,
			.local = &part,
			.nlocal = 1,
			.memo = m->memo,
		};

		if (!read && transfer_move(&t, off, n, &part, 1) != MKEY_OK)
			return false;
		remote_move(s->r, &one);
		m->way = one.way;
		if (!one.done) {
			m->why = one.why;
			return false;
		}
		if (read && transfer_move(&t, off, n, &part, 1) != MKEY_OK)
			return false;
	}
	return true;
}

static bool move_staged(struct qp *qp, const struct bypass_peer *r, const struct send_wqe *w,
			struct remote_move *m)
{
	enum key_way way = remote_way(r, m->right, m->ranges);
	struct staged_move s = {qp, r, w, m, way == KEY_MAPPED ? MAPPED_PART_BYTES : STAGE_BYTES};

	m->why = "local-memory";
	if (way == KEY_PACKETS)
		return false;
	return w->len > STAGE_SMALL_BYTES ? stage_work(&qp->adapter->stage, move_in_parts, &s)
					  : stage_work_small(move_in_parts, &s);
}

static bool move_remote(struct qp *qp, const struct bypass_peer *r, const struct send_wqe *w,
			struct bypass_outcome *out)
{
	const struct remote_range range = {.rkey = w->rkey, .va = w->raddr, .len = w->len};
	uint32_t right = right_for(wqe_props(w->opcode));
	struct remote_move m = {.right = right, .ranges = &range, .n = 1, .memo = &qp->req.memo};
	struct runs local;
	enum mkey_verdict v;
	bool done;

	out->why = "long";
	if (w->len > REMOTE_MAX_BYTES)
		return false;
	runs_begin(&local);
	out->why = "local-memory";
	v = send_wqe_runs(qp->adapter, w, qp->create.pdn,
			  right == IB_ACCESS_REMOTE_READ ? IB_ACCESS_LOCAL_WRITE : 0, 0, w->len,
			  &local);
	if (unlikely(mkey_staged(v))) {
		done = move_staged(qp, r, w, &m);
	} else if (likely(v == MKEY_OK)) {
		m.local = local.run;
		m.nlocal = local.n;
		remote_move(r, &m);
		done = m.done;
	} else {
		return false;
	}
	*out = (struct bypass_outcome){m.way, m.why};
	return done;
}

/*
 * Only the owner can execute atomics in memory that is not mapped.  Each look at the owner's
 * responder would take the word's line from the owner, which needs it back for the packet: twice
 * the way of the request.  The key may get other memory, so we look at it again now and then.
 */
static void atomic_leave_key(struct requester *req, const struct bypass_peer *r,
			     const struct send_wqe *w)
{
	const struct remote_range at = {w->rkey, w->raddr, w->len};

	if (remote_way(r, IB_ACCESS_REMOTE_ATOMIC, &at) == KEY_MAPPED)
		return;
	req->packets_key = w->rkey;
	req->packets_left = ATOMICS_IN_VAIN;
}

static bool atomic_is_left(struct requester *req, const struct send_wqe *w)
{
	if (likely(!req->packets_left) || req->packets_key != w->rkey)
		return false;
	req->packets_left--;
	return true;
}

/* Looks at the place of the answer before it changes anything. */
static bool atomic_remote(struct qp *qp, const struct bypass_peer *r, const struct send_wqe *w,
			  struct bypass_outcome *out)
{
	const struct run answer = {&out->before, sizeof(out->before)};
	struct runs local;

	runs_begin(&local);
	out->why = "local-memory";
	if (send_wqe_runs(qp->adapter, w, qp->create.pdn, IB_ACCESS_LOCAL_WRITE, 0, w->len,
			  &local) != MKEY_OK)
		return false;
	usermem_bring_in(local.run, local.n, true);
	out->why = "key";
	out->atomic = remote_atomic(r, w, &qp->req.memo, &out->before);
	if (!out->atomic) {
		atomic_leave_key(&qp->req, r, w);
		return false;
	}
	out->way = KEY_MAPPED;
	return usermem_pull(local.run, local.n, &answer, 1);
}

static bool bypass_execute(struct qp *qp, const struct bypass_peer *r, const struct send_wqe *w,
			   struct bypass_outcome *out)
{
	if (wqe_props(w->opcode)->atomic)
		return atomic_remote(qp, r, w, out);
	if (r->remote)
		return move_remote(qp, r, w, out);
	*out = (struct bypass_outcome){.why = "memory"};
	return write_here(qp, r, w);
}

static bool bypass_serves(const struct qp *qp, uint8_t opcode)
{
	switch (opcode) {
	case WQE_OP_RDMA_WRITE:
	case WQE_OP_RDMA_READ:
		return true;
	case WQE_OP_ATOMIC_CS:
	case WQE_OP_ATOMIC_FA:
		return qp->bth == BTH_RC;
	default:
		return false;
	}
}

/* The answer to an atomic may have a list of any length; packets care for those. */
static bool bypass_fits(const struct send_wqe *w)
{
	return w->len && (!wqe_props(w->opcode)->atomic || w->len == sizeof(uint64_t));
}

/* The step at which a request left the bypass; left_why finds the rest afterwards. */
enum left_at { LEFT_REQUEST, LEFT_KEY, LEFT_PEER };

static const char *left_why(const struct qp *qp, const struct send_wqe *w, enum left_at at)
{
	const struct wqe_props *p = wqe_props(w->opcode);

	if (!bypass_serves(qp, w->opcode))
		return "opcode";
	if (w->bad || !bypass_fits(w))
		return w->bad ? "malformed" : w->len ? "length-of-answer" : "no-data";
	if (at == LEFT_KEY)
		return "key";
	if (at == LEFT_REQUEST)
		return bypass_observed(qp)   ? "observed"
		       : !qp->req.direct     ? "was-reset"
		       : !qp_is_migrated(qp) ? "path-migration"
					     : "outstanding-requests";
	if (bypass_peer_here(qp))
		return p->write ? "responder-not-ready" : "same-process";
	return wire_remote(qp->adapter->wire, &qp->path, qp->attr.dest_qpn) ? "responder-not-ready"
									    : "not-exposed";
}

/* Out of line, so that the data path has only the test and the call. */
static __attribute__((noinline, cold)) void trace_left(const struct qp *qp,
						       const struct send_wqe *w, const char *why)
{
	if (qp_is_direct(qp))
		trace(bypass, left, qp->qpn, qp->attr.dest_qpn, wqe_opcode_name(w->opcode), w->len,
		      why);
}

static bool bypass_leave(const struct qp *qp, const struct send_wqe *w, enum left_at at)
{
	if (trace_is_on(bypass, left))
		trace_left(qp, w, left_why(qp, w, at));
	return false;
}

/* Keeps the old value for the packet that follows (send_read_or_atomic). */
static void atomic_note(struct requester *req, uint64_t before)
{
	req->executed_before = before;
	req->executed = true;
}

/* Executes a request that bypass_serves. */
static bool bypass_try(struct qp *qp, const struct send_wqe *w)
{
	const struct wqe_props *p = wqe_props(w->opcode);
	const struct message_sizes m = {
		.kind = bypass_kind_of(p),
		.messages = 1,
		.packets = w->len <= qp->mtu ? 1 : div_round_up(w->len, qp->mtu),
		.payload = p->atomic ? 0 : align_up(w->len, 4),
		.unanswered = !qp->reliable,
		.bth = qp->bth,
	};
	uint32_t block = qp->req.next_block;
	struct bypass_outcome out = {.way = KEY_PACKETS};
	struct bypass_peer r;
	uint8_t ce;
	bool done;

	if (p->atomic && atomic_is_left(&qp->req, w))
		return bypass_leave(qp, w, LEFT_KEY);
	if (!bypass_enter(qp, w, &r))
		return bypass_leave(qp, w, LEFT_PEER);
	done = bypass_execute(qp, &r, w, &out);
	if (!bypass_peer_leave(qp, &r, done ? &m : NULL)) {
		if (unlikely(out.atomic))
			atomic_note(&qp->req, out.before);
		if (trace_is_on(bypass, left))
			trace_left(qp, w, done ? "responder-moved" : out.why);
		return false;
	}
	bypass_done(qp, m.packets, w->nblocks);
	trace(bypass, taken, qp->qpn, qp->attr.dest_qpn, wqe_opcode_name(w->opcode), 1, w->len,
	      remote_way_name(&r, out.way));
	ce = qp_ce(qp, w->fm_ce_se);
	trace(wqe, taken, qp->qpn, (uint16_t)block, wqe_opcode_name(w->opcode), w->len);
	if (!ce_is_signaled(ce))
		trace(wqe, done, qp->qpn, (uint16_t)block, "SUCCESS");
	else
		send_cqe_success(qp, &(struct send_op){.block = (uint16_t)block,
						       .opcode = w->opcode,
						       .ce = ce,
						       .len = (uint32_t)w->len});
	return true;
}

bool bypass_take(struct qp *qp, const struct send_wqe *w)
{
	if (!bypass_serves(qp, w->opcode) || w->bad || !bypass_fits(w) || !bypass_open(qp) ||
	    unlikely(qp->req.executed))
		return bypass_leave(qp, w, LEFT_REQUEST);
	return bypass_try(qp, w);
}

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
