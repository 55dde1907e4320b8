// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads what a peer has sent by reference.  The peer may give it up at any time: it says so in a
 * word, and revokes (access.h).  We look at the word after we have claimed a slot of the peer's, so
 * either we see it, or the peer waits for our call.
 */
#include "reach/way_call.h"

#include "base/run_cursor.h"
#include "usermem/usermem.h"

/* A program polls on the last bytes of a message, so they are stored when all else is in place. */
#define TAIL_BYTES 8u
/* How often a call begins again without having moved anything. */
#define PULL_TRIES 16u

struct pull {
	struct way_peer *from;
	const _Atomic(uint32_t) *withdrawn;
	struct run_cursor dst, src;
};

/* What one call moves: the last bytes of it go to a buffer of ours. */
struct part {
	struct iovec local[RUNS_MAX + 1];
	unsigned long nlocal;
	struct iovec remote[ACCESS_PIECES];
	unsigned long nremote;
	size_t bytes;
	unsigned char tail[TAIL_BYTES];
	void *tail_to;
	size_t held;
};

/* Lists the memory from c on: at most max bytes, and only up to a run that is discarded.  Returns
 * how many bytes the list covers. */
static size_t part_list(struct iovec *iov, unsigned long *count, unsigned long limit,
			struct run_cursor c, size_t max)
{
	size_t sum = 0;

	for (*count = 0; *count < limit && c.left && sum < max && c.run->addr != RUN_DISCARD;
	     (*count)++) {
		size_t n = c.run->len - c.off;

		if (n > max - sum)
			n = max - sum;
		iov[*count] = (struct iovec){.iov_base = run_cursor_at(&c), .iov_len = n};
		sum += n;
		run_cursor_advance(&c, n);
	}
	return sum;
}

/* The kernel promises no order of copying, so the same call reads the last bytes elsewhere.  They
 * are stored after it has returned. */
static bool part_plan(const struct pull *p, struct part *part)
{
	size_t room = part_list(part->local, &part->nlocal, RUNS_MAX, p->dst,
				WAY_CALL_BYTES - WORD_BYTES);
	struct iovec *last;

	part->bytes = part_list(part->remote, &part->nremote, ACCESS_PIECES, p->src, room);
	/* A hostile peer sends from RUN_DISCARD, which only a destination may be. */
	if (!part->bytes)
		return false;
	if (part->bytes < room)
		(void)part_list(part->local, &part->nlocal, RUNS_MAX, p->dst, part->bytes);
	last = &part->local[part->nlocal - 1];
	part->held = last->iov_len < TAIL_BYTES ? last->iov_len : TAIL_BYTES;
	last->iov_len -= part->held;
	part->tail_to = (char *)last->iov_base + last->iov_len;
	part->local[part->nlocal++] = (struct iovec){part->tail, part->held};
	return true;
}

static bool pull_is_withdrawn(const struct pull *p)
{
	return p->withdrawn && atomic_load_explicit(p->withdrawn, memory_order_acquire);
}

static long part_call(const struct way_call *c, const struct part *part)
{
	struct iovec *pieces = c->hold->slot->remote;
	long moved = RSEQ_ABORTED;

	for (int i = 0; moved == RSEQ_ABORTED && i < WAY_CALL_TRIES; i++) {
		for (unsigned long n = 1; n < part->nremote; n++)
			pieces[n] = part->remote[n];
		pieces[0].iov_len = part->remote[0].iov_len;
		way_call_first(pieces, part->remote[0].iov_base);
		moved = way_call_once(c, part->local, part->nlocal, part->nremote);
	}
	return moved;
}

/* WAY_DONE: *moved is more than 0. */
static enum way_verdict part_read(const struct pull *p, const struct part *part, size_t *moved)
{
	struct access hold;
	struct way_call c = {.hold = &hold,
			     .alive = p->from->alive,
			     .tid = way_kernel_tid(p->from),
			     .read = true};
	enum way_verdict v = WAY_REVOKED;

	if (!c.tid)
		return WAY_CLOSED;
	if (!access_claim(p->from->table, &hold))
		return WAY_INTERRUPTED;
	/* After the claim: see access.h. */
	if (!pull_is_withdrawn(p)) {
		long n = part_call(&c, part);

		v = n > 0 ? WAY_DONE : way_call_why(&hold, n);
		*moved = n > 0 ? (size_t)n : 0;
	}
	access_release(&hold);
	if (v == WAY_CLOSED)
		way_kernel_close(p->from);
	return v;
}

static enum way_verdict pull_part(struct pull *p)
{
	struct part part;
	size_t moved = 0, before;
	enum way_verdict v;

	if (!part_plan(p, &part))
		return WAY_FAULT;
	v = part_read(p, &part, &moved);
	if (v != WAY_DONE)
		return v;
	/* What was read after it had been given up is not the message. */
	atomic_thread_fence(memory_order_acquire);
	if (pull_is_withdrawn(p))
		return WAY_REVOKED;
	before = part.bytes - part.held;
	if (moved > before && !usermem_copy(part.tail_to, part.tail, moved - before))
		return WAY_FAULT;
	run_cursor_advance(&p->dst, moved);
	run_cursor_advance(&p->src, moved);
	return WAY_DONE;
}

/* Moves both cursors past bytes of the destination's run, which nobody wants. */
static void pull_discard(struct pull *p)
{
	size_t n = run_cursors_part(&p->dst, &p->src);

	run_cursor_advance(&p->dst, n);
	run_cursor_advance(&p->src, n);
}

enum way_verdict way_pull(struct way_peer *from, const struct run *dst, uint32_t ndst,
			  const struct run *src, uint32_t nsrc, const _Atomic(uint32_t) *withdrawn)
{
	struct pull p = {from, withdrawn, run_cursor_start(dst, ndst), run_cursor_start(src, nsrc)};
	enum way_verdict v = WAY_DONE;
	unsigned tries = 0;

	while (p.dst.left && p.src.left) {
		if (p.dst.run->addr == RUN_DISCARD) {
			pull_discard(&p);
			continue;
		}
		v = pull_part(&p);
		tries = v == WAY_DONE ? 0 : tries + 1;
		/* Mostly it was something else that was revoked. */
		if (v == WAY_REVOKED && pull_is_withdrawn(&p))
			return v;
		if ((v != WAY_DONE && v != WAY_REVOKED && v != WAY_INTERRUPTED) ||
		    tries == PULL_TRIES)
			return v == WAY_REVOKED ? WAY_INTERRUPTED : v;
	}
	return p.dst.left || p.src.left ? WAY_FAULT : WAY_DONE;
}
