// SPDX-License-Identifier: BSD-2-Clause
/* The heap of a DPA process against a book of its own: blocks never overlap, and all comes back. */
#include "dpa/heap.h"

#include <string.h>

#include "check.h"

#define BASE   0x7000000000ull
#define BYTES  (1u << 20)
#define BLOCKS 256u
#define ROUNDS 200000u

struct block {
	uint64_t addr, bytes;
};

static void test_edges(void)
{
	struct dpa_heap h;
	uint64_t a;

	CHECK(dpa_heap_open(&h, BASE, BYTES) == 0);
	CHECK(!dpa_heap_alloc(&h, 0));
	CHECK(!dpa_heap_alloc(&h, BYTES + 1));
	CHECK(!dpa_heap_alloc(&h, UINT64_MAX));
	a = dpa_heap_alloc(&h, BYTES);
	CHECK(a == BASE && !dpa_heap_alloc(&h, 1));
	CHECK(h.requested == BYTES && h.allocated == BYTES);
	CHECK(!dpa_heap_free(&h, a + 64) && !dpa_heap_free(&h, a + 1) &&
	      !dpa_heap_free(&h, a - 64));
	CHECK(!dpa_heap_free(&h, BASE + BYTES) && !dpa_heap_free(&h, 0));
	CHECK(dpa_heap_free(&h, a));
	CHECK(!dpa_heap_free(&h, a)); /* twice */
	CHECK(h.requested == 0 && h.allocated == 0);
	dpa_heap_close(&h);
}

/* What was asked for counts, not what the block has. */
static void test_inside(void)
{
	struct dpa_heap h;
	uint64_t a, b;

	CHECK(dpa_heap_open(&h, BASE, BYTES) == 0);
	a = dpa_heap_alloc(&h, 100);
	b = dpa_heap_alloc(&h, 100000);
	CHECK(a && b && a % DPA_HEAP_GRANULE == 0 && b % DPA_HEAP_GRANULE == 0);
	CHECK(h.requested == 100100 && h.allocated >= h.requested);
	CHECK(dpa_heap_has(&h, a, 100) && dpa_heap_has(&h, a + 99, 1));
	CHECK(!dpa_heap_has(&h, a, 101) && !dpa_heap_has(&h, a + 100, 1) &&
	      !dpa_heap_has(&h, a + 99, 2) && !dpa_heap_has(&h, a, UINT64_MAX));
	CHECK(dpa_heap_has(&h, b + 99999, 1) && !dpa_heap_has(&h, b - 1, 2));
	CHECK(!dpa_heap_has(&h, b + 200000, 1) && !dpa_heap_has(&h, 0, 1) &&
	      !dpa_heap_has(&h, BASE + BYTES, 1));
	dpa_heap_close(&h);
}

/* Room behind each block belongs to none, and is given back with it. */
static void test_redzone(void)
{
	struct dpa_heap h;
	uint64_t a, b, c;

	CHECK(dpa_heap_open(&h, BASE, BYTES) == 0);
	h.redzone = DPA_HEAP_GRANULE;
	a = dpa_heap_alloc(&h, DPA_HEAP_GRANULE);
	b = dpa_heap_alloc(&h, 10);
	c = dpa_heap_alloc(&h, 2000);
	CHECK(a && b >= a + 2 * DPA_HEAP_GRANULE && c >= b + 10 + DPA_HEAP_GRANULE);
	CHECK(dpa_heap_has(&h, a, DPA_HEAP_GRANULE));
	for (uint64_t at = a + DPA_HEAP_GRANULE; at < b; at++)
		CHECK(!dpa_heap_has(&h, at, 1));
	for (uint64_t at = b + 10; at < c; at++)
		CHECK(!dpa_heap_has(&h, at, 1));
	CHECK(h.requested == DPA_HEAP_GRANULE + 10 + 2000);
	CHECK(!dpa_heap_alloc(&h, BYTES));
	CHECK(dpa_heap_free(&h, b) && dpa_heap_free(&h, a) && dpa_heap_free(&h, c));
	CHECK(h.allocated == 0 && dpa_heap_alloc(&h, BYTES - DPA_HEAP_GRANULE) == BASE);
	dpa_heap_close(&h);
}

