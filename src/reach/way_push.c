// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes what a peer has asked for to the places that it has sent.  The peer may take these back at
 * any time, like what it sends by reference (way_pull.c): it says so in a word, and revokes
 * (access.h).  We look at the word after we have claimed a slot of the peer's, so either we see
 * that, or the peer waits for our call.  While the peer moves its pages nobody enters.
 */
#include "reach/way.h"

#include "base/run.h"

/* How often we begin again without having moved anything: mostly the peer has revoked something
 * else. */
#define PUSH_TRIES 16u

struct push {
	struct way_peer *to;
	const _Atomic(uint32_t) *withdrawn;
	struct run_cursor dst, src;
};

/* What one access moves. */
struct push_part {
	struct run remote[WAY_REQUESTS];
	uint32_t requests;
	struct run local[RUNS_MAX];
	uint32_t nlocal;
};

/* Lists at most max runs with at most 'most' bytes, from the cursor on; returns the bytes. */
static size_t part_take(struct run *out, uint32_t max, uint32_t *n, struct run_cursor c,
			size_t most)
{
	size_t sum = 0;

	for (*n = 0; *n < max && c.left && sum < most; ++*n) {
		size_t len = min_u64(run_cursor_left(&c), most - sum);

		out[*n] = (struct run){run_cursor_at(&c), len};
		sum += len;
		run_cursor_advance(&c, len);
	}
	return sum;
}

static size_t part_places(struct push_part *part, struct run_cursor c, size_t most)
{
	return part_take(part->remote, WAY_REQUESTS, &part->requests, c, most);
}

static bool push_is_withdrawn(const struct push *p)
{
	return atomic_load_explicit(p->withdrawn, memory_order_acquire);
}

static enum way_verdict push_claimed(const struct push *p, const struct push_part *part,
				     struct way_access *a)
{
	enum way_verdict v = WAY_REVOKED;

	if (!access_claim(p->to->table, &a->hold))
		return WAY_INTERRUPTED;
	/* This look comes after the claim: see access.h. */
	if (!push_is_withdrawn(p)) {
		a->local = part->local;
		a->nlocal = part->nlocal;
		a->remote = part->remote;
		a->requests = part->requests;
		v = way_kernel(a);
	}
	access_release(&a->hold);
	return v;
}

static enum way_verdict push_part(struct push *p)
{
	struct way_access a = {.alive = p->to->alive, .tid = way_kernel_tid(p->to)};
	struct push_part part;
	enum way_verdict v;
	size_t bytes;

	if (!a.tid)
		return WAY_CLOSED;
	bytes = part_places(&part, p->dst, SIZE_MAX);
	bytes = part_take(part.local, RUNS_MAX, &part.nlocal, p->src, bytes);
	bytes = part_places(&part, p->dst, bytes);
	v = push_claimed(p, &part, &a);
	if (v == WAY_CLOSED)
		way_kernel_close(p->to);
	if (v == WAY_DONE) {
		run_cursor_advance(&p->dst, bytes);
		run_cursor_advance(&p->src, bytes);
	}
	return v;
}

enum way_verdict way_push(struct way_peer *to, const struct run *dst, uint32_t ndst, uint64_t off,
			  const struct run *src, uint32_t nsrc, const _Atomic(uint32_t) *withdrawn)
{
	struct push p = {to, withdrawn, run_cursor_start(dst, ndst), run_cursor_start(src, nsrc)};
	enum way_verdict v = WAY_DONE;
	unsigned tries = 0;

	run_cursor_advance(&p.dst, off);
	while (p.src.left && p.dst.left) {
		v = push_part(&p);
		tries = v == WAY_DONE ? 0 : tries + 1;
		if (v == WAY_REVOKED && push_is_withdrawn(&p))
			return v;
		if ((v != WAY_DONE && v != WAY_REVOKED) || tries == PUSH_TRIES)
			return v == WAY_REVOKED ? WAY_INTERRUPTED : v;
	}
	return p.src.left ? WAY_FAULT : WAY_DONE;
}
