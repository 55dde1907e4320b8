// SPDX-License-Identifier: BSD-2-Clause
/* See dpa/heap.h. */
#include "dpa/heap.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory_file.h"

#define NONE UINT32_MAX

struct dpa_heap_tag {
	uint32_t granules; /* granules of the extent; its last granule has a copy */
	uint32_t taken;	   /* whether it is taken; its last granule has a copy */
	union {
		uint64_t requested; /* bytes that were asked for, if it is a block */
		struct {
			uint32_t next, prev; /* neighbours in the list, if it is a gap */
		};
	};
	uint64_t by; /* who asked for it, if it is a block */
	bool told;   /* dpa_heap_overrun has told of the extent */
};

/* A level changes only if the word below it becomes zero, or is no longer zero. */
static void first_set(struct dpa_heap *h, uint32_t at, bool on)
{
	for (uint32_t level = 0; level < h->levels; level++, at /= 64) {
		uint64_t *word = &h->first[level][at / 64], bit = 1ull << at % 64, old = *word;

		*word = on ? old | bit : old & ~bit;
		if (!old == !*word)
			return;
	}
}

static uint32_t last_bit(uint32_t word, uint64_t bits)
{
	return word * 64 + 63 - (uint32_t)__builtin_clzll(bits);
}

/* Returns the extent that the granule belongs to.  The first granule of all begins one, so there
 * always is one. */
static uint32_t extent_of(const struct dpa_heap *h, uint32_t at)
{
	uint64_t bits = h->first[0][at / 64] & (UINT64_MAX >> (63 - at % 64));
	uint32_t level = 0;

	/* Up to the first word that has a bit before the place. */
	while (!bits) {
		at /= 64;
		bits = h->first[++level][at / 64] & ((1ull << at % 64) - 1);
	}
	at = last_bit(at / 64, bits);
	/* Down to the last bit below that one. */
	while (level--)
		at = last_bit(at, h->first[level][at]);
	return at;
}

/* ---- gaps ---- */

static void gap_remove(struct dpa_heap *h, uint32_t at)
{
	const struct dpa_heap_tag *t = &h->tag[at];

	if (t->next != NONE)
		h->tag[t->next].prev = t->prev;
	if (t->prev != NONE)
		h->tag[t->prev].next = t->next;
	else
		h->gaps[log2_of(t->granules)] = t->next;
}

static void extent_make(struct dpa_heap *h, uint32_t at, uint32_t granules, uint32_t taken)
{
	h->tag[at].granules = h->tag[at + granules - 1].granules = granules;
	h->tag[at].taken = h->tag[at + granules - 1].taken = taken;
	h->tag[at].told = false;
	first_set(h, at, true);
}

static void gap_add(struct dpa_heap *h, uint32_t at, uint32_t granules)
{
	uint32_t *bin = &h->gaps[log2_of(granules)];

	extent_make(h, at, granules, false);
	h->tag[at].prev = NONE;
	h->tag[at].next = *bin;
	if (*bin != NONE)
		h->tag[*bin].prev = at;
	*bin = at;
}

/*
 * Finds a gap: in the lowest bin gaps may be too small, in higher ones the first is large enough.
 */
static uint32_t gap_find(const struct dpa_heap *h, uint32_t granules)
{
	uint32_t bin = log2_of(granules), at = h->gaps[bin];

	while (at != NONE && h->tag[at].granules < granules)
		at = h->tag[at].next;
	while (at == NONE && ++bin < DPA_HEAP_BINS)
		at = h->gaps[bin];
	return at;
}

/* ---- blocks ---- */

uint64_t dpa_heap_alloc(struct dpa_heap *h, uint64_t bytes)
{
	uint32_t granules, at, rest;

	if (!bytes || bytes > h->bytes)
		return 0;
	granules = div_round_up(bytes + h->redzone, DPA_HEAP_GRANULE);
	at = gap_find(h, granules);
	if (at == NONE)
		return 0;
	rest = h->tag[at].granules - granules;
	gap_remove(h, at);
	if (rest)
		gap_add(h, at + granules, rest);
	extent_make(h, at, granules, true);
	h->tag[at].requested = bytes;
	h->tag[at].by = h->by;
	h->requested += bytes;
	h->allocated += (uint64_t)granules * DPA_HEAP_GRANULE;
	return h->base + (uint64_t)at * DPA_HEAP_GRANULE;
}

static bool granule_of(const struct dpa_heap *h, uint64_t addr, uint32_t *at)
{
	if (addr - h->base >= h->bytes)
		return false;
	*at = (uint32_t)((addr - h->base) / DPA_HEAP_GRANULE);
	return true;
}

static struct dpa_heap_block block_at(const struct dpa_heap *h, uint32_t at)
{
	return (struct dpa_heap_block){
		.addr = h->base + (uint64_t)at * DPA_HEAP_GRANULE,
		.bytes = h->tag[at].requested,
		.by = h->tag[at].by,
	};
}

static void freed_note(struct dpa_heap *h, uint32_t at)
{
	struct dpa_heap_block *b = &h->freed[h->nfreed % DPA_HEAP_FREED];

	if (!h->redzone)
		return;
	*b = block_at(h, at);
	b->freed = true;
	b->freed_by = h->by;
	h->nfreed++;
}

