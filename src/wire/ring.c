/* SPDX-License-Identifier: BSD-2-Clause */
/* See ring.h. */
#include <errno.h>

#include "wire/ring.h"

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

/* Acquire: the consumer reads before it stores the tail; we overwrite after we have seen it. */
static int refresh_tail(struct ring *r)
{
	uint64_t tail = atomic_load_explicit(&r->shared->tail, memory_order_acquire);

	if (tail - r->tail > r->head - r->tail || tail % RING_ALIGN)
		return -EPROTO;
	r->tail = tail;
	return 0;
}

static bool ring_has_room(const struct ring *r, uint64_t bytes)
{
	return bytes <= r->size - (r->head - r->tail);
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

int ring_reserve(struct ring *r, uint32_t bytes, void **record)
{
	uint32_t to_end = r->size - r->off;
	uint64_t need = bytes > to_end ? (uint64_t)to_end + bytes : bytes;
	int rc;

	if (!ring_has_room(r, need)) {
		rc = wait_for_room(r, need);
		if (rc)
			return rc;
	}
	if (bytes > to_end) {
		*(uint32_t *)(void *)(r->data + r->off) = 0;
		r->head += to_end;
		r->off = 0;
	}
	*record = r->data + r->off;
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

void ring_each_unread(struct ring *r, void (*fn)(void *arg, void *record, uint32_t bytes),
		      void *arg)
{
	for (uint64_t at = ring_read_up_to(r); at != r->head;) {
		uint32_t off = (uint32_t)(at % r->size);
		uint32_t len = *(const volatile uint32_t *)(const void *)(r->data + off);
		uint32_t to_end = r->size - off;
		uint32_t bytes = len ? len : to_end;

		if (bytes % RING_ALIGN || bytes > to_end || bytes > r->head - at)
			return;
		if (len)
			fn(arg, r->data + off, len);
		at += bytes;
	}
}

static void ring_step(struct ring *r, uint64_t *cursor, uint32_t bytes)
{
	*cursor += bytes;
	r->off += bytes;
	if (r->off == r->size)
		r->off = 0;
}

void ring_commit(struct ring *r, uint32_t bytes)
{
	ring_step(r, &r->head, bytes);
	/* Release: the record is stored before its cursor; partner: the acquire in ring_peek. */
	atomic_store_explicit(&r->shared->head, r->head, memory_order_release);
}

int ring_peek(struct ring *r, const void **record, uint32_t *bytes)
{
	uint64_t head = r->head;
	uint32_t len;

	if (head == r->tail) {
		head = atomic_load_explicit(&r->shared->head, memory_order_acquire);
		if (head - r->tail > r->size || head % RING_ALIGN)
			return -EPROTO;
		r->head = head;
		if (head == r->tail)
			return 0;
	}
	len = *(const volatile uint32_t *)(const void *)(r->data + r->off);
	if (!len) {
		uint32_t to_end = r->size - r->off;

		if (to_end >= head - r->tail) /* a record must follow it */
			return -EPROTO;
		ring_step(r, &r->tail, to_end);
		len = *(const volatile uint32_t *)(const void *)r->data;
	}
	if (!len || len % RING_ALIGN || len > r->size - r->off || len > head - r->tail)
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

	/* The wish lies on the line that we poll anyway; the store of the tail would cost a line.
	 */
	if (!owed || (owed < r->size / RING_LARGEST_SHARE &&
		      !atomic_load_explicit(&r->shared->want_room, memory_order_relaxed)))
		return false;
	return ring_give_back(r);
}
