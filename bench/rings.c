// SPDX-License-Identifier: BSD-2-Clause
#include "rings.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "talk.h"
#include "verbs_device.h"

#define LINE	      64u
#define RING_BYTES    65536u /* each way; what a channel goes through again and again */
#define RING_LINES    (RING_BYTES / LINE)
#define HEADER	      48u
#define TRIPS	      20000u
#define LINES_ONE_WAY 4000000u
#define WORD	      sizeof(uint64_t)

/* What one side writes and the other reads; the first word of a line says when the line is whole. */
struct ring {
	_Alignas(4096) uint8_t bytes[RING_BYTES];
	_Alignas(LINE) _Atomic(uint64_t) taken; /* lines, says the reader */
};

struct side {
	struct ring *out, *in;
	uint64_t sent, received; /* lines */
	_Atomic(uint64_t) lock;	 /* nobody else's */
	uint8_t source[2048], target[2048];
};

struct floor {
	const char *name, *unit;
	uint32_t payload;
	bool locked;
	double (*begin)(struct side *s, const struct floor *f);
	void (*answer)(struct side *s, const struct floor *f);
};

static uint8_t *line_at(struct ring *r, uint64_t line)
{
	return r->bytes + line % RING_LINES * LINE;
}

static _Atomic(uint64_t) *word_at(struct ring *r, uint64_t line)
{
	return (_Atomic(uint64_t) *)(void *)line_at(r, line);
}

/* ---- there and back ---- */

static uint64_t lines_of(uint32_t payload)
{
	return (WORD + (payload ? HEADER + payload : 0) + LINE - 1) / LINE;
}

/* A message does not reach over the end of the ring. */
static uint64_t place(uint64_t at, uint64_t lines)
{
	return at % RING_LINES + lines > RING_LINES ? at + RING_LINES - at % RING_LINES : at;
}

/* The word is the message's place, which is never 0, and not what lay there a round before. */
static void message_send(struct side *s, uint32_t payload)
{
	uint64_t lines = lines_of(payload), at = place(s->sent, lines);
	_Atomic(uint64_t) *word = word_at(s->out, at);

	if (payload) {
		uint8_t copy[2048];

		memcpy(copy, s->source, HEADER + payload);
		__asm__ volatile("" ::"r"(copy) : "memory");
		memcpy(line_at(s->out, at) + WORD, copy, HEADER + payload);
	}
	atomic_store_explicit(word, at + 1, memory_order_release);
	s->sent = at + lines;
}

static void message_receive(struct side *s, uint32_t payload)
{
	uint64_t lines = lines_of(payload), at = place(s->received, lines);
	_Atomic(uint64_t) *word = word_at(s->in, at);

	while (atomic_load_explicit(word, memory_order_acquire) != at + 1)
		;
	if (payload) {
		uint8_t copy[2048];

		memcpy(copy, line_at(s->in, at) + WORD, HEADER + payload);
		__asm__ volatile("" ::"r"(copy) : "memory");
		memcpy(s->target, copy, HEADER + payload);
	}
	s->received = at + lines;
}

static double trips_begin(struct side *s, const struct floor *f)
{
	static uint64_t ns[TRIPS];
	uint64_t before = device_now_ns();

	for (unsigned i = 0; i < TRIPS; i++) {
		uint64_t now;

		message_send(s, f->payload);
		message_receive(s, f->payload);
		now = device_now_ns();
		ns[i] = now - before;
		before = now;
	}
	device_sort(ns, TRIPS);
	return (double)ns[TRIPS / 2] / 2e3;
}

static void trips_answer(struct side *s, const struct floor *f)
{
	for (;;) {
		message_receive(s, f->payload);
		message_send(s, f->payload);
	}
}

/* ---- one way ---- */

static void lock_taken(struct side *s, const struct floor *f)
{
	if (f->locked)
		atomic_fetch_add_explicit(&s->lock, 1, memory_order_acq_rel);
}

static double lines_begin(struct side *s, const struct floor *f)
{
	uint64_t start = device_now_ns(), taken = 0;

	for (uint64_t i = 0; i < LINES_ONE_WAY; i++) {
		_Atomic(uint64_t) *line = word_at(s->out, i);

		while (i - taken >= RING_LINES)
			taken = atomic_load_explicit(&s->out->taken, memory_order_acquire);
		lock_taken(s, f);
		for (unsigned w = 1; w < LINE / WORD; w++)
			atomic_store_explicit(line + w, i, memory_order_relaxed);
		atomic_store_explicit(line, i + 1, memory_order_release);
	}
	while (atomic_load_explicit(&s->out->taken, memory_order_acquire) < LINES_ONE_WAY)
		;
	return LINES_ONE_WAY * 1e3 / (double)(device_now_ns() - start);
}

static void lines_answer(struct side *s, const struct floor *f)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < LINES_ONE_WAY; i++) {
		_Atomic(uint64_t) *line = word_at(s->in, i);

		while (atomic_load_explicit(line, memory_order_acquire) != i + 1)
			;
		for (unsigned w = 1; w < LINE / WORD; w++)
			sum += atomic_load_explicit(line + w, memory_order_relaxed);
		lock_taken(s, f);
		/* As often as a receiver acknowledges. */
		if (i % 16 == 15)
			atomic_store_explicit(&s->in->taken, i + 1, memory_order_release);
	}
	__asm__ volatile("" ::"r"(sum));
	pause();
}

static const struct floor floors[] = {
	{"line", "us", 0, false, trips_begin, trips_answer},
	{"frame_64", "us", 64, false, trips_begin, trips_answer},
	{"frame_1500", "us", 1500, false, trips_begin, trips_answer},
	{"single", "M/s", 0, true, lines_begin, lines_answer},
	{"single_unlocked", "M/s", 0, false, lines_begin, lines_answer},
};

#define FLOORS (sizeof(floors) / sizeof(*floors))

static void ring_measure(const struct floor *f)
{
	struct ring *rings = mmap(NULL, 2 * sizeof(*rings), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	static struct side side;
	pid_t child;

	if (rings == MAP_FAILED)
		device_die("mmap: %m");
	child = talk_fork();
	side = (struct side){.out = &rings[!child], .in = &rings[!!child]};
	memset(side.source, 1, sizeof(side.source));
	if (!child) {
		f->answer(&side, f);
		_exit(0);
	}
	printf("%s %.3f %s\n", f->name, f->begin(&side, f), f->unit);
	fflush(stdout);
	talk_end(child);
	munmap(rings, 2 * sizeof(*rings));
}

bool rings_measure(const char *name)
{
	for (size_t i = 0; i < FLOORS; i++) {
		if (strcmp(floors[i].name, name) != 0)
			continue;
		ring_measure(&floors[i]);
		return true;
	}
	return false;
}
