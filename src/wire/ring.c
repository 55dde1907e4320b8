/* SPDX-License-Identifier: BSD-2-Clause */
/* See ring.h. */
#include <errno.h>

#include "wire/ring.h"

/* Before the next record is filled, the producer's processor owns the lines that a record like the
 * last one takes, and this much more; each of these lines begins with 0. */
#define CLEAR_AHEAD  (4u * RING_ALIGN)
#define CLEAR_RECORD (24u * RING_ALIGN) /* a frame; nobody waits for larger ones */
/* It asks for a line so far ahead of those, as the next locked instruction waits for the line of each
 * store. */
#define OWN_AHEAD (4u * RING_ALIGN)

/* As long as the consumer keeps up, the producer uses this part of the ring only (turn_early). */
#define RING_NEAR_SHARE	   8u
#define RING_PATIENT_SHARE 4u
/* Right after an early turn there is room for at least so many records like the next one. */
#define TURN_RECORDS 8u
/*
 * The consumer returns so much even if the producer does not wish for room.  It is less than a
 * record may take (RING_LARGEST_SHARE), and enough for the producer to see that the consumer keeps
 * up.
 */
#define RING_SETTLE_SHARE (4u * RING_NEAR_SHARE)

static _Atomic(uint32_t) *ring_word(const struct ring *r, uint32_t off)
{
	return (_Atomic(uint32_t) *)(void *)(r->data + off);
}

static int ring_open(struct ring *r, struct ring_shared *shared, void *data, uint32_t size)
{
	*r = (struct ring){
		.shared = shared,
		.data = data,
		.size = size,
		.head = atomic_load_explicit(&shared->head, memory_order_acquire),
		.tail = atomic_load_explicit(&shared->tail, memory_order_acquire),
	};
	r->given = r->tail;
	r->clear = r->dirty = r->head;
	if (size < RING_MIN_BYTES || size % RING_ALIGN)
		return -EINVAL;
	if (r->head - r->tail > size || r->head % RING_ALIGN || r->tail % RING_ALIGN)
		return -EPROTO;
	return 0;
}

int ring_open_producer(struct ring *r, struct ring_shared *shared, void *data, uint32_t size)
{
	int rc = ring_open(r, shared, data, size);

	if (!rc)
		r->off = (uint32_t)(r->head % size);
	return rc;
}

int ring_open_consumer(struct ring *r, struct ring_shared *shared, void *data, uint32_t size)
{
	int rc = ring_open(r, shared, data, size);

	if (!rc)
		r->off = (uint32_t)(r->tail % size);
	return rc;
}

/* Acquire: the consumer reads a record before it stores the tail; we overwrite the record after we
 * have seen that tail. */
static int refresh_tail(struct ring *r)
{
	uint64_t tail = atomic_load_explicit(&r->shared->tail, memory_order_acquire);

	if (tail - r->tail > r->head - r->tail || tail % RING_ALIGN)
		return -EPROTO;
	r->tail = tail;
	return 0;
}

/* A line stays free behind the record, where the next one will begin. */
static bool ring_has_room(const struct ring *r, uint64_t bytes)
{
	return bytes + RING_ALIGN <= r->size - (r->head - r->tail);
}

static int wait_for_room(struct ring *r, uint64_t bytes)
{
	int rc = refresh_tail(r);

	if (rc || ring_has_room(r, bytes))
		return rc;
	atomic_store_explicit(&r->shared->want_room, 1, memory_order_relaxed);
	/* Either we see the consumer's tail now, or it sees our wish (see ring_give_back). */
	atomic_thread_fence(memory_order_seq_cst);
	rc = refresh_tail(r);
	if (rc || ring_has_room(r, bytes))
		return rc;
	return -ENOSPC;
}

/*
 * The first touch of each page costs both processes a fault, and memory that is used again soon
 * lies in the caches.  So the producer goes back to the beginning long before the end, if the
 * consumer has taken nearly all.  Until the consumer has turned, too, the ring has only the room in
 * front of the turn.  That room has to be enough for a while, so large records go on to the end.
 */
static bool turn_early(struct ring *r, uint32_t bytes, uint32_t to_end)
{
	uint32_t near = r->size / (r->patient ? RING_PATIENT_SHARE : RING_NEAR_SHARE);
	uint32_t left = r->patient ? near / 4 * 3 : near / 2;
	uint64_t room = max_u64(left, (uint64_t)TURN_RECORDS * bytes);

	return unlikely(r->off >= near) && !refresh_tail(r) && ring_has_room(r, to_end + room);
}

int ring_reserve(struct ring *r, uint32_t bytes, void **record)
{
	uint32_t to_end = r->size - r->off;
	uint32_t skip = bytes > to_end || turn_early(r, bytes, to_end) ? to_end : 0;
	uint64_t need = (uint64_t)skip + bytes;
	int rc;

	if (!ring_has_room(r, need)) {
		rc = wait_for_room(r, need);
		if (rc)
			return rc;
	}
	r->skip = skip;
	r->dirty = max_u64(r->dirty, r->head + need);
	if (skip)
		atomic_store_explicit(ring_word(r, 0), 0, memory_order_relaxed);
	*record = r->data + (skip ? 0 : r->off);
	return 0;
}

bool ring_wants_room(const struct ring *r)
{
	return atomic_load_explicit(&r->shared->want_room, memory_order_relaxed);
}

