/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The heap of a DPA process: which parts of a range are given out.  The books lie outside of the
 * range, so a program that writes where it should not spoils only its own data; this code never
 * touches the range itself.
 *
 * Blocks are whole granules.  Each extent (a block, or a gap between blocks) has a tag at the
 * places of its first and of its last granule, so a block that comes back joins its neighbours
 * without a search.  Lists by size hold the gaps.  A map with a bit for the first granule of each
 * extent finds the block in which an address lies.  It has levels: a bit of the next one says
 * whether a word has a bit, so that a search in a block of any size takes a few steps.
 *
 * The caller holds a lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define DPA_HEAP_GRANULE 64u /* programs rely on blocks that are aligned to this */
#define DPA_HEAP_BINS	 32u
#define DPA_HEAP_LEVELS	 6u /* levels of 64 bits each: enough for 2^32 granules */

/* Blocks that were freed, the last ones: what a report knows of them, if the heap has redzones. */
#define DPA_HEAP_FREED 256u

struct dpa_heap_tag;

struct dpa_heap_block {
	uint64_t addr, bytes; /* bytes that were asked for; 0: no block is there */
	uint64_t by;	      /* who asked for it: an address in the program, or 0 */
	bool freed;
	uint64_t freed_by;
};

struct dpa_heap {
	uint64_t base, bytes;
	uint64_t
		redzone; /* bytes behind each block that are nobody's; 0 unless the owner sets it */
	uint64_t requested, allocated;
	uint32_t granules;
	struct dpa_heap_tag *tag;
	uint64_t *first[DPA_HEAP_LEVELS]; /* a bit for each granule, then for each word below */
	uint32_t levels;
	uint64_t by; /* who allocates or frees next; the owner sets it under the lock */
	struct dpa_heap_block freed[DPA_HEAP_FREED];
	uint64_t nfreed;	      /* counts all of them */
	uint32_t gaps[DPA_HEAP_BINS]; /* first gap of those with 2^n granules or more; or none */
};

/* bytes: size of the range, a multiple of the granule, fewer than 2^32 of them.  -ENOMEM. */
int dpa_heap_open(struct dpa_heap *heap, uint64_t base, uint64_t bytes) must_check;
void dpa_heap_close(struct dpa_heap *heap);

/* Returns the address of a new block, or 0: there is no room, or bytes is 0. */
uint64_t dpa_heap_alloc(struct dpa_heap *heap, uint64_t bytes) must_check;
/* False: no block begins there. */
bool dpa_heap_free(struct dpa_heap *heap, uint64_t addr) must_check;
/* Tells whether all of the range lies inside one block, within what was asked for. */
bool dpa_heap_has(const struct dpa_heap *heap, uint64_t addr, uint64_t bytes) must_check;

/*
 * Finds the block that an access was meant for which lies not in one: the block that it leaves, or
 * the nearest one, or what has been freed there.  bytes is 0 in an empty heap.
 */
void dpa_heap_meant(const struct dpa_heap *heap, uint64_t addr, uint64_t bytes,
		    struct dpa_heap_block *block);

/*
 * Tells whether a range of the heap is outside of one block, the first time for the block, or the
 * gap, in which it begins: so an overrun that a program repeats is reported once.
 */
bool dpa_heap_overrun(struct dpa_heap *heap, uint64_t addr, uint64_t bytes,
		      struct dpa_heap_block *block) must_check;
