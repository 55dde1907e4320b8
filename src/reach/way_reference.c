// SPDX-License-Identifier: BSD-2-Clause
/* Reads what a peer has sent by reference, and writes to the places that it has sent. */
#include "base/run.h"
#include "reach/way.h"
#include "reach/way_internal.h"
#include "usermem/usermem.h"

/*
 * Reads what a peer has sent by reference.  The peer may give it up at any time: it says so in a
 * word, and revokes (access.h).  We look at the word after we have claimed a slot of the peer's, so
 * either we see that, or the peer waits for our call.
 *
 * The kernel copies page after page of the peer's memory, and promises no order.  So a long stretch
 * that lies alike on both sides goes straight to its place, except the words at its ends.  We store
 * these when the call has returned, because the rest of such a word may come by another part, and
 * because programs poll on the last bytes of a message.  A stretch that is short or lies otherwise
 * goes through a buffer, because a word of ours would be cut where a page of the peer's ends.
 */

/* How often a call begins again without having moved anything. */
#define PULL_TRIES 16u
/* The buffer takes so much at once. */
#define BUFFER_BYTES 16384u
/* A shorter stretch goes through the buffer: the second copy costs less than more calls. */
#define STRAIGHT_MIN 4096u

struct pull {
	struct way_peer *from;
	const _Atomic(uint32_t) *withdrawn;
	struct run_cursor dst, src;
	/* Holds what one call has brought and what is not in place yet. */
	char *buffer;
};

/* What one call moves. */
struct part {
	struct iovec local[3];
	unsigned long nlocal;
	struct iovec remote[ACCESS_PIECES];
	unsigned long nremote;
	size_t bytes;
	/* How many of them lie in the buffer: 'head' from the front, and behind these 'tail' from
	 * the end. */
	size_t head, tail;
};

/* Lists the peer's memory from the cursor on: as much of max bytes as one call takes.  A hostile
 * peer may send from RUN_DISCARD, which only a destination may be. */
static size_t part_remote(struct part *part, struct run_cursor c, size_t max)
{
	size_t sum = 0;

	for (part->nremote = 0;
	     part->nremote < ACCESS_PIECES && c.left && sum < max && c.run->addr != RUN_DISCARD;
	     part->nremote++) {
		size_t n = min_u64(run_cursor_left(&c), max - sum);

		part->remote[part->nremote] =
			(struct iovec){.iov_base = run_cursor_at(&c), .iov_len = n};
		sum += n;
		run_cursor_advance(&c, n);
	}
	return sum;
}

/* Returns how many bytes can go straight from the peer's runs into ours: up to where a word would
 * be cut. */
static size_t straight_bytes(const struct pull *p)
{
	size_t most = min_u64(run_cursor_left(&p->dst), WAY_CALL_BYTES - WORD_BYTES), n = 0;
	uintptr_t at = (uintptr_t)run_cursor_at(&p->dst);
	struct run_cursor c = p->src;

	while (c.left && n < most && ((uintptr_t)run_cursor_at(&c) - at - n) % WORD_BYTES == 0 &&
	       !words_alias((void *)(at + n), run_cursor_at(&c)) && !(n && (at + n) % WORD_BYTES)) {
		size_t part = min_u64(run_cursor_left(&c), most - n);

		n += part;
		run_cursor_advance(&c, part);
	}
	return n == run_cursor_left(&p->dst) ? n : n - min_u64(n, (at + n) % WORD_BYTES);
}

/* Returns how many of 'most' bytes end where a word of ours ends, or one of our runs. */
static size_t until_word(const struct pull *p, size_t most)
{
	struct run_cursor c = p->dst;
	size_t sum = 0;

	while (c.left && sum < most && c.run->addr != RUN_DISCARD) {
		size_t left = run_cursor_left(&c), n = min_u64(left, most - sum);

		if (n < left)
			n -= min_u64(n, ((uintptr_t)run_cursor_at(&c) + n) % WORD_BYTES);
		sum += n;
		if (n < left)
			break;
		run_cursor_advance(&c, n);
	}
	return sum;
}

static void part_straight(struct pull *p, struct part *part)
{
	char *to = run_cursor_at(&p->dst);

	part->head = -(uintptr_t)to % WORD_BYTES;
	part->tail = word_tail((uintptr_t)to + part->bytes);
	part->local[0] = (struct iovec){p->buffer, part->head};
	part->local[1] = (struct iovec){to + part->head, part->bytes - part->head - part->tail};
	part->local[2] = (struct iovec){p->buffer + part->head, part->tail};
	part->nlocal = 3;
	/* The peer must not have to wait for faults of ours. */
	usermem_bring_in(&(struct run){to, part->bytes}, 1, true);
}

