// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a program sees that looks at its memory while a peer writes: aligned words of 2, 4 and 8
 * bytes never in part, and the last byte never before the others.  This is up to the processor and
 * the kernel's copy routine; where it fails, way_kernel must not serve that request.
 *
 * The child writes; this process looks.
 */
#include <string.h>
#include <unistd.h>

#include "base/rseq.h"
#include "check.h"
#include "way_pair.h"

#define LOOKS  CHECK_TIMES(50000u)
#define WRITES CHECK_TIMES(3000u) /* at least, while this process looks */
#define FAR    100u		  /* less than half of the values that there are */

static way_fn *way;
static uint32_t len, at, skew;
static uint32_t cut; /* where our side of the message is in two parts; 0: it is in one */

static uint8_t *memory_of(struct way_pair *p)
{
	return (way == way_kernel ? p->memory : p->shared) + at;
}

/* All bytes of a message are alike, so a word in part is one with two values. */
static int child_writes(struct way_pair *p)
{
	static uint8_t mine[16384] __attribute__((aligned(4096)));
	uint32_t tid = alive_probe(&p->alive, p->pid);
	struct run local[2] = {{mine + skew, cut ? cut : len}, {mine + 4200 + skew, len - cut}};
	struct run remote = {memory_of(p), len};

	CHECK(tid);
	for (uint8_t value = 0; !atomic_load(&p->end); value++) {
		memset(mine, value, sizeof(mine));
		enum way_verdict v =
			way_pair_move(p, way, tid, false, local, cut ? 2 : 1, &remote, 1, NULL);

		CHECK(v == WAY_DONE || v == WAY_INTERRUPTED || v == WAY_UNFIT);
		value -= v != WAY_DONE;
		atomic_fetch_add(&p->done, 1);
	}
	return 0;
}

/* Which hammer it is. */
static const char *hammer_name(void)
{
	static char name[100];

	snprintf(name, sizeof(name), "%s, %u bytes to %u, from %u, cut at %u",
		 way == way_kernel ? "kernel" : "mapped", len, at, skew, cut);
	return name;
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

/* Words at random places of the message, each aligned and inside. */
static void look_at_words(const uint8_t *start, struct rng *rng)
{
	for (uint32_t i = 0; i < LOOKS; i++) {
		unsigned size = 2u << rng_below(rng, 3);
		uintptr_t first = align_up((uintptr_t)start, size), end = (uintptr_t)start + len;

		if (first + size > end)
			continue;
		first += rng_below(rng, (end - first) / size) * size;
		uint64_t seen = look_at_array((const uint8_t *)first, size);

		CHECK_SAY(is_whole(seen, size), "%s: %u bytes at %zu are 0x%llx", hammer_name(),
			  size, first - (uintptr_t)start, (unsigned long long)seen);
	}
}

/* The last byte says how far the message has come at least: all others are as new, or newer.  The
 * values repeat, so a look during which the writer came far, as this process did not run, says
 * nothing. */
static void look_at_order(struct way_pair *p, const uint8_t *start, struct rng *rng)
{
	for (uint32_t i = 0; i < LOOKS; i++) {
		uint64_t before = atomic_load(&p->done);
		uint8_t last = *(const volatile uint8_t *)(start + len - 1);
		uint8_t other;

		atomic_thread_fence(memory_order_acquire);
		other = *(const volatile uint8_t *)(start + rng_below(rng, len));
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load(&p->done) - before > FAR)
			continue;
		CHECK_SAY((uint8_t)(other - last) < 128, "%s: last 0x%x, another 0x%x",
			  hammer_name(), last, other);
	}
}

static void await_writes(struct way_pair *p, uint64_t n)
{
	for (int ms = 0; atomic_load(&p->done) < n; ms++) {
		CHECK(ms < 60000);
		usleep(1000);
	}
}

static void test_hammer(struct way_pair *p, way_fn *by, uint32_t bytes, uint32_t offset,
			uint32_t from)
{
	struct rng rng = {bytes * 64 + offset + 1};
	pid_t child;

	way = by;
	len = bytes;
	at = offset;
	skew = from;
	memset(memory_of(p), 0, len);
	atomic_store(&p->end, 0);
	atomic_store(&p->done, 0);
	child = way_pair_fork(p, child_writes);
	await_writes(p, 1);
	look_at_words(memory_of(p), &rng);
	while (atomic_load(&p->done) < WRITES)
		look_at_words(memory_of(p), &rng);
	look_at_order(p, memory_of(p), &rng);
	atomic_store(&p->end, 1);
	CHECK(way_pair_join(child));
}

