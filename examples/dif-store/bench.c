/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plain and pipelined reads side by side: two connections to the same target, short rounds in turn,
 * so that whatever else the machine does falls on both alike.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "complain.h"
#include "spin.h"

#define ROUND_NS 100000000u /* of one mode */
/* Latencies kept for the percentiles; the newest if there are more. */
#define SAMPLES (1u << 20)

struct contestant {
	const char *name;
	struct initiator i;
	uint64_t next; /* block */
	uint64_t reads, busy_ns, bad;
	uint32_t *samples; /* ns */
};

struct figures {
	double reads, megabytes, p50_us, p99_us;
};

static bool take(struct contestant *c, struct flight *f)
{
	if (client_report(&c->i, f))
		c->bad++;
	uint64_t ns = f->took_ns < UINT32_MAX ? f->took_ns : UINT32_MAX;

	c->samples[c->reads++ % SAMPLES] = (uint32_t)ns;
	initiator_release(f);
	return c->bad == 0;
}

static bool ask(struct contestant *c, struct flight *f, uint32_t blocks)
{
	uint32_t size = c->i.target.format.block_size;

	if (c->next + blocks > c->i.target.blocks)
		c->next = 0;
	uint64_t offset = c->next * size;

	c->next += blocks;
	return initiator_submit(&c->i, f, PROTO_READ, offset, blocks * size);
}

static bool round_of(struct contestant *c, uint32_t depth, uint32_t blocks)
{
	uint64_t start = now_ns();
	bool time_left = true;

	while (time_left || c->i.under_way || c->i.done_count) {
		struct flight *f;

		if (time_left && c->i.under_way + c->i.done_count < depth) {
			if (!ask(c, initiator_free_flight(&c->i), blocks))
				return false;
			continue;
		}
		f = initiator_reap(&c->i);
		if (!f || !take(c, f))
			return false;
		time_left = now_ns() - start < ROUND_NS;
	}
	c->busy_ns += now_ns() - start;
	return true;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static struct figures figures_of(struct contestant *c, uint32_t blocks)
{
	uint64_t n = c->reads < SAMPLES ? c->reads : SAMPLES;
	uint64_t middle = n / 2, late = n - 1 - n / 100;
	double seconds = (double)c->busy_ns / 1e9;
	struct figures f = {.reads = (double)c->reads / seconds};

	qsort(c->samples, n, sizeof(*c->samples), by_value);
	f.megabytes = f.reads * blocks * c->i.target.format.block_size / 1e6;
	f.p50_us = c->samples[middle] / 1e3;
	f.p99_us = c->samples[late] / 1e3;
	return f;
}

static void print_row(uint32_t depth, const char *name, const struct figures *f)
{
	printf("%5u  %-9s  %9.0f  %8.0f  %8.1f  %8.1f\n", depth, name, f->reads, f->megabytes,
	       f->p50_us, f->p99_us);
}

/* Both contestants with that many reads under way. */
static bool contest(struct contestant pair[2], uint32_t depth, const struct client_options *o)
{
	uint32_t blocks = o->connection.max_blocks;
	uint64_t rounds = o->milliseconds * 1000000 / ROUND_NS;
	struct figures f[2];

	/* A first round that does not count: caches, pages, buffers of the file. */
	for (uint64_t r = 0; r <= (rounds ? rounds : 1); r++) {
		for (int k = 0; k < 2; k++) {
			/* Each goes first as often as the other. */
			struct contestant *c = &pair[r % 2 ? 1 - k : k];

			if (!round_of(c, depth, blocks))
				return false;
			if (r == 0)
				c->reads = c->busy_ns = 0;
		}
	}
	for (int k = 0; k < 2; k++) {
		f[k] = figures_of(&pair[k], blocks);
		print_row(depth, pair[k].name, &f[k]);
		pair[k].reads = pair[k].busy_ns = 0;
	}
	printf("%5s  %-9s  %8.2fx  %7.2fx  %7.2fx  %7.2fx\n", "", "ratio", f[1].reads / f[0].reads,
	       f[1].megabytes / f[0].megabytes, f[1].p50_us / f[0].p50_us,
	       f[1].p99_us / f[0].p99_us);
	return true;
}

static bool open_contestant(struct contestant *c, const struct client_options *o, bool pipelined)
{
	struct initiator_options connection = o->connection;

	connection.pipelined = pipelined;
	c->name = pipelined ? "pipelined" : "plain";
	c->samples = calloc(SAMPLES, sizeof(*c->samples));
	if (!c->samples) {
		complain("no memory for figures");
		return false;
	}
	if (!initiator_open(&c->i, &connection))
		return false;
	if (c->i.target.pipelined == pipelined && o->connection.max_blocks <= c->i.target.blocks)
		return true;
	complain(c->i.target.pipelined == pipelined
			 ? "--request: the store has fewer blocks"
			 : "the target does no pipelining: there is nothing to compare");
	initiator_close(&c->i);
	return false;
}

static bool run(struct contestant pair[2], const struct client_options *o)
{
	const uint32_t depths[] = {1, o->connection.depth};
	const struct dif_format *f = &pair[0].i.target.format;

	printf("reads of %u blocks of %u + %u bytes on %s; rounds of both modes in turn\n",
	       o->connection.max_blocks, f->block_size, DIF_BYTES,
	       ibv_get_device_name(pair[0].i.e.ctx->device));
	printf("depth  mode         reads/s      MB/s    p50 us    p99 us\n");
	for (int d = 0; d < (o->connection.depth > 1 ? 2 : 1); d++)
		if (!contest(pair, depths[d], o))
			return false;
	return true;
}

int client_bench(const struct client_options *o)
{
	struct contestant pair[2] = {};
	int opened = 0, status = CLIENT_LOST;

	while (opened < 2 && open_contestant(&pair[opened], o, opened == 1))
		opened++;
	if (opened == 2 && run(pair, o))
		status = CLIENT_GOOD;
	else if (pair[0].bad || pair[1].bad)
		status = CLIENT_BAD;
	for (int k = 0; k < opened; k++)
		initiator_close(&pair[k].i);
	for (int k = 0; k < 2; k++)
		free(pair[k].samples);
	return status;
}
