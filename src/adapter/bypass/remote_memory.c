// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/bypass/remote_memory.h"

#include "usermem/usermem.h"

/* How often one request begins again because the target revoked something meanwhile, mostly what
 * is none of its business. */
#define MOVE_TRIES 4

/* A list of requests whose keys lead the same way. */
struct reached {
	enum key_way way;
	uint32_t n;
	/* Why the next one is not among them: its memory is mapped, but not here yet. */
	bool missing;
	struct key_place at;
	struct run runs[WAY_REQUESTS];
};

/* The key of the range, and where in it that begins; false: it refuses. */
static bool range_key(const struct bypass_peer *r, uint32_t right, const struct remote_range *at,
		      struct key_block *k, uint64_t *off)
{
	if (!remote_key(r->remote, at->rkey, k) || k->pdn != r->pdn || (k->access & right) != right)
		return false;
	*off = at->va - k->iova;
	return range_inside(*off, at->len, k->length);
}

bool remote_takes_parts(const struct bypass_peer *r, uint32_t right, const struct remote_range *at)
{
	struct key_block k;
	uint64_t off;

	/* By the kernel, so many calls are no faster than packets. */
	return range_key(r, right, at, &k, &off) && k.place.way == KEY_MAPPED;
}

/* Where the range lies; false: its key refuses.  The run has no address if its memory is not within
 * reach. */
static bool range_find(const struct bypass_peer *r, uint32_t right, const struct remote_range *at,
		       struct key_place *place, struct run *out)
{
	struct key_block k;
	uint64_t off;

	if (!range_key(r, right, at, &k, &off))
		return false;
	*place = k.place;
	place->offset += off;
	out->len = at->len;
	if (place->way == KEY_KERNEL)
		out->addr = (void *)(uintptr_t)(place->addr + off);
	else if (place->way == KEY_MAPPED)
		out->addr =
			segment_at(&r->remote->segments, place->segment, place->offset, at->len);
	else
		out->addr = NULL;
	return true;
}

static void ranges_find(const struct bypass_peer *r, const struct remote_move *m,
			struct reached *to)
{
	for (to->n = 0; to->n < m->n; to->n++) {
		struct run *run = &to->runs[to->n];
		struct key_place place;

		if (!range_find(r, m->right, &m->ranges[to->n], &place, run))
			return;
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

/* The responder is where it was, though perhaps closed for a moment, and has not been forbidden
 * this. */
static bool responder_stands(const struct bypass_peer *r, uint32_t right)
{
	return likely(!((qp_word_load(&r->block->word) ^ r->word) & ~QP_WORD_OPEN) &&
		      (__atomic_load_n(&r->block->view.access, __ATOMIC_RELAXED) & right) == right);
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
		[WAY_DONE] = "key", /* of the next request */
		[WAY_REVOKED] = "revoked", [WAY_CLOSED] = "not-allowed",
		[WAY_FAULT] = "fault",	   [WAY_INTERRUPTED] = "interrupted",
		[WAY_UNFIT] = "alignment",
	};

	return names[v];
}

/* True: everything was looked at that can be; false: begin again. */
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
	if (!access_enter(p->table, &a.hold)) {
		m->why = "no-slot";
		return true;
	}
	/* The looks at the word and at the keys come after the claim: see reach/access.h. */
	if (responder_stands(r, m->right)) {
		ranges_find(r, m, to);
		if (to->n)
			v = way_take(p, to, m, &a);
		m->why = to->missing ? "not-mapped" : verdict_name(v);
	} else {
		m->why = "responder-moved";
	}
	access_release(&a.hold);
	/* What is executed is not executed again, whatever became of the rest. */
	return v != WAY_REVOKED || m->done;
}

static void move_bounded(const struct bypass_peer *r, struct remote_move *m, struct reached *to)
{
	m->way = KEY_PACKETS;
	/* A slot is not held where a fault of our own program's memory may wait for somebody. */
	usermem_bring_in(m->local, m->nlocal, m->right == IB_ACCESS_REMOTE_READ);
	for (int i = 0; i < MOVE_TRIES && !move_once(r, m, to); i++)
		;
}

/* Once per chunk.  No slot is held: nobody who revokes waits for the system calls. */
static __attribute__((noinline, cold)) bool map_missing(const struct bypass_peer *r,
							const struct reached *to)
{
	return segment_view_map(&r->remote->segments, to->at.segment, to->at.offset);
}

void remote_move(const struct bypass_peer *r, struct remote_move *m)
{
	struct reached to;

	move_bounded(r, m, &to);
	/* If packets carried it, requests behind it would find it outstanding, and so on: a queue
	 * that never drains would never come back. */
	if (unlikely(!m->done && to.missing) && map_missing(r, &to))
		move_bounded(r, m, &to);
}