/* ---- the other direction: this process writes words, the child reads ---- */

static int child_reads(struct way_pair *p)
{
	static uint8_t mine[16384] __attribute__((aligned(4096)));
	uint32_t tid = alive_probe(&p->alive, p->pid);
	struct run local = {mine + skew, len}, remote = {memory_of(p), len};
	uint64_t torn = 0;

	CHECK(tid && len % 8 == 0);
	for (uint32_t i = 0; i < 10000; i++) {
		if (way_pair_move(p, way, tid, true, &local, 1, &remote, 1, NULL) != WAY_DONE)
			continue;
		for (uint32_t k = 0; k < len; k += 8) {
			uint64_t v;

			memcpy(&v, mine + skew + k, sizeof(v));
			if (!is_whole(v, 8))
				torn = v;
		}
	}
	atomic_store(&p->end, 1);
	CHECK_SAY(!torn, "%s: read 0x%llx", hammer_name(), (unsigned long long)torn);
	return 0;
}

static void hammer_reads(struct way_pair *p, way_fn *by, uint32_t bytes, uint32_t from)
{
	volatile uint64_t *words;
	pid_t child;

	way = by;
	len = bytes;
	at = 0;
	skew = from;
	words = (volatile uint64_t *)(void *)memory_of(p);
	memset(memory_of(p), 0, len);
	atomic_store(&p->end, 0);
	child = way_pair_fork(p, child_reads);
	for (uint64_t v = 0; !atomic_load(&p->end); v++)
		for (uint32_t k = 0; k < len / 8; k++)
			words[k] = (v & 0xff) * 0x0101010101010101ull;
	CHECK(way_pair_join(child));
}

/* Where a string instruction takes the destination for one that overlaps the source: it lies so
 * many bytes behind it in its page (words_alias). */
static void hammer_aliases(struct way_pair *p, way_fn *by)
{
	static const uint32_t lengths[] = {8, 24, 64, 704, 5000};
	uint32_t in_page = (uintptr_t)(by == way_kernel ? p->memory : p->shared) % 4096;

	for (uint32_t behind = 1; behind < 64; behind += behind < 16 ? 2 : 24)
		for (size_t i = 0; i < array_size(lengths); i++) {
			uint32_t offset = i % 2 ? 8 : 0;

			test_hammer(p, by, lengths[i], offset, 4096 + in_page + offset - behind);
			hammer_reads(p, by, lengths[i], in_page + behind);
		}
	test_hammer(p, by, 24, 0, 4096 + in_page - 8);
	hammer_reads(p, by, 24, in_page + 8);
}

int main(void)
{
	static const uint32_t lengths[] = {2, 3, 4, 6, 7, 8, 9, 12, 16, 20, 31, 64, 100, 500, 4100};
	struct way_pair *p = way_pair_new();

	if (!rseq_available())
		SKIP("the C library registers no restartable sequences");
	way_pair_hold(p);
	for (uint32_t parts = 1; parts < 24; parts += 2) {
		cut = parts;
		test_hammer(p, way_kernel, 24, parts % 3 ? 0 : 4, parts % 8);
		test_hammer(p, way_mapped, 24, parts % 3 ? 0 : 4, parts % 8);
	}
	cut = 0;
	for (size_t i = 0; i < array_size(lengths); i++)
		for (uint32_t offset = 0; offset < 8; offset += i % 2 ? 4 : 3) {
			test_hammer(p, way_kernel, lengths[i], offset, (uint32_t)i * 5 % 8);
			test_hammer(p, way_mapped, lengths[i], offset, (uint32_t)i * 5 % 8);
		}
	hammer_aliases(p, way_kernel);
	hammer_aliases(p, way_mapped);
	for (uint32_t from = 0; from < 8; from++)
		for (uint32_t bytes = 8; bytes <= 4096; bytes *= 8) {
			hammer_reads(p, way_kernel, bytes, from);
			hammer_reads(p, way_mapped, bytes, from);
		}
	return 0;
}
