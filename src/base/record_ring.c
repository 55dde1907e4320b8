// SPDX-License-Identifier: BSD-2-Clause
/* See record_ring.h. */
#include "base/record_ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory_file.h"

/*
 * In front of each record stands a word: the bytes that it takes with the word, 0 until it is
 * committed.  The reader leaves zeros behind, because the next word may lie anywhere.  A record is
 * in one piece; padding fills the end of the ring if it does not fit there.
 */
#define WORD_BYTES   8u
#define WORD_PADDING (UINT64_C(1) << 63)

static size_t head_bytes(uint32_t nsources)
{
	return align_up(sizeof(struct record_ring_head) + nsources * sizeof(uint64_t), 4096);
}

size_t record_ring_file_bytes(size_t bytes, uint32_t nsources)
{
	return head_bytes(nsources) + bytes;
}

int record_ring_map(struct record_ring *r, int fd, size_t bytes, uint32_t nsources)
{
	size_t head = head_bytes(nsources);
	uint8_t *p;

	if (!bytes || bytes & (bytes - 1) || bytes % 4096)
		return -EINVAL;
	p = sparse_map(head + bytes, PROT_READ | PROT_WRITE, fd, 0);
	if (!p)
		return -errno;
	/* A child of fork(2) writes nothing, and would keep the memory. */
	(void)madvise(p, head + bytes, MADV_DONTFORK);
	*r = (struct record_ring){
		.head = (struct record_ring_head *)p,
		.records = p + head,
		.bytes = bytes,
		.mapped = head + bytes,
		.nsources = nsources,
	};
	return 0;
}

void record_ring_unmap(struct record_ring *r)
{
	if (r->head)
		munmap(r->head, r->mapped);
	r->head = NULL;
}

static uint8_t *place_at(const struct record_ring *r, uint64_t at)
{
	return r->records + (at & (r->bytes - 1));
}

static _Atomic(uint64_t) *word_at(const struct record_ring *r, uint64_t at)
{
	return (_Atomic(uint64_t) *)place_at(r, at);
}

/* ---- writers ---- */

static uint64_t record_whole(uint32_t bytes)
{
	return WORD_BYTES + align_up((uint64_t)bytes, RECORD_RING_ALIGN);
}

static void *record_drop(struct record_ring *r, uint32_t source)
{
	if (source < r->nsources)
		atomic_fetch_add_explicit(&r->head->dropped[source], 1, memory_order_relaxed);
	return NULL;
}

void *record_ring_reserve(struct record_ring *r, uint32_t bytes, uint32_t source)
{
	struct record_ring_head *h = r->head;
	uint64_t n = record_whole(bytes), at, taken, off, padding;

	do {
		/* In this order, because the reader never takes what is not reserved. */
		taken = atomic_load_explicit(&h->taken, memory_order_acquire);
		at = atomic_load_explicit(&h->reserved, memory_order_relaxed);
		off = at & (r->bytes - 1);
		padding = r->bytes - off < n ? r->bytes - off : 0;
		if (at % RECORD_RING_ALIGN || n > r->bytes || at + padding + n - taken > r->bytes)
			return record_drop(r, source);
	} while (!atomic_compare_exchange_weak_explicit(
		&h->reserved, &at, at + padding + n, memory_order_relaxed, memory_order_relaxed));
	if (padding)
		atomic_store_explicit(word_at(r, at), padding | WORD_PADDING, memory_order_release);
	return place_at(r, at + padding) + WORD_BYTES;
}

void record_ring_commit(struct record_ring *r, void *record, uint32_t bytes)
{
	_Atomic(uint64_t) *word = (_Atomic(uint64_t) *)((uint8_t *)record - WORD_BYTES);

	(void)r;
	atomic_store_explicit(word, record_whole(bytes), memory_order_release);
}

/* ---- the reader ---- */

static void reader_advance(struct record_ring *r, uint64_t n)
{
	memset(place_at(r, r->at), 0, n);
	r->at += n;
	atomic_store_explicit(&r->head->taken, r->at, memory_order_release);
}

enum record_ring_next record_ring_look(struct record_ring *r, const void **record, uint32_t *bytes)
{
	for (;;) {
		uint64_t left = r->bytes - (r->at & (r->bytes - 1)), word;

		if (atomic_load_explicit(&r->head->reserved, memory_order_acquire) == r->at)
			return RECORD_RING_EMPTY;
		word = atomic_load_explicit(word_at(r, r->at), memory_order_acquire);
		if (!word)
			return RECORD_RING_PENDING;
		if ((word & ~WORD_PADDING) % RECORD_RING_ALIGN || (word & ~WORD_PADDING) > left)
			return RECORD_RING_BROKEN;
		if (word & WORD_PADDING) {
			/* A writer fills the end of the ring, and only there. */
			if ((word & ~WORD_PADDING) != left || left == r->bytes)
				return RECORD_RING_BROKEN;
			reader_advance(r, word & ~WORD_PADDING);
			continue;
		}
		*record = place_at(r, r->at) + WORD_BYTES;
		*bytes = (uint32_t)(word - WORD_BYTES);
		return RECORD_RING_RECORD;
	}
}

void record_ring_take(struct record_ring *r, const void *record, uint32_t bytes)
{
	(void)record;
	reader_advance(r, WORD_BYTES + (uint64_t)bytes);
}