bool dpa_heap_free(struct dpa_heap *h, uint64_t addr)
{
	uint32_t at, granules;

	if ((addr - h->base) % DPA_HEAP_GRANULE || !granule_of(h, addr, &at) ||
	    extent_of(h, at) != at || !h->tag[at].taken)
		return false;
	freed_note(h, at);
	granules = h->tag[at].granules;
	h->requested -= h->tag[at].requested;
	h->allocated -= (uint64_t)granules * DPA_HEAP_GRANULE;
	if (at + granules < h->granules && !h->tag[at + granules].taken) {
		uint32_t next = at + granules;

		gap_remove(h, next);
		first_set(h, next, false);
		granules += h->tag[next].granules;
	}
	if (at && !h->tag[at - 1].taken) {
		uint32_t before = h->tag[at - 1].granules;

		first_set(h, at, false);
		at -= before;
		gap_remove(h, at);
		granules += before;
	}
	gap_add(h, at, granules);
	return true;
}

bool dpa_heap_has(const struct dpa_heap *h, uint64_t addr, uint64_t bytes)
{
	uint32_t at, start;

	if (!granule_of(h, addr, &at))
		return false;
	start = extent_of(h, at);
	return h->tag[start].taken &&
	       range_inside(addr - h->base - (uint64_t)start * DPA_HEAP_GRANULE, bytes,
			    h->tag[start].requested);
}

bool dpa_heap_overrun(struct dpa_heap *h, uint64_t addr, uint64_t bytes,
		      struct dpa_heap_block *block)
{
	struct dpa_heap_tag *t;
	uint32_t at, start;

	*block = (struct dpa_heap_block){0};
	if (!bytes || dpa_heap_has(h, addr, bytes) || !granule_of(h, addr, &at))
		return false;
	start = extent_of(h, at);
	t = &h->tag[start];
	if (t->told)
		return false;
	t->told = true;
	if (t->taken)
		*block = block_at(h, start);
	return true;
}

/* ---- what an access was meant for ---- */

/* Finds the newest block that was freed at that address. */
static bool freed_find(const struct dpa_heap *h, uint64_t addr, struct dpa_heap_block *block)
{
	uint64_t n = min_u64(h->nfreed, DPA_HEAP_FREED);

	for (uint64_t i = 1; i <= n; i++) {
		const struct dpa_heap_block *b = &h->freed[(h->nfreed - i) % DPA_HEAP_FREED];

		if (addr - b->addr < b->bytes + h->redzone) {
			*block = *b;
			return true;
		}
	}
	return false;
}

/* Bytes between the range and a block; 0: they overlap. */
static uint64_t block_distance(const struct dpa_heap_block *block, uint64_t addr, uint64_t bytes)
{
	if (addr >= block->addr + block->bytes)
		return addr - (block->addr + block->bytes);
	return block->addr > addr + bytes ? block->addr - (addr + bytes) : 0;
}

/* The nearer of the blocks in front of the address and behind it. */
static void nearest_find(const struct dpa_heap *h, uint32_t extent, uint64_t addr, uint64_t bytes,
			 struct dpa_heap_block *block)
{
	uint32_t next = extent + h->tag[extent].granules;
	struct dpa_heap_block front = {0}, behind = {0};

	if (h->tag[extent].taken)
		front = block_at(h, extent);
	else if (extent)
		front = block_at(h, extent_of(h, extent - 1));
	if (next < h->granules && h->tag[next].taken)
		behind = block_at(h, next);
	if (!front.bytes || (behind.bytes && block_distance(&behind, addr, bytes) <
						     block_distance(&front, addr, bytes)))
		*block = behind;
	else
		*block = front;
}

void dpa_heap_meant(const struct dpa_heap *h, uint64_t addr, uint64_t bytes,
		    struct dpa_heap_block *block)
{
	uint32_t at, extent;

	*block = (struct dpa_heap_block){0};
	if (!granule_of(h, addr, &at))
		return;
	extent = extent_of(h, at);
	if (h->tag[extent].taken || !freed_find(h, addr, block))
		nearest_find(h, extent, addr, bytes, block);
}

/* ---- the books ---- */

/* Returns the number of words of a level of the map. */
static uint64_t level_words(const struct dpa_heap *h, uint32_t level)
{
	uint64_t words = h->granules;

	for (uint32_t i = 0; i <= level; i++)
		words = (words + 63) / 64;
	return words;
}

static uint64_t books_bytes(const struct dpa_heap *h)
{
	uint64_t bytes = (uint64_t)h->granules * sizeof(struct dpa_heap_tag);

	for (uint32_t level = 0; level < h->levels; level++)
		bytes += level_words(h, level) * sizeof(uint64_t);
	return bytes;
}

int dpa_heap_open(struct dpa_heap *h, uint64_t base, uint64_t bytes)
{
	uint64_t *map;

	*h = (struct dpa_heap){
		.base = base,
		.bytes = bytes,
		.granules = (uint32_t)(bytes / DPA_HEAP_GRANULE),
		.levels = 1,
	};
	while (level_words(h, h->levels - 1) > 1)
		h->levels++;
	h->tag = sparse_map(books_bytes(h), PROT_READ | PROT_WRITE, -1, 0);
	if (!h->tag)
		return -ENOMEM;
	map = (uint64_t *)(h->tag + h->granules);
	for (uint32_t level = 0; level < h->levels; level++) {
		h->first[level] = map;
		map += level_words(h, level);
	}
	memset(h->gaps, 0xff, sizeof(h->gaps));
	gap_add(h, 0, h->granules);
	return 0;
}

void dpa_heap_close(struct dpa_heap *h)
{
	munmap(h->tag, books_bytes(h));
}
