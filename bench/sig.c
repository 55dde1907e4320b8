/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signature engine beside what the machine and ISA-L do with the same bytes: gigabytes of data
 * per second, for each type and block size, at a working set of 1 MiB that is used again and again.
 *
 *	memcpy	copies the data, block by block
 *	crc	the kernel of the type alone
 *	two	copies all of the data, then runs the kernel over each block (two passes)
 *	fused	ISA-L's stitched copy, of which there is one for T10-DIF alone
 *	add, check, strip	the engine: none to type, type to type (all copied), type to none
 *	runs	strip, but from a run for each block and one for each signature
 *
 * ratio: the slowest of add, check and strip by the best of two and fused.  The rounds of all
 * columns take turns, and each column has its best: other load on the machine favours none.
 * sig [SECONDS]: how long a row may take.
 */
#include <isa-l/crc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adapter/sig/sig.h"

enum { WORKING_SET = 1 << 20, SPARE = 1 << 16 };

struct bench {
	enum sig_type type;
	uint32_t block;
	uint64_t blocks; /* data and signatures of so many fit into the working set */
	const struct sig_guard *guard;
	struct sig_plan add;
	struct sig_plan check;
	struct sig_plan strip;
	uint8_t *data;	/* without signatures */
	uint8_t *units; /* with */
	uint8_t *to;
	struct run run[2 * WORKING_SET / 512];
	uint64_t sink;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The compiler must not find out that nobody looks at the destination. */
static void keep(void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

static void run_memcpy(struct bench *b)
{
	for (uint64_t k = 0; k < b->blocks; k++) {
		memcpy(b->to + k * b->block, b->data + k * b->block, b->block);
		keep(b->to);
	}
}

static void run_crc(struct bench *b)
{
	for (uint64_t k = 0; k < b->blocks; k++)
		b->sink += b->guard->update(b->guard->start[1], b->data + k * b->block, b->block);
}

static void run_two(struct bench *b)
{
	memcpy(b->to, b->data, b->blocks * b->block);
	keep(b->to);
	for (uint64_t k = 0; k < b->blocks; k++)
		b->sink += b->guard->update(b->guard->start[1], b->to + k * b->block, b->block);
}

static void run_fused(struct bench *b)
{
	for (uint64_t k = 0; k < b->blocks; k++)
		b->sink += crc16_t10dif_copy(0xffff, b->to + k * b->block, b->data + k * b->block,
					     b->block);
	keep(b->to);
}

static void engine_from(struct bench *b, const struct sig_plan *p, const struct run *run,
			uint32_t runs, uint64_t out)
{
	struct run destination = {b->to, b->blocks * out};
	struct sig_cursor f = sig_cursor(run, runs);
	struct sig_cursor t = sig_cursor(&destination, 1);
	struct sig_stream s;

	sig_stream_begin(&s, p, 0);
	sig_stream_feed(&s, &f, &t);
	if (sig_stream_finish(&s) || sig_cursor_left(&f) || t.moved != destination.len) {
		fputs("sig: the engine failed\n", stderr);
		exit(1);
	}
	keep(b->to);
}

static void engine(struct bench *b, const struct sig_plan *p, uint8_t *from, uint64_t in,
		   uint64_t out)
{
	struct run source = {from, b->blocks * in};

	engine_from(b, p, &source, 1, out);
}

static void run_add(struct bench *b)
{
	engine(b, &b->add, b->data, b->block, b->block + b->guard->bytes);
}

static void run_check(struct bench *b)
{
	engine(b, &b->check, b->units, b->block + b->guard->bytes, b->block + b->guard->bytes);
}

static void run_strip(struct bench *b)
{
	engine(b, &b->strip, b->units, b->block + b->guard->bytes, b->block);
}

static void run_runs(struct bench *b)
{
	engine_from(b, &b->strip, b->run, (uint32_t)(2 * b->blocks), b->block);
}

enum column { MEMCPY, CRC, TWO, FUSED, ADD, CHECK, STRIP, RUNS, COLUMNS };

static const struct {
	const char *name;
	void (*run)(struct bench *b);
} columns[COLUMNS] = {
	[MEMCPY] = {"memcpy", run_memcpy}, [CRC] = {"crc", run_crc},
	[TWO] = {"two", run_two},	   [FUSED] = {"fused", run_fused},
	[ADD] = {"add", run_add},	   [CHECK] = {"check", run_check},
	[STRIP] = {"strip", run_strip},	   [RUNS] = {"runs", run_runs},
};

static void prepare(struct bench *b)
{
	struct sig_domain d = {.type = b->type,
			       .block = b->block,
			       .seed_ones = true,
			       .app_tag = 0x1234,
			       .app_mask = 0xffff,
			       .ref_increment = true};
	struct sig_config c = {.side[SIG_WIRE] = d, .check_mask = 0xff};

	b->guard = sig_guard(b->type);
	b->blocks = WORKING_SET / (b->block + b->guard->bytes);
	sig_plan_make(&b->add, &c, SIG_GATHER);
	sig_plan_make(&b->strip, &c, SIG_SCATTER);
	c.side[SIG_MEMORY] = d;
	c.same_structure = true;
	c.copy_mask = 0xff;
	sig_plan_make(&b->check, &c, SIG_SCATTER);
	for (uint32_t i = 0; i < WORKING_SET; i++)
		b->data[i] = (uint8_t)(i * 2654435761u >> 13);
	run_add(b);
	memcpy(b->units, b->to, b->blocks * (b->block + b->guard->bytes));
	for (uint64_t k = 0; k < b->blocks; k++) {
		uint8_t *unit = b->units + k * (b->block + b->guard->bytes);

		b->run[2 * k] = (struct run){unit, b->block};
		b->run[2 * k + 1] = (struct run){unit + b->block, b->guard->bytes};
	}
}

static void row(struct bench *b, double seconds)
{
	double best[COLUMNS] = {0};
	double peer;
	double slowest;
	uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);

	prepare(b);
	do {
		for (int i = 0; i < COLUMNS; i++) {
			enum { TIMES = 4 };
			uint64_t start;
			double rate;

			if (i == FUSED && b->type != SIG_T10DIF_CRC)
				continue;
			start = now_ns();
			for (int k = 0; k < TIMES; k++)
				columns[i].run(b);
			rate = (double)(TIMES * b->blocks * b->block) / (double)(now_ns() - start);
			if (rate > best[i])
				best[i] = rate;
		}
	} while (now_ns() < end);
	printf("%-22s %5u", sig_type_name(b->type), b->block);
	for (int i = 0; i < COLUMNS; i++)
		best[i] > 0 ? printf(" %7.1f", best[i]) : printf(" %7s", "-");
	peer = best[TWO] > best[FUSED] ? best[TWO] : best[FUSED];
	slowest = best[ADD] < best[STRIP] ? best[ADD] : best[STRIP];
	if (best[CHECK] < slowest)
		slowest = best[CHECK];
	printf(" %6.2f\n", slowest / peer);
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = {512, 4096};
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.5;
	static struct bench b;

	b.data = aligned_alloc(4096, WORKING_SET + SPARE);
	b.units = aligned_alloc(4096, WORKING_SET + SPARE);
	b.to = aligned_alloc(4096, WORKING_SET + SPARE);
	if (!b.data || !b.units || !b.to) {
		fputs("sig: out of memory\n", stderr);
		return 2;
	}
	memset(b.units, 0, WORKING_SET + SPARE);
	memset(b.to, 0, WORKING_SET + SPARE);
	printf("%-22s %5s", "GB/s", "block");
	for (int i = 0; i < COLUMNS; i++)
		printf(" %7s", columns[i].name);
	printf(" %6s\n", "ratio");
	for (b.type = SIG_T10DIF_CRC; b.type < SIG_TYPES; b.type++)
		for (size_t i = 0; i < array_size(sizes); i++) {
			b.block = sizes[i];
			row(&b, seconds);
		}
	keep(&b.sink);
	free(b.data);
	free(b.units);
	free(b.to);
	return 0;
}
