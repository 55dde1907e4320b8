// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/bypass/remote_memory.h"

/* How often one request begins again because the target has revoked something meanwhile, mostly
 * something else. */
#define MOVE_TRIES 4

/* A list of requests whose keys lead the same way, and where these requests lead. */
struct reached {
	enum key_way way;
	uint32_t n;
	/* The next request is not among them because its memory is mapped in the target, but not
	 * here yet. */
	bool missing;
	struct key_place at;
	struct run runs[WAY_REQUESTS];
};

/* Finds the key of the range; false: the key refuses the range. */
static bool range_key(const struct bypass_peer *r, uint32_t right, const struct remote_range *at,
		      struct key_block *k)
{
	return remote_key(r->remote, at->rkey, k) && k->pdn == r->pdn &&
	       (k->access & right) == right && range_inside(at->va - k->iova, at->len, k->length);
}

enum key_way remote_way(const struct bypass_peer *r, uint32_t right, const struct remote_range *at)
{
	struct key_block k;

	return range_key(r, right, at, &k) ? k.place.way : KEY_PACKETS;
}

/* Remembers that the range lies at that address, and what else the key allows around it. */
static void memo_keep(struct key_memo *m, const struct bypass_peer *r, const struct access *hold,
		      uint64_t let_go, const struct remote_range *at, const struct key_block *k,
		      uint8_t *addr)
{
	uint64_t off = at->va - k->iova;
	struct segment_extent e =
		segment_extent(&r->remote->segments, k->place.segment, k->place.offset + off);
	uint64_t before = min_u64(e.before, off);

	*m = (struct key_memo){
		.remote = r->remote->number,
		.revocations = hold->seen,
		.let_go = let_go,
		.key = at->rkey,
		.pdn = k->pdn,
		.access = k->access,
		.va = at->va - before,
		.length = before + min_u64(e.after, k->length - off),
		.at = addr - before,
	};
}

/* ---- where requests lead ---- */

/* Finds where the range lies; false: its key refuses.  The run gets no address if the memory is out
 * of reach. */
static bool range_find(const struct bypass_peer *r, const struct remote_move *m,
		       const struct access *hold, const struct remote_range *at,
		       struct key_place *place, struct run *out)
{
	const struct segment_view *segments = &r->remote->segments;
	uint64_t let_go = atomic_load_explicit(&segments->let_go, memory_order_acquire);
	struct key_block k;

	if (!range_key(r, m->right, at, &k))
		return false;
	*place = k.place;
	place->offset += at->va - k.iova;
	out->len = at->len;
	out->addr = NULL;
	if (place->way == KEY_KERNEL) {
		out->addr = (void *)(uintptr_t)(place->addr + (at->va - k.iova));
	} else if (place->way == KEY_MAPPED) {
		out->addr = segment_at(segments, place->segment, place->offset, at->len);
		if (out->addr)
			memo_keep(m->memo, r, hold, let_go, at, &k, out->addr);
	}
	return true;
}

static void ranges_find(const struct bypass_peer *r, const struct remote_move *m,
			const struct access *hold, struct reached *to)
{
	bool holds = memo_holds(m->memo, r, hold);

	for (to->n = 0; to->n < m->n; to->n++) {
		const struct remote_range *at = &m->ranges[to->n];
		struct run *run = &to->runs[to->n];
		struct key_place place;

		if (likely(holds && memo_covers(m->memo, m->right, at) &&
			   (!to->n || to->way == KEY_MAPPED))) {
			*run = (struct run){memo_at(m->memo, at), at->len};
			to->way = KEY_MAPPED;
			continue;
		}
		if (!range_find(r, m, hold, at, &place, run))
			return;
		holds = memo_holds(m->memo, r, hold);
		if (unlikely(!run->addr)) {
			to->missing = place.way == KEY_MAPPED;
			to->at = place;
			return;
		}
		if (to->n && place.way != to->way)
			return;
		to->way = place.way;
	}
}

static enum way_verdict way_take(struct way_peer *p, const struct reached *to,
				 struct remote_move *m, struct way_access *a)
{
	enum way_verdict v;

	a->remote = to->runs;
	a->requests = to->n;
	m->way = to->way;
	if (to->way == KEY_MAPPED) {
		v = way_mapped(a);
	} else {
		a->tid = way_kernel_tid(p);
		if (unlikely(!a->tid))
			return WAY_CLOSED;
		v = way_kernel(a);
		if (unlikely(v == WAY_CLOSED))
			way_kernel_close(p);
	}
	m->done = a->done;
	return v;
}

