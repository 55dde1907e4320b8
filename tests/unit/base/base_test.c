/* SPDX-License-Identifier: BSD-2-Clause */
/* The ground: arithmetic over all of small domains, and the two locks under load. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "base/endian.h"
#include "base/return_stack.h"
#include "base/spin.h"
#include "base/text.h"
#include "base/word.h"
#include "prm/ib.h"
#include "check.h"

static void test_ranges(void)
{
	/* All of a 4-bit world, shifted to the top of the 64-bit one, where sums wrap. */
	for (uint64_t off = 0; off < 16; off++)
		for (uint64_t len = 0; len < 16; len++)
			for (uint64_t size = 0; size < 16; size++)
				CHECK(!!range_inside(off, len, size) == (off + len <= size));
	CHECK(!range_inside(UINT64_MAX, 1, 16));
	CHECK(!range_inside(1, UINT64_MAX, 16));
	CHECK(!range_inside(UINT64_MAX, UINT64_MAX, UINT64_MAX));
	CHECK(range_inside(0, UINT64_MAX, UINT64_MAX));
	CHECK(range_inside(UINT64_MAX, 0, UINT64_MAX));
}

static void small_arithmetic(void)
{
	for (uint64_t v = 0; v < 300; v++) {
		CHECK(align_up(v, 64) % 64 == 0 && align_up(v, 64) >= v &&
		      align_up(v, 64) < v + 64);
		CHECK(div_round_up(v, 7) == (v + 6) / 7);
	}
	CHECK(div_round_up(UINT64_C(1) << 31, 256) == 1u << 23);
	CHECK(be16_get(be16_of(0x1234)) == 0x1234 &&
	      *(unsigned char *)&(be16){be16_of(1).raw} == 0);
	CHECK(be32_get(be32_of(0x12345678)) == 0x12345678);
	CHECK(be64_get(be64_of(0x123456789abcdef0)) == 0x123456789abcdef0);
}

static void test_psns(void)
{
	static const uint32_t bases[] = {0, 1, 0x7fffff, 0x800000, 0xfffffe, 0xffffff};

	for (size_t i = 0; i < array_size(bases); i++) {
		uint32_t base = bases[i];

		for (uint32_t step = 0; step < 1u << 23; step += step < 1000 ? 1 : 4099) {
			CHECK(psn_diff(psn_add(base, step), base) == (int32_t)step);
			CHECK(psn_diff(base, psn_add(base, step)) == -(int32_t)step);
		}
		/* Bits above the 24 do not count. */
		CHECK(psn_diff(base | 0xab000000, base) == 0);
		CHECK(psn_add(base, 1) <= IB_PSN_MASK);
	}
	CHECK(ib_mtu_bytes(IB_MTU_256) == 256 && ib_mtu_bytes(IB_MTU_4096) == 4096);
}

#define THREADS 4
#define ROUNDS	30000

static struct spin spin;
static unsigned long guarded;

static void *spin_loop(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		spin_lock(&spin);
		guarded++;
		spin_unlock(&spin);
	}
	return NULL;
}

/* Work is a counter; whoever holds the baton takes what is there.  None may be left at the end. */
static struct baton baton;
static _Atomic(unsigned long) work;
static unsigned long taken; /* by the holder only */

static void *baton_loop(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		atomic_fetch_add_explicit(&work, 1, memory_order_relaxed);
		if (!baton_enter(&baton))
			continue;
		do {
			taken += atomic_exchange_explicit(&work, 0, memory_order_relaxed);
		} while (!baton_leave(&baton));
	}
	return NULL;
}

static void *baton_taker(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS / 100; i++) {
		baton_take(&baton);
		do {
			taken += atomic_exchange_explicit(&work, 0, memory_order_relaxed);
		} while (!baton_leave(&baton));
	}
	return NULL;
}

static void in_threads(void *(*fn)(void *), void *(*last)(void *))
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, i == THREADS - 1 ? last : fn, NULL));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

static void test_texts(void)
{
	static const char src[] = "abcd";
	char dst[8];

	for (size_t size = 1; size <= sizeof(dst); size++) {
		size_t n = size <= strlen(src) ? size - 1 : strlen(src);

		memset(dst, 'x', sizeof(dst));
		CHECK(text_copy(dst, size, src) == (size > strlen(src)));
		CHECK(strlen(dst) == n && !memcmp(dst, src, n));
		CHECK(n + 1 == sizeof(dst) || dst[n + 1] == 'x');
	}
	CHECK(text_copy(dst, 1, "") && !dst[0]);
	CHECK(!text_copy(dst, 0, ""));
}

/* Deeper than the stack that is refilled, and with something of its own at each level. */
static __attribute__((noinline)) unsigned returns_depth(unsigned depth)
{
	volatile unsigned mine[4] = {depth, depth + 1, depth + 2, depth + 3};
	unsigned below = 0;

	if (depth)
		below = returns_depth(depth - 1);
	return_stack_refill();
	for (unsigned i = 0; i < 4; i++)
		CHECK(mine[i] == depth + i);
	return below + 1;
}

/* A leaf, so that its words may lie below the stack pointer. */
static __attribute__((noinline)) uint64_t red_zone(uint64_t value)
{
	volatile uint64_t words[15];

	for (unsigned i = 0; i < 15; i++)
		words[i] = value + i;
	return_stack_refill();
	value = 0;
	for (unsigned i = 0; i < 15; i++)
		value += words[i];
	return value;
}

/* Each piece is aligned as it is long, none divides an aligned word of the copy that a touch could
 * have moved at once, and the last word is by itself where that is asked for. */
static void word_pieces(void)
{
	for (uintptr_t at = 64; at < 72; at++)
		for (size_t n = 1; n < 40; n++)
			for (unsigned last_apart = 0; last_apart < 2; last_apart++) {
				uintptr_t to = at, end = at + n;

				while (to < end) {
					size_t part = word_piece(to, end - to, last_apart);

					CHECK(part == 1 || part == 2 || part == 4 ||
					      part % WORD_BYTES == 0);
					CHECK(to % min_u64(part, WORD_BYTES) == 0);
					/* not shorter than it could be */
					CHECK(part >= WORD_BYTES || to % (2 * part) ||
					      to + 2 * part > end);
					if (last_apart && part > WORD_BYTES)
						CHECK(to + part == end - word_tail(end));
					to += part;
				}
				CHECK(to == end);
			}
}

int main(void)
{
	word_pieces();
	CHECK(returns_depth(100) == 101);
	CHECK(red_zone(1000) == 15 * 1000 + 105);
	test_ranges();
	test_texts();
	small_arithmetic();
	test_psns();
	in_threads(spin_loop, spin_loop);
	CHECK(guarded == THREADS * ROUNDS);
	in_threads(baton_loop, baton_taker);
	CHECK(!atomic_load(&work) && taken == (THREADS - 1) * ROUNDS);
	CHECK(atomic_load(&baton.word) == BATON_IDLE);
	return 0;
}
