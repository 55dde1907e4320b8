// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/bypass/remote_memory.h"

/* How often one request begins again because the target revoked something meanwhile, mostly what
 * is none of its business. */
#define MOVE_TRIES 4

/* A list of requests whose keys lead the same way. */
struct reached {
	enum key_way way;
	uint32_t n;
	struct run runs[WAY_REQUESTS];
};

/* Where the range lies; false: its key refuses, or its memory is not within reach. */
static bool range_find(const struct bypass_peer *r, uint32_t right, const struct remote_range *at,
		       enum key_way *way, struct run *out)
{
	struct key_block k;
	uint64_t off;

	if (!remote_key(r->remote, at->rkey, &k) || k.pdn != r->pdn || (k.access & right) != right)
		return false;
	off = at->va - k.iova;
	if (!range_inside(off, at->len, k.length))
		return false;
	*way = k.place.way;
	out->len = at->len;
	if (k.place.way == KEY_KERNEL)
		out->addr = (void *)(uintptr_t)(k.place.addr + off);
	else if (k.place.way == KEY_MAPPED)
		out->addr = segment_at(&r->remote->segments, k.place.segment, k.place.offset + off,
				       at->len);
	else
		out->addr = NULL;
	return out->addr;
}

static void ranges_find(const struct bypass_peer *r, const struct remote_move *m,
			struct reached *to)
{
	for (to->n = 0; to->n < m->n; to->n++) {
		enum key_way way = KEY_PACKETS;

		if (!range_find(r, m->right, &m->ranges[to->n], &way, &to->runs[to->n]) ||
		    (to->n && way != to->way))
			return;
		to->way = way;
	}
}

/* The responder is where it was, though perhaps closed for a moment. */
static bool word_stands(const struct bypass_peer *r)
{
	return likely(!((qp_word_load(&r->block->word) ^ r->word) & ~QP_WORD_OPEN));
}

static enum way_verdict way_take(struct way_peer *p, const struct reached *to,
				 struct remote_move *m, struct way_access *a)
{
	enum way_verdict v;

	a->remote = to->runs;
	a->requests = to->n;
	if (to->way == KEY_MAPPED) {
		m->way = "mapped";
		v = way_mapped(a);
	} else {
		m->way = "kernel";
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
static bool move_once(const struct bypass_peer *r, struct remote_move *m)
{
	struct way_peer *p = &r->remote->reach;
	struct way_access a = {
		.alive = p->alive,
		.read = m->right == IB_ACCESS_REMOTE_READ,
		.local = m->local,
		.nlocal = m->nlocal,
	};
	enum way_verdict v = WAY_DONE;
	struct reached to;

	m->done = 0;
	if (!access_claim(p->table, &a.hold)) {
		m->why = "no-slot";
		return true;
	}
	/* The looks at the word and at the keys come after the claim: see reach/access.h. */
	if (word_stands(r)) {
		ranges_find(r, m, &to);
		if (to.n)
			v = way_take(p, &to, m, &a);
		m->why = verdict_name(v);
	} else {
		m->why = "responder-moved";
	}
	access_release(&a.hold);
	return v != WAY_REVOKED;
}

void remote_move(const struct bypass_peer *r, struct remote_move *m)
{
	m->way = "none";
	for (int i = 0; i < MOVE_TRIES && !move_once(r, m); i++)
		;
}
