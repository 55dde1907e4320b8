// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a program sees of its memory while a payload is read into it from a peer's: aligned words of
 * 2, 4 and 8 bytes never in part.
 *
 * This process has sent; in the child one thread reads, the other looks.
 */
#include <string.h>

#include "base/rseq.h"
#include "check.h"
#include "test_fault.h"
#include "way_pair.h"

#define LOOKS	 20000u
#define PULLS	 2000u /* at least, while the other thread looks */
#define MESSAGES 16u
#define STEP	 (WAY_PAIR_BYTES / MESSAGES)

static uint32_t len, at, skew;
static uint32_t cut; /* where the sender's side of the message is in two parts; 0: it is in one */

static _Alignas(64) uint8_t memory[STEP];
static _Atomic(uint32_t) pulls;
static _Atomic(bool) end;

/* All bytes of a message are alike, so a word in part is one with two values. */
static void *reader_loop(void *arg)
{
	struct way_pair *p = arg;
	struct way_peer from = {.table = &p->table, .alive = &p->alive, .pid = p->pid};
	struct run dst = {memory + at, len};

	while (!atomic_load(&end)) {
		uint8_t *message = p->memory + atomic_load(&pulls) % MESSAGES * STEP + skew;
		struct run src[2] = {{message, cut ? cut : len},
				     {message + STEP / 2 + cut, len - cut}};
		enum way_verdict v = way_pull(&from, &dst, 1, src, cut ? 2 : 1, NULL);

		CHECK(v == WAY_DONE || v == WAY_INTERRUPTED);
		if (v == WAY_DONE)
			atomic_fetch_add(&pulls, 1);
	}
	return NULL;
}

static bool is_whole(uint64_t v, unsigned size)
{
	uint64_t ones = size == 8 ? 0x0101010101010101ull : size == 4 ? 0x01010101u : 0x0101u;

	return v == (v & 0xff) * ones;
}

static uint64_t look_at_array(const uint8_t *a, unsigned size)
{
	if (size == 8)
		return *(const volatile uint64_t *)(const void *)a;
	return size == 4 ? *(const volatile uint32_t *)(const void *)a
			 : *(const volatile uint16_t *)(const void *)a;
}

static void look_at_words(struct rng *rng)
{
	const uint8_t *start = memory + at;

	for (uint32_t i = 0; i < LOOKS; i++) {
		unsigned size = 2u << rng_below(rng, 3);
		uintptr_t first = align_up((uintptr_t)start, size), last = (uintptr_t)start + len;

		if (first + size > last)
			continue;
		first += rng_below(rng, (last - first) / size) * size;
		CHECK(is_whole(look_at_array((const uint8_t *)first, size), size));
	}
}

static int child_looks(struct way_pair *p)
{
	struct rng rng = {len * 64 + at + 1};
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, reader_loop, p));
	while (atomic_load(&pulls) < PULLS)
		look_at_words(&rng);
	atomic_store(&end, true);
	pthread_join(t, NULL);
	return 0;
}

static void test_hammer(struct way_pair *p, uint32_t bytes, uint32_t offset, uint32_t from,
			uint32_t parted)
{
	len = bytes;
	at = offset;
	skew = from;
	cut = parted;
	CHECK(way_pair_join(way_pair_fork(p, child_looks)));
}

int main(void)
{
	static const uint32_t lengths[] = {2,  3,   7,	 8,    9,    12,   20,
					   31, 100, 500, 4104, 8192, 8197, 20000};
	struct way_pair *p = way_pair_new();

	if (!rseq_available())
		SKIP("the C library registers no restartable sequences");
	test_fault_catch();
	way_pair_hold(p);
	for (uint32_t i = 0; i < MESSAGES; i++)
		memset(p->memory + i * STEP, (int)i * 17, STEP);
	for (size_t i = 0; i < array_size(lengths); i++)
		for (uint32_t offset = 0; offset < 8; offset += i % 2 ? 4 : 3) {
			test_hammer(p, lengths[i], offset, offset, 0);
			test_hammer(p, lengths[i], offset, (uint32_t)i * 5 % 8, 0);
		}
	for (uint32_t part = 1; part < 24; part += 4) {
		test_hammer(p, 24, part % 3 ? 0 : 4, part % 8, part);
		test_hammer(p, 9000, part % 3 ? 0 : 4, part % 8, 4500 + part);
	}
	return 0;
}