static void part_buffered(struct pull *p, struct part *part)
{
	part->head = part->bytes;
	part->tail = 0;
	part->local[0] = (struct iovec){p->buffer, part->bytes};
	part->nlocal = 1;
}

static bool part_plan(struct pull *p, struct part *part)
{
	size_t straight = straight_bytes(p);

	part->bytes = part_remote(part, p->src, straight);
	if (straight >= STRAIGHT_MIN && part->bytes == straight && way_kernel_keeps(straight)) {
		part_straight(p, part);
		return true;
	}
	part->bytes = part_remote(part, p->src, until_word(p, BUFFER_BYTES));
	/* One call may take fewer bytes, because the peer's runs are too many, or end. */
	if (part->bytes)
		part->bytes = part_remote(part, p->src, until_word(p, part->bytes));
	part_buffered(p, part);
	return part->bytes;
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

/* Reads the part.  WAY_DONE: *moved is more than 0. */
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
	/* This look comes after the claim: see access.h. */
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

/* Stores n bytes of the buffer in our runs, from the cursor on. */
static bool buffer_store(struct run_cursor to, const char *from, size_t n)
{
	while (n) {
		size_t part = min_u64(n, run_cursor_left(&to));

		if (!usermem_copy(run_cursor_at(&to), from, part))
			return false;
		run_cursor_advance(&to, part);
		from += part;
		n -= part;
	}
	return true;
}

/* Stores what came into the buffer in its place. */
static bool part_store(const struct pull *p, const struct part *part, size_t moved)
{
	struct run_cursor end = p->dst;
	size_t body = part->bytes - part->tail;

	if (!buffer_store(p->dst, p->buffer, min_u64(part->head, moved)))
		return false;
	if (moved <= body)
		return true;
	run_cursor_advance(&end, body);
	return buffer_store(end, p->buffer + part->head, moved - body);
}

static enum way_verdict pull_part(struct pull *p)
{
	struct part part;
	enum way_verdict v;
	size_t moved = 0;

	if (!part_plan(p, &part))
		return WAY_FAULT;
	v = part_read(p, &part, &moved);
	if (v != WAY_DONE)
		return v;
	/* What we have read after the peer gave it up is not the message. */
	atomic_thread_fence(memory_order_acquire);
	if (pull_is_withdrawn(p))
		return WAY_REVOKED;
	if (!part_store(p, &part, moved))
		return WAY_FAULT;
	run_cursor_advance(&p->dst, moved);
	run_cursor_advance(&p->src, moved);
	return WAY_DONE;
}

/* Moves both cursors past bytes of the destination that nobody wants. */
static void pull_discard(struct pull *p)
{
	size_t n = run_cursors_part(&p->dst, &p->src);

	run_cursor_advance(&p->dst, n);
	run_cursor_advance(&p->src, n);
}

enum way_verdict way_pull(struct way_peer *from, const struct run *dst, uint32_t ndst,
			  const struct run *src, uint32_t nsrc, const _Atomic(uint32_t) *withdrawn)
{
	uint64_t buffer[BUFFER_BYTES / sizeof(uint64_t)];
	struct pull p = {from, withdrawn, run_cursor_start(dst, ndst), run_cursor_start(src, nsrc),
			 (char *)buffer};
	enum way_verdict v = WAY_DONE;
	unsigned tries = 0;

	while (p.dst.left && p.src.left) {
		if (p.dst.run->addr == RUN_DISCARD) {
			pull_discard(&p);
			continue;
		}
		v = pull_part(&p);
		tries = v == WAY_DONE ? 0 : tries + 1;
		/* Otherwise the peer has mostly revoked something else. */
		if (v == WAY_REVOKED && pull_is_withdrawn(&p))
			return v;
		if ((v != WAY_DONE && v != WAY_REVOKED && v != WAY_INTERRUPTED) ||
		    tries == PULL_TRIES)
			return v == WAY_REVOKED ? WAY_INTERRUPTED : v;
	}
	return p.dst.left || p.src.left ? WAY_FAULT : WAY_DONE;
}

/*
 * Writes what a peer has asked for to the places that it has sent.  The peer may take these back at
 * any time, like what it sends by reference: it says so in a word, and revokes
 * (access.h).  We look at the word after we have claimed a slot of the peer's, so either we see
 * that, or the peer waits for our call.  While the peer moves its pages nobody enters.
 */

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