static void meant_expect(const struct dpa_heap *h, uint64_t addr, uint64_t bytes, uint64_t block,
			 uint64_t by, uint64_t freed_by)
{
	struct dpa_heap_block b;

	dpa_heap_meant(h, addr, bytes, &b);
	CHECK_SAY(b.addr == block && b.by == by, "0x%llx: block 0x%llx by %llu",
		  (unsigned long long)(addr - BASE), (unsigned long long)(b.addr - BASE),
		  (unsigned long long)b.by);
	CHECK(b.freed == (freed_by != 0) && b.freed_by == freed_by);
}

/* Of what an access leaves, or is near to, or was freed there. */
static void test_meant(void)
{
	struct dpa_heap_block block;
	struct dpa_heap h;
	uint64_t a, b, c;

	CHECK(dpa_heap_open(&h, BASE, BYTES) == 0);
	h.redzone = DPA_HEAP_GRANULE;
	dpa_heap_meant(&h, BASE, 8, &block);
	CHECK(!block.bytes);
	h.by = 1;
	a = dpa_heap_alloc(&h, 100);
	h.by = 2;
	b = dpa_heap_alloc(&h, 1000);
	h.by = 3;
	c = dpa_heap_alloc(&h, 10);
	meant_expect(&h, a + 96, 8, a, 1, 0);
	meant_expect(&h, a + 100, 8, a, 1, 0);
	meant_expect(&h, b - 8, 8, b, 2, 0);
	meant_expect(&h, b - 8, 16, b, 2, 0);
	meant_expect(&h, c + 5000, 8, c, 3, 0);
	h.by = 4;
	CHECK(dpa_heap_free(&h, b));
	meant_expect(&h, b + 500, 8, b, 2, 4);
	meant_expect(&h, b - 8, 8, a, 1, 0);
	/* The newest one of a place counts, and one that is given out again is not freed. */
	h.by = 5;
	CHECK(dpa_heap_alloc(&h, 200) == b);
	meant_expect(&h, b + 200, 8, b, 5, 0);
	h.by = 6;
	CHECK(dpa_heap_free(&h, b));
	meant_expect(&h, b + 100, 8, b, 5, 6);
	meant_expect(&h, b + 500, 8, b, 2, 4);
	/* Only the last ones are remembered. */
	for (unsigned i = 0; i < DPA_HEAP_FREED; i++)
		CHECK(dpa_heap_free(&h, dpa_heap_alloc(&h, 10)));
	dpa_heap_meant(&h, b + 500, 8, &block);
	CHECK(!block.freed && block.addr == c);
	dpa_heap_close(&h);
}

/* An overrun is told once for the block, or the gap, in which it begins. */
static void test_overrun(void)
{
	struct dpa_heap_block block;
	struct dpa_heap h;
	uint64_t a, b;

	CHECK(dpa_heap_open(&h, BASE, BYTES) == 0);
	a = dpa_heap_alloc(&h, 100);
	b = dpa_heap_alloc(&h, 1000);
	CHECK(!dpa_heap_overrun(&h, a, 100, &block) && !dpa_heap_overrun(&h, a + 100, 0, &block));
	CHECK(dpa_heap_overrun(&h, a + 99, 2, &block) && block.addr == a && block.bytes == 100);
	CHECK(!dpa_heap_overrun(&h, a, 101, &block) && !dpa_heap_overrun(&h, a + 100, 1, &block));
	CHECK(dpa_heap_overrun(&h, b + 8, 1000, &block) && block.addr == b && block.bytes == 1000);
	CHECK(!dpa_heap_overrun(&h, BASE + BYTES, 1, &block));
	CHECK(dpa_heap_overrun(&h, BASE + BYTES - 1, 1, &block) && !block.bytes);
	CHECK(!dpa_heap_overrun(&h, BASE + BYTES - 2, 1, &block));
	/* Each block begins anew. */
	CHECK(dpa_heap_free(&h, a) && dpa_heap_alloc(&h, 100) == a);
	CHECK(dpa_heap_overrun(&h, a, 101, &block) && block.bytes == 100);
	dpa_heap_close(&h);
}

