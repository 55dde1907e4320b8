// SPDX-License-Identifier: BSD-2-Clause
/*
 * Random configurations, data, damage and cuts: the engine against the model, byte for byte and
 * error for error.  sig_random_test [cases [seed]]: a million cases take a few minutes.
 */
#include <string.h>

#include "sig_case.h"

enum { MAX_RUNS = 4096 };

/* [0, n) of base as runs, cut as the style says. */
static uint32_t cut_runs(struct sig_case *s, uint8_t *base, uint64_t n, struct run *run)
{
	uint64_t longest[] = {n + 1, 700, 40, 9};
	uint64_t most = longest[rng_below(&s->rng, array_size(longest))];
	uint32_t runs = 0;

	while (n) {
		uint64_t len = 1 + rng_below(&s->rng, most);

		if (len > n || runs == MAX_RUNS - 1)
			len = n;
		if (runs < MAX_RUNS - 2 && maybe(s, 3))
			run[runs++] = (struct run){base, 0};
		run[runs++] = (struct run){base, len};
		base += len;
		n -= len;
	}
	return runs;
}

/* The model's errors without those of block skip are those of the streams, in this order. */
static void compare_errors(struct sig_case *s, const struct sig_stream *st, uint32_t n,
			   uint64_t skip)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t left = st[i].errors;
		const struct sig_error *first = sig_stream_finish(&st[i]);

		HOLDS(s, !first == !left);
		while (at < s->model.errors && s->model.error[at].block == skip)
			at++;
		if (first) {
			const struct model_error *e = &s->model.error[at];

			HOLDS(s, at < s->model.errors);
			HOLDS(s, first->kind == e->kind && first->block == e->block);
			HOLDS(s, first->found == signature_word(e->found));
			HOLDS(s, first->computed == signature_word(e->computed));
			HOLDS(s, first->side == (s->dir == SIG_GATHER ? SIG_MEMORY : SIG_WIRE));
		}
		while (left) {
			HOLDS(s, at < s->model.errors);
			left -= s->model.error[at++].block != skip;
		}
	}
	while (at < s->model.errors && s->model.error[at].block == skip)
		at++;
	HOLDS(s, at == s->model.errors);
}

static void compare_bytes(struct sig_case *s)
{
	HOLDS(s, !memcmp(s->got, s->want, s->out_bytes));
}

/* The wire in packets, memory as one list; sometimes a packet is sent again. */
static void feed_packets(struct sig_case *s, struct sig_stream *st, uint64_t from, uint64_t to)
{
	static struct run memory_run[MAX_RUNS];
	static struct run packet_run[MAX_RUNS];
	bool gather = s->dir == SIG_GATHER;
	uint8_t *memory = gather ? s->in : s->got;
	uint8_t *wire = gather ? s->got : s->in;
	uint64_t start = sig_place(&s->plan, from);
	uint64_t end = sig_place(&s->plan, to);
	uint64_t mtus[] = {to - from + 1, 1024, 256, 57, 8, 1};
	uint64_t mtu = mtus[rng_below(&s->rng, array_size(mtus))];
	struct sig_cursor m =
		sig_cursor(memory_run, cut_runs(s, memory + start, end - start, memory_run));
	uint64_t at = from;

	HOLDS(s, sig_stream_at(st, SIG_WIRE) == from);
	HOLDS(s, sig_stream_at(st, SIG_MEMORY) == start);
	do {
		uint64_t n = at < to ? 1 + rng_below(&s->rng, mtu) : 0;
		struct sig_stream before = *st;
		struct sig_cursor before_m = m;
		int times = maybe(s, 10) ? 2 : 1;

		if (n > to - at)
			n = to - at;
		for (; times; times--) {
			struct sig_cursor p =
				sig_cursor(packet_run, cut_runs(s, wire + at, n, packet_run));

			*st = before;
			m = before_m;
			if (gather)
				sig_stream_feed(st, &m, &p);
			else
				sig_stream_feed(st, &p, &m);
			HOLDS(s, p.moved == n && !sig_cursor_left(&p));
			HOLDS(s, sig_stream_at(st, SIG_WIRE) == at + n);
		}
		at += n;
	} while (at < to);
	HOLDS(s, m.moved == end - start && !sig_cursor_left(&m));
	HOLDS(s, sig_stream_at(st, SIG_MEMORY) == end);
}

