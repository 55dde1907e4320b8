/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of records in memory that two processes share; one produces, the other consumes.
 *
 * Records are contiguous and aligned to 64 bytes.  The first 32-bit word of a record is its length,
 * a multiple of 64, and says that the record is there, because the producer stores it last.
 * RING_TURN in its place means that the rest of the ring is unused and the next record is at the
 * beginning.  A producer whose consumer keeps up turns long before the end, so that few pages are
 * touched.  The word where the next record will begin is 0 until then.  So a consumer that waits
 * looks at the line that the record will come in, and a short record moves one cache line from one
 * processor to the other.
 *
 * Cursors count bytes since the beginning of time and never wrap in practice.  The consumer's
 * cursor lies in a cache line that only the consumer writes.  The producer's cursor is there for
 * the process that opens the ring later.
 *
 * Neither process trusts the other: it loads each value that the other may write once and checks it
 * against what it knows, and a senseless value ends the use of the ring (-EPROTO).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define RING_ALIGN 64u
/* Stands in place of a length: the next record is at the beginning of the ring. */
#define RING_TURN 1u
/* The smallest ring, in which a record with a payload of the largest MTU always fits. */
#define RING_MIN_BYTES (64u * 1024u)

struct ring_shared {
	cacheline_aligned _Atomic(uint64_t) head; /* written by the producer */
	/* The producer found no room and wants to hear when there is some.  The producer sets the
	 * word, and the consumer clears it. */
	cacheline_aligned _Atomic(uint32_t) want_room;
	cacheline_aligned _Atomic(uint64_t) tail; /* written by the consumer */
};

/* One end of a ring, private to its process. */
struct ring {
	struct ring_shared *shared;
	unsigned char *data;
	uint32_t size;
	uint32_t off;	/* where our own cursor lies: head if we produce, tail if we consume */
	uint64_t head;	/* producer: our own cursor */
	uint64_t tail;	/* consumer: our own cursor; producer: the other side's as last seen */
	uint64_t given; /* consumer: the tail that the producer can see */
	/* Producer: the lines from head up to 'clear' begin with 0, except those up to 'dirty',
	 * which were filled for a record that the caller may have forgotten. */
	uint64_t clear;
	uint64_t dirty;
	uint32_t clear_off;
	bool patient;  /* producer: the next record turns later, and leaves more room */
	uint32_t skip; /* producer: bytes that the last reserved record leaves unused by its turn */
};

/* Opens one end of the ring and goes on where the cursors stand.  size: a multiple of RING_ALIGN,
 * at least RING_MIN_BYTES. */
int ring_open_producer(struct ring *r, struct ring_shared *shared, void *data,
		       uint32_t size) must_check;
int ring_open_consumer(struct ring *r, struct ring_shared *shared, void *data,
		       uint32_t size) must_check;

/*
 * Producer: finds room for a record of so many bytes (a multiple of RING_ALIGN).  The caller fills
 * and commits the record, or simply forgets it; its first word is 0, and the caller leaves it so.
 * Returns 0, -ENOSPC, or -EPROTO.
 */
int ring_reserve(struct ring *r, uint32_t bytes, void **record) must_check;
/* Makes the last reserved record visible: writes its length. */
void ring_commit(struct ring *r, uint32_t bytes);

/* Producer: true after -ENOSPC, until the consumer has made room. */
bool ring_wants_room(const struct ring *r);

/*
 * Producer: calls fn for each record that the consumer may not have finished.  By the rules nobody
 * else writes the memory of these records; if the consumer scribbled there, that stays inside the
 * ring.
 */
void ring_each_unread(struct ring *r, void (*fn)(void *arg, void *record, uint32_t bytes),
		      void *arg);
/* Producer: returns the cursor up to which the consumer has finished. */
uint64_t ring_read_up_to(struct ring *r);
/*
 * Producer: has the consumer not taken all records up to the cursor *up_to (0: all records)?  True
 * leaves in *up_to what to ask for the next time, so that records which follow meanwhile do not
 * count; false leaves 0.  At the first question the answer may be true although it has: the
 * consumer then shows its cursor at its next look, for which the caller has to provide.
 */
bool ring_is_behind(struct ring *r, uint64_t *up_to);

/* Consumer: might there be a record?  This reads one cache line, the record's own. */
static inline bool ring_has_news(const struct ring *r)
{
	return atomic_load_explicit((const _Atomic(uint32_t) *)(const void *)(r->data + r->off),
				    memory_order_relaxed);
}

/* ring_fetch fetches so much of a record at once, at least a frame; the rest follows as it is
 * read. */
#define RING_FETCH (32u * RING_ALIGN)

/* Consumer: fetches the record's lines, which lie in the caches of the processor that has written
 * them.  If each were fetched only when it is read, the delays would add up. */
static inline void ring_fetch(const void *record, uint32_t bytes)
{
	const uint8_t *at = record;

	for (uint32_t off = RING_ALIGN; off < min_u32(bytes, RING_FETCH); off += RING_ALIGN)
		__builtin_prefetch(at + off);
}

/* Consumer: does the same for the record of which ring_has_news has just told. */
static inline void ring_fetch_news(const struct ring *r)
{
	const void *record = r->data + r->off;

	ring_fetch(record,
		   atomic_load_explicit((const _Atomic(uint32_t) *)record, memory_order_relaxed));
}

/* Consumer: finds the next record.  Returns 1, 0 if there is none, or -EPROTO. */
int ring_peek(struct ring *r, const void **record, uint32_t *bytes) must_check;
/* Finishes the last record; ring_give_back returns its memory to the producer. */
void ring_next(struct ring *r, uint32_t bytes);
/* Returns finished memory to the producer.  True: the producer waits for room and must be told. */
bool ring_give_back(struct ring *r) must_check;
/*
 * Does the same, but only if it matters: the producer waits, or a good part of the ring is to be
 * returned.  A producer whose records are at most 1/RING_LARGEST_SHARE of the ring never waits for
 * less.
 */
bool ring_settle(struct ring *r) must_check;

#define RING_LARGEST_SHARE 8u
