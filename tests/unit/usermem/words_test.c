// SPDX-License-Identifier: BSD-2-Clause
/*
 * What another thread sees of memory that is being copied to: aligned words of 2, 4 and 8 bytes never
 * in part; and the same of memory that it changes while it is being read.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "check.h"
#include "usermem/usermem.h"

#define LOOKS  20000u
#define COPIES 3000u
#define MOST   5000u

static _Alignas(64) uint8_t theirs[MOST + 64], ours[2 * MOST + 64];

static struct {
	uint32_t len, at, skew, cut; /* cut: where our side is in two parts; 0: it is in one */
	_Atomic(uint32_t) copies;
	_Atomic(bool) end;
} job;

static bool is_whole(uint64_t v, unsigned size)
{
	uint64_t ones = size == 8 ? 0x0101010101010101ull : size == 4 ? 0x01010101u : 0x0101u;

	return v == (v & 0xff) * ones;
}

static uint64_t word_at(const uint8_t *a, unsigned size)
{
	if (size == 8)
		return *(const volatile uint64_t *)(const void *)a;
	return size == 4 ? *(const volatile uint32_t *)(const void *)a
			 : *(const volatile uint16_t *)(const void *)a;
}

static uint32_t our_runs(struct run *runs)
{
	runs[0] = (struct run){ours + job.skew, job.cut ? job.cut : job.len};
	runs[1] = (struct run){ours + MOST + 16 + job.skew, job.len - job.cut};
	return job.cut ? 2 : 1;
}

/* All bytes of a message are alike, so a word in part is one with two values. */
static void *writes_loop(void *arg)
{
	struct run to = {theirs + job.at, job.len}, from[2];
	uint32_t n = our_runs(from);

	for (uint8_t value = 0; !atomic_load(&job.end); value++) {
		memset(ours, value, sizeof(ours));
		CHECK(usermem_pull(&to, 1, from, n));
		atomic_fetch_add(&job.copies, 1);
	}
	return arg;
}

static void look_at_words(struct rng *rng)
{
	const uint8_t *start = theirs + job.at;

	for (uint32_t i = 0; i < LOOKS; i++) {
		unsigned size = 2u << rng_below(rng, 3);
		uintptr_t first = align_up((uintptr_t)start, size),
			  end = (uintptr_t)start + job.len;

		if (first + size > end)
			continue;
		first += rng_below(rng, (end - first) / size) * size;
		CHECK(is_whole(word_at((const uint8_t *)first, size), size));
	}
}

static void test_hammer(uint32_t len, uint32_t at, uint32_t skew, uint32_t cut)
{
	struct rng rng = {len * 64 + at + 1};
	pthread_t t;

	job.len = len;
	job.at = at;
	job.skew = skew;
	job.cut = cut;
	memset(theirs, 0, sizeof(theirs));
	memset(ours, 0, sizeof(ours));
	atomic_store(&job.copies, 0);
	atomic_store(&job.end, false);
	CHECK(!pthread_create(&t, NULL, writes_loop, NULL));
	while (atomic_load(&job.copies) < COPIES)
		look_at_words(&rng);
	atomic_store(&job.end, true);
	pthread_join(t, NULL);
}

/* ---- the other direction: this thread changes words, the other reads ---- */

/* The bytes that it has of a word of theirs. */
static uint64_t byte_of(const struct run *runs, uint32_t off)
{
	return off < runs[0].len ? ((uint8_t *)runs[0].addr)[off]
				 : ((uint8_t *)runs[1].addr)[off - runs[0].len];
}

static void *reads_loop(void *arg)
{
	struct run from = {theirs + job.at, job.len}, to[2];
	uint32_t n = our_runs(to);

	for (uint32_t i = 0; i < COPIES; i++) {
		CHECK(usermem_pull_answer(to, n, &from, 1));
		for (uint32_t k = align_up(job.at, 8) - job.at; k + 8 <= job.len; k += 8)
			for (uint32_t b = 1; b < 8; b++)
				CHECK(byte_of(to, k + b) == byte_of(to, k));
	}
	atomic_store(&job.end, true);
	return arg;
}

static void hammer_reads(uint32_t len, uint32_t at, uint32_t skew, uint32_t cut)
{
	volatile uint64_t *words = (volatile uint64_t *)(void *)theirs;
	pthread_t t;

	job.len = len;
	job.at = at;
	job.skew = skew;
	job.cut = cut;
	memset(theirs, 0, sizeof(theirs));
	atomic_store(&job.end, false);
	CHECK(!pthread_create(&t, NULL, reads_loop, NULL));
	for (uint64_t v = 0; !atomic_load(&job.end); v++)
		for (uint32_t k = 0; k * 8 < at + len; k++)
			words[k] = (v & 0xff) * 0x0101010101010101ull;
	pthread_join(t, NULL);
}

int main(void)
{
	static const uint32_t lens[] = {2,  3,	4,  6,	7,   8,	  9,   12,  15,	  16,
					20, 31, 64, 76, 100, 500, 583, 600, 1000, 4100};

	for (size_t i = 0; i < array_size(lens); i++)
		for (uint32_t at = 0; at < 8; at += i % 2 ? 4 : 3) {
			uint32_t skew = (uint32_t)i * 5 % 8;

			test_hammer(lens[i], at, skew, 0);
			hammer_reads(lens[i], at, skew, 0);
		}
	for (uint32_t cut = 1; cut < 24; cut += 2) {
		test_hammer(24, cut % 3 ? 0 : 4, cut % 8, cut);
		hammer_reads(24, cut % 3 ? 0 : 4, cut % 8, cut);
		test_hammer(700, cut % 3 ? 0 : 4, cut % 8, 600 + cut);
		hammer_reads(700, cut % 3 ? 0 : 4, cut % 8, 600 + cut);
	}
	return 0;
}