static const char *verdict_name(enum way_verdict v)
{
	static const char *const names[] = {
		[WAY_DONE] = "key", /* the key of the next request refuses */
		[WAY_REVOKED] = "revoked", [WAY_CLOSED] = "not-allowed",
		[WAY_FAULT] = "fault",	   [WAY_INTERRUPTED] = "interrupted",
		[WAY_UNFIT] = "alignment",
	};

	return names[v];
}

/* True: there is nothing to try again; false: begin again. */
static bool move_once(const struct bypass_peer *r, struct remote_move *m, struct reached *to)
{
	struct way_peer *p = &r->remote->reach;
	struct way_access a = {
		.alive = p->alive,
		.read = m->right == IB_ACCESS_REMOTE_READ,
		.local = m->local,
		.nlocal = m->nlocal,
	};
	enum way_verdict v = WAY_DONE;

	m->done = 0;
	to->missing = false;
	if (!access_claim(p->table, &a.hold)) {
		m->why = "no-slot";
		return true;
	}
	/* The looks at the word and at the keys come after the claim: see reach/access.h. */
	if (responder_stands(r, m->right)) {
		ranges_find(r, m, &a.hold, to);
		if (to->n)
			v = way_take(p, to, m, &a);
		m->why = to->missing ? "not-mapped" : verdict_name(v);
	} else {
		m->why = "responder-moved";
	}
	access_release(&a.hold);
	/* We must not execute again what is executed, whatever became of the rest. */
	return v != WAY_REVOKED || m->done;
}

static void move_bounded(const struct bypass_peer *r, struct remote_move *m, struct reached *to)
{
	m->way = KEY_PACKETS;
	/* We bring our memory in before we hold a slot, because a fault of our own program's memory
	 * may wait for somebody. */
	usermem_bring_in(m->local, m->nlocal, m->right == IB_ACCESS_REMOTE_READ);
	for (int i = 0; i < MOVE_TRIES && !move_once(r, m, to); i++)
		;
}

/* Maps the missing memory; this happens once per chunk.  We hold no slot, so that nobody who
 * revokes waits for the system calls. */
static __attribute__((noinline, cold)) bool map_missing(const struct bypass_peer *r,
							const struct reached *to)
{
	return segment_view_map(&r->remote->segments, to->at.segment, to->at.offset);
}

void remote_move(const struct bypass_peer *r, struct remote_move *m)
{
	struct reached to;

	move_bounded(r, m, &to);
	/* If packets carried this request, the requests behind it would find it outstanding, and so
	 * on: a queue that never drains would never come back to the bypass. */
	if (unlikely(!m->done && to.missing) && map_missing(r, &to))
		move_bounded(r, m, &to);
}

/* ---- atomics ---- */

static bool atomic_execute(const struct bypass_peer *r, const struct access *hold,
			   const struct send_wqe *w, void *at, uint64_t *before)
{
	const struct rseq_check check = way_mapped_check(hold, r->remote->reach.alive);

	if (unlikely(!check.word_value))
		return false;
	return (w->opcode == WQE_OP_ATOMIC_FA
			? usermem_fetch_add_checked(at, w->swap_add, before, &check)
			: usermem_compare_swap_checked(at, w->compare, w->swap_add, before,
						       &check)) == USERMEM_DONE;
}

static bool atomic_once(const struct bypass_peer *r, const struct remote_move *m,
			const struct send_wqe *w, struct reached *to, uint64_t *before)
{
	struct access hold;
	bool done = false;

	to->missing = false;
	if (!access_claim(r->remote->reach.table, &hold))
		return false;
	if (responder_stands(r, m->right)) {
		ranges_find(r, m, &hold, to);
		done = to->n && to->way == KEY_MAPPED &&
		       atomic_execute(r, &hold, w, to->runs[0].addr, before);
	}
	access_release(&hold);
	return done;
}

bool remote_atomic(const struct bypass_peer *r, const struct send_wqe *w, struct key_memo *memo,
		   uint64_t *before)
{
	const struct remote_range range = {w->rkey, w->raddr, sizeof(*before)};
	const struct remote_move m = {
		.right = IB_ACCESS_REMOTE_ATOMIC, .ranges = &range, .n = 1, .memo = memo};
	struct reached to;

	if (w->raddr % sizeof(*before))
		return false;
	return atomic_once(r, &m, w, &to, before) ||
	       (unlikely(to.missing) && map_missing(r, &to) && atomic_once(r, &m, w, &to, before));
}