uint64_t ring_read_up_to(struct ring *r)
{
	/* A senseless tail ends the use of the ring with the next record; until then we use the
	 * last good one, which lies further back. */
	(void)refresh_tail(r);
	return r->tail;
}

bool ring_is_behind(struct ring *r, uint64_t *up_to)
{
	/* A cursor in front of the head is one of a ring that was there before. */
	uint64_t to = *up_to && *up_to <= r->head ? *up_to : r->head;

	*up_to = 0;
	if (refresh_tail(r) || r->tail >= to)
		return false;
	/* The consumer shows its cursor in steps, or if the producer wishes for room. */
	atomic_store_explicit(&r->shared->want_room, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (refresh_tail(r) || r->tail >= to)
		return false;
	*up_to = to;
	return true;
}

void ring_each_unread(struct ring *r, void (*fn)(void *arg, void *record, uint32_t bytes),
		      void *arg)
{
	for (uint64_t at = ring_read_up_to(r); at != r->head;) {
		uint32_t off = (uint32_t)(at % r->size);
		uint32_t len = atomic_load_explicit(ring_word(r, off), memory_order_relaxed);
		uint32_t to_end = r->size - off;
		uint32_t bytes = len == RING_TURN ? to_end : len;

		if (!bytes || bytes % RING_ALIGN || bytes > to_end || bytes > r->head - at)
			return;
		if (len != RING_TURN)
			fn(arg, r->data + off, len);
		at += bytes;
	}
}

static uint32_t ring_after(const struct ring *r, uint32_t off, uint32_t bytes)
{
	off += bytes;
	return off == r->size ? 0 : off;
}

static void ring_step(struct ring *r, uint64_t *cursor, uint32_t bytes)
{
	*cursor += bytes;
	r->off = ring_after(r, r->off, bytes);
}

static void clear_next(struct ring *r)
{
	uint32_t ahead = r->clear_off + OWN_AHEAD;

	prefetch_to_write(r->data + (ahead < r->size ? ahead : ahead - r->size));
	atomic_store_explicit(ring_word(r, r->clear_off), 0, memory_order_relaxed);
	r->clear += RING_ALIGN;
	r->clear_off = ring_after(r, r->clear_off, RING_ALIGN);
}

/* Makes sure that a 0 stands behind the record that ends where the head is now, because no other
 * record follows yet. */
static inline void clear_behind(struct ring *r)
{
	if (likely(r->clear > r->head && r->dirty <= r->head))
		return;
	r->clear = r->head;
	r->clear_off = r->off;
	clear_next(r);
}

/*
 * Takes the next lines from the consumer's processor, while nobody waits for us.  It may have
 * fetched them when it fetched the last record.
 */
static inline void clear_ahead(struct ring *r, uint32_t bytes)
{
	uint32_t ahead = CLEAR_AHEAD + (bytes < CLEAR_RECORD ? bytes : CLEAR_RECORD) - RING_ALIGN;

	while (r->clear - r->head < ahead && r->clear + RING_ALIGN - r->tail <= r->size)
		clear_next(r);
}

void ring_commit(struct ring *r, uint32_t bytes)
{
	uint32_t begin = r->off, at = r->skip ? 0 : begin;

	ring_step(r, &r->head, r->skip);
	ring_step(r, &r->head, bytes);
	clear_behind(r);
	/* Release: the record is stored before its length; partner: the acquire in ring_peek. */
	atomic_store_explicit(ring_word(r, at), bytes, memory_order_release);
	if (unlikely(at != begin))
		atomic_store_explicit(ring_word(r, begin), RING_TURN, memory_order_release);
	atomic_store_explicit(&r->shared->head, r->head, memory_order_relaxed);
	clear_ahead(r, bytes);
}

int ring_peek(struct ring *r, const void **record, uint32_t *bytes)
{
	uint32_t len = atomic_load_explicit(ring_word(r, r->off), memory_order_acquire);

	if (!len)
		return 0;
	if (unlikely(len == RING_TURN)) {
		ring_step(r, &r->tail, r->size - r->off);
		len = atomic_load_explicit(ring_word(r, r->off), memory_order_acquire);
	}
	/* The producer stored the record at the beginning before it sent us there. */
	if (unlikely(!len || len % RING_ALIGN || len > r->size - r->off))
		return -EPROTO;
	*record = r->data + r->off;
	*bytes = len;
	return 1;
}

void ring_next(struct ring *r, uint32_t bytes)
{
	ring_step(r, &r->tail, bytes);
}

bool ring_give_back(struct ring *r)
{
	/* Release: we read the records before this store; partner: refresh_tail. */
	atomic_store_explicit(&r->shared->tail, r->tail, memory_order_release);
	r->given = r->tail;
	/* Partner: the fence in wait_for_room. */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&r->shared->want_room, memory_order_relaxed) &&
	       atomic_exchange_explicit(&r->shared->want_room, 0, memory_order_relaxed);
}

bool ring_settle(struct ring *r)
{
	uint64_t owed = r->tail - r->given;

	/* The wish's line hardly ever changes, so we look at it; the store of the tail would cost a
	 * line. */
	if (!owed || (owed < r->size / RING_SETTLE_SHARE &&
		      !atomic_load_explicit(&r->shared->want_room, memory_order_relaxed)))
		return false;
	return ring_give_back(r);
}
