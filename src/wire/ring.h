/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of records in memory that two processes share, one producing, one consuming.
 *
 * Records are contiguous and aligned to 64 bytes.  The first 32-bit word of a record is its length,
 * a multiple of 64, and says that it is there: the producer stores it last.  RING_TURN in its place
 * means that the rest of the ring is unused and the next record is at the beginning.  A producer whose
 * consumer keeps up turns long before the end, so that few pages are touched.  Where the
 * next record will begin there is 0 until then.  So a consumer that waits looks at the line that
 * the record will come in, and a short record takes one cache line from one processor to the other.
 *
 * Cursors count bytes since the beginning of time and never wrap in practice.  That of the consumer
 * lies in a cache line that it alone writes.  That of the producer is for the process that opens
 * the ring later.
 *
 * The other process is not trusted: each value that it may write is loaded once and checked against
 * what we know, and a senseless one ends the use of the ring (-EPROTO).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define RING_ALIGN 64u
/* In place of a length: go on at the beginning of the ring. */
#define RING_TURN 1u
/* At least this much, so that a record with a payload of the largest MTU always fits. */
#define RING_MIN_BYTES (64u * 1024u)

struct ring_shared {
	cacheline_aligned _Atomic(uint64_t) head; /* written by the producer */
	/* The producer found no room and wants to hear when there is some.  The producer sets it,
	 * the consumer clears it. */
	cacheline_aligned _Atomic(uint32_t) want_room;
	cacheline_aligned _Atomic(uint64_t) tail; /* written by the consumer */
};

/* One end of a ring, private to its process. */
struct ring {
	struct ring_shared *shared;
	unsigned char *data;
	uint32_t size;
	uint32_t off;	/* of our own cursor: head if we produce, tail if we consume */
	uint64_t head;	/* producer: our own */
	uint64_t tail;	/* consumer: our own; producer: the other side's as last seen */
	uint64_t given; /* consumer: the tail that the producer can see */
	/* Producer: lines from head to here begin with 0, but for those up to dirty, which were
	 * filled for a record that may have been forgotten. */
	uint64_t clear;
	uint64_t dirty;
	uint32_t clear_off;
	uint32_t skip; /* producer: what the record reserved last leaves unused before its turn */
};

/* size: multiple of RING_ALIGN, at least RING_MIN_BYTES.  Goes on where the cursors stand. */
int ring_open_producer(struct ring *r, struct ring_shared *shared, void *data,
		       uint32_t size) must_check;
int ring_open_consumer(struct ring *r, struct ring_shared *shared, void *data,
		       uint32_t size) must_check;

/*
 * Producer: room for a record of bytes (multiple of RING_ALIGN), to be filled and committed, or
 * simply forgotten.  Its first word is 0 and stays so.  0, -ENOSPC, or -EPROTO.
 */
int ring_reserve(struct ring *r, uint32_t bytes, void **record) must_check;
/* Makes the record reserved last visible: writes its length. */
void ring_commit(struct ring *r, uint32_t bytes);

/* Producer: after -ENOSPC, until the consumer has made room. */
bool ring_wants_room(const struct ring *r);

/*
 * Producer: calls fn for each record that the consumer may not have finished.  By the rules nobody
 * else writes its memory; what a consumer scribbled there stays inside the ring.
 */
void ring_each_unread(struct ring *r, void (*fn)(void *arg, void *record, uint32_t bytes),
		      void *arg);
/* Producer: the cursor up to which the consumer has finished. */
uint64_t ring_read_up_to(struct ring *r);
/* Producer: has the consumer not taken all records?  It may have, if it was not asked before: it
 * answers at its next look, which the caller sees to. */
bool ring_is_behind(struct ring *r);

/* Consumer: might there be a record?  One cache line, the record's own. */
static inline bool ring_has_news(const struct ring *r)
{
	return atomic_load_explicit((const _Atomic(uint32_t) *)(const void *)(r->data + r->off),
				    memory_order_relaxed);
}

/* So much of a record is fetched at once, a frame at least; the rest follows as it is read. */
#define RING_FETCH (32u * RING_ALIGN)

/*
 * Consumer: fetches the record's lines, which lie in the caches of the processor that has written them.
 * If each were fetched only when it is read, the delays would add up.
 */
static inline void ring_fetch(const void *record, uint32_t bytes)
{
	const uint8_t *at = record;

	for (uint32_t off = RING_ALIGN; off < min_u32(bytes, RING_FETCH); off += RING_ALIGN)
		__builtin_prefetch(at + off);
}

/* Consumer: the same for the record of which ring_has_news has told, as soon as it has. */
static inline void ring_fetch_news(const struct ring *r)
{
	const void *record = r->data + r->off;

	ring_fetch(record,
		   atomic_load_explicit((const _Atomic(uint32_t) *)record, memory_order_relaxed));
}

/* Consumer: the next record.  1, 0 if there is none, or -EPROTO. */
int ring_peek(struct ring *r, const void **record, uint32_t *bytes) must_check;
/* Consumer: the record that begins so many bytes behind the cursor, where one ends that was peeked at.  As
 * ring_peek; also 0 where the ring turns, and where there is nonsense, which ring_peek reports. */
int ring_peek_behind(const struct ring *r, uint32_t ahead, const void **record,
		     uint32_t *bytes) must_check;
/* Finishes the last record; ring_give_back returns its memory to the producer. */
void ring_next(struct ring *r, uint32_t bytes);
/* True: the producer waits for room and must be told. */
bool ring_give_back(struct ring *r) must_check;
/*
 * The same, but only if it matters: the producer waits, or a good part of the ring is to be
 * returned. A producer whose records are at most 1/RING_LARGEST_SHARE of the ring never waits for
 * less.
 */
bool ring_settle(struct ring *r) must_check;

#define RING_LARGEST_SHARE 8u