static void in_packets(struct sig_case *s)
{
	struct sig_stream st;

	memset(s->got, 0xee, s->out_bytes);
	sig_stream_begin(&st, &s->plan, 0);
	HOLDS(s, !sig_stream_lead(&st));
	feed_packets(s, &st, 0, s->wire);
	compare_bytes(s);
	compare_errors(s, &st, 1, UINT64_MAX);
}

/* As two accesses, of which the second knows nothing of the first but what is in memory. */
static void in_two(struct sig_case *s)
{
	static struct run run[MAX_RUNS];
	const struct sig_domain *w = &s->config.side[SIG_WIRE];
	uint64_t unit = (uint64_t)w->block + sig_bytes(w->type);
	uint64_t split = rng_below(&s->rng, s->wire + 1);
	uint8_t *memory = s->dir == SIG_GATHER ? s->in : s->got;
	uint64_t skip = UINT64_MAX;
	struct sig_stream st[2];
	struct sig_cursor c;
	uint64_t lead, first;
	uint64_t start;

	/* A signature of which the first part came before cannot be checked. */
	if (s->dir == SIG_SCATTER && unit && split % unit > w->block)
		skip = split / unit;
	memset(s->got, 0xee, s->out_bytes);
	sig_stream_begin(&st[0], &s->plan, 0);
	feed_packets(s, &st[0], 0, split);
	sig_stream_begin(&st[1], &s->plan, split);
	lead = sig_stream_lead(&st[1]);
	start = sig_place(&s->plan, split);
	HOLDS(s, lead <= start);
	/* in two calls, cut anywhere */
	first = rng_below(&s->rng, lead + 1);
	c = sig_cursor(run, cut_runs(s, memory + start - lead, first, run));
	HOLDS(s, sig_stream_prime(&st[1], &c) == (first == lead));
	HOLDS(s, c.moved == first && sig_stream_lead(&st[1]) == lead - first);
	c = sig_cursor(run, cut_runs(s, memory + start - lead + first, lead - first, run));
	HOLDS(s, sig_stream_prime(&st[1], &c));
	HOLDS(s, c.moved == lead - first);
	feed_packets(s, &st[1], split, s->wire);
	compare_bytes(s);
	compare_errors(s, st, 2, skip);
}

/* Some of the destination is dropped; what is not is as before. */
static void with_holes(struct sig_case *s)
{
	static struct run from_run[MAX_RUNS];
	static struct run to_run[MAX_RUNS];
	uint32_t n = cut_runs(s, s->got, s->out_bytes, to_run);
	struct sig_cursor from = sig_cursor(from_run, cut_runs(s, s->in, s->in_bytes, from_run));
	struct sig_cursor to = sig_cursor(to_run, n);
	struct sig_stream st;
	uint8_t *at = s->got;

	memset(s->got, 0xee, s->out_bytes);
	for (uint32_t i = 0; i < n; i++) {
		if (maybe(s, 30)) {
			to_run[i].addr = RUN_DISCARD;
			memcpy(at, s->want + (at - s->got), to_run[i].len);
		}
		at += to_run[i].len;
	}
	sig_stream_begin(&st, &s->plan, 0);
	sig_stream_feed(&st, &from, &to);
	HOLDS(s, from.moved == s->in_bytes && to.moved == s->out_bytes);
	compare_bytes(s);
	compare_errors(s, &st, 1, UINT64_MAX);
}

int main(int argc, char **argv)
{
	static struct sig_case s;
	uint64_t cases = argc > 1 ? strtoull(argv[1], NULL, 0) : 6000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 0x736967;
	uint64_t errors = 0;
	uint64_t signed_cases = 0;

	printf("seed %#llx\n", (unsigned long long)seed);
	for (uint64_t i = 0; i < cases; i++) {
		s.seed = seed;
		s.rng.state = seed | 1ull << 63;
		random_scene(&s);
		HOLDS(&s, sig_place(&s.plan, s.wire) == s.model.memory_bytes);
		in_packets(&s);
		in_two(&s);
		with_holes(&s);
		errors += s.model.errors;
		signed_cases += s.plan.in.guard || s.plan.out.guard;
		seed = seed * 6364136223846793005u + 1442695040888963407u;
	}
	printf("%llu cases, %llu with signatures, %llu errors found\n", (unsigned long long)cases,
	       (unsigned long long)signed_cases, (unsigned long long)errors);
	/* A test that never finds anything tests nothing. */
	CHECK(cases < 100 || (errors > cases / 10 && signed_cases > cases / 2));
	return 0;
}