/* The largest heap that there is: a search goes through all levels of the map, in both directions. */
static void test_large(void)
{
	const uint64_t bytes = 64ull << 30;
	struct dpa_heap h;
	uint64_t first, large, last;

	CHECK(dpa_heap_open(&h, BASE, bytes) == 0);
	first = dpa_heap_alloc(&h, 64);
	large = dpa_heap_alloc(&h, bytes - 4096);
	last = dpa_heap_alloc(&h, 64);
	CHECK(first == BASE && large == BASE + 64 && last == BASE + 64 + bytes - 4096);
	CHECK(dpa_heap_has(&h, large + bytes - 4097, 1) && !dpa_heap_has(&h, large - 1, 2));
	for (uint64_t at = 1; at < bytes - 4096; at *= 2) {
		CHECK(dpa_heap_has(&h, large + at, 1) && dpa_heap_has(&h, large, at));
		CHECK(!dpa_heap_free(&h, large + at));
	}
	CHECK(dpa_heap_free(&h, large) && !dpa_heap_has(&h, large + bytes / 2, 1));
	/* Blocks in the middle, and what is between them. */
	for (uint64_t i = 0; i < 1000; i++)
		CHECK(dpa_heap_alloc(&h, 60ull << 20) == BASE + 64 + i * (60ull << 20));
	for (uint64_t i = 0; i < 1000; i += 2)
		CHECK(dpa_heap_free(&h, BASE + 64 + i * (60ull << 20)));
	for (uint64_t i = 0; i < 1000; i++)
		CHECK(dpa_heap_has(&h, BASE + 64 + i * (60ull << 20) + 12345678, 1) ==
		      (i % 2 == 1));
	for (uint64_t i = 1; i < 1000; i += 2)
		CHECK(dpa_heap_free(&h, BASE + 64 + i * (60ull << 20)));
	CHECK(dpa_heap_free(&h, first) && dpa_heap_free(&h, last));
	CHECK(dpa_heap_alloc(&h, bytes) == BASE);
	dpa_heap_close(&h);
}

static void block_check(const struct block *blocks, uint32_t at)
{
	const struct block *b = &blocks[at];

	CHECK(b->addr >= BASE && b->addr + b->bytes <= BASE + BYTES);
	CHECK(b->addr % DPA_HEAP_GRANULE == 0);
	for (uint32_t i = 0; i < BLOCKS; i++)
		CHECK(i == at || !blocks[i].addr || b->addr >= blocks[i].addr + blocks[i].bytes ||
		      blocks[i].addr >= b->addr + b->bytes);
}

static void test_random(void)
{
	struct block blocks[BLOCKS] = {0};
	struct rng rng = {2024};
	struct dpa_heap h;
	uint64_t requested = 0;

	CHECK(dpa_heap_open(&h, BASE, BYTES) == 0);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t at = (uint32_t)rng_below(&rng, BLOCKS);
		struct block *b = &blocks[at];

		if (b->addr) {
			CHECK(dpa_heap_has(&h, b->addr + rng_below(&rng, b->bytes), 1));
			CHECK(dpa_heap_free(&h, b->addr));
			requested -= b->bytes;
			b->addr = 0;
			continue;
		}
		b->bytes = 1 + rng_below(&rng, rng_below(&rng, 8) ? 2000 : 100000);
		b->addr = dpa_heap_alloc(&h, b->bytes);
		if (b->addr) {
			requested += b->bytes;
			block_check(blocks, at);
		}
		CHECK(h.requested == requested);
	}
	for (uint32_t i = 0; i < BLOCKS; i++)
		CHECK(!blocks[i].addr || dpa_heap_free(&h, blocks[i].addr));
	for (uint32_t i = 0; i < 1000000; i++) {
		uint64_t addr = dpa_heap_alloc(&h, 1 + i % 5000);

		CHECK(addr && dpa_heap_free(&h, addr));
	}
	/* All gaps have joined. */
	CHECK(dpa_heap_alloc(&h, BYTES) == BASE);
	dpa_heap_close(&h);
}

int main(void)
{
	test_edges();
	test_inside();
	test_redzone();
	test_overrun();
	test_meant();
	test_large();
	test_random();
	return 0;
}
