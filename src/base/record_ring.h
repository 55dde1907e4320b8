/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A ring of records in memory that several processes map: any thread of any of them may write, and
 * one reader takes the records out.  A writer never waits: it takes its place with one
 * compare-and-swap, fills it, and commits it.  A record for which there is no room is dropped, and
 * its writer counts it.  A writer that dies, or is stopped, before it has committed a record leaves
 * a place that stays empty, and the reader takes nothing behind it.
 *
 * Neither side trusts what the other writes: positions are taken modulo the size, and the reader
 * checks the length of each record.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct record_ring_head {
	cacheline_aligned _Atomic(uint64_t) reserved; /* up to here writers have taken places */
	cacheline_aligned _Atomic(uint64_t) taken;    /* up to here the reader has read */
	_Atomic(uint32_t) joined;		      /* a writer has mapped the ring */
	/* Number of dropped records, of each source that the writers distinguish. */
	cacheline_aligned _Atomic(uint64_t) dropped[];
};

/* One side's view of it. */
struct record_ring {
	struct record_ring_head *head;
	uint8_t *records;
	size_t bytes;  /* of the records, a power of 2 */
	size_t mapped; /* bytes of the mapping */
	uint32_t nsources;
	uint64_t at; /* the reader's: what it takes next */
};

#define RECORD_RING_ALIGN 8u

/* The size of a file for such a ring. */
size_t record_ring_file_bytes(size_t bytes, uint32_t nsources);
/* Maps the file, which is all zero at first; the descriptor stays the caller's.  0 or -errno. */
int record_ring_map(struct record_ring *r, int fd, size_t bytes, uint32_t nsources) must_check;
void record_ring_unmap(struct record_ring *r);

/* Returns room for a record of so many bytes, or NULL, and then it is counted as dropped. */
void *record_ring_reserve(struct record_ring *r, uint32_t bytes, uint32_t source);
/* Gives the record to the reader. */
void record_ring_commit(struct record_ring *r, void *record, uint32_t bytes);

enum record_ring_next {
	RECORD_RING_RECORD, /* there is one */
	RECORD_RING_EMPTY,
	RECORD_RING_PENDING, /* its writer has not committed it yet */
	RECORD_RING_BROKEN,  /* a writer has written what is no record */
};

/* Finds the next record, which stays until record_ring_take; *bytes may be more than its writer
 * asked for, by less than RECORD_RING_ALIGN. */
enum record_ring_next record_ring_look(struct record_ring *r, const void **record,
				       uint32_t *bytes) must_check;
void record_ring_take(struct record_ring *r, const void *record, uint32_t bytes);
