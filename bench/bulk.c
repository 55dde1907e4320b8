/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs in one process, RDMA WRITEs and READs of one large block, and memcpy of the same
 * block between the same buffers: the three take turns in short slices, so that whatever else the
 * machine does meets all of them alike.  bulk [DEVICE [BYTES]]: prints "name value MB/s" lines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define DEPTH	 16u
#define SLICES	 10u
#define SLICE_NS 30000000u

enum way { WAY_WRITE, WAY_READ, WAY_MEMCPY, WAYS };

static const char *const name_of[WAYS] = {"write", "read", "memcpy"};

/* Blocks moved in one slice; *ns is the time that they took. */
static uint64_t by_verbs(const struct pair *p, enum ibv_wr_opcode opcode, uint64_t *ns)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	uint64_t start = device_now_ns();
	uint64_t blocks = 0;
	unsigned in_flight = 0;

	pair_build(p, opcode, &wr, &sge, 1);
	do {
		for (; in_flight < DEPTH; in_flight++)
			pair_post(p, &wr);
		for (unsigned n = pair_reap(p); n; n--, in_flight--)
			blocks++;
		*ns = device_now_ns() - start;
	} while (*ns < SLICE_NS);
	while (in_flight) {
		unsigned n = pair_reap(p);

		in_flight -= n;
		blocks += n;
	}
	*ns = device_now_ns() - start;
	return blocks;
}

static uint64_t by_memcpy(const struct pair *p, uint64_t *ns)
{
	uint64_t start = device_now_ns();
	uint64_t blocks = 0;

	do {
		memcpy(p->target, p->source, p->bytes);
		/* The compiler must not find out that one copy would do. */
		__asm__ volatile("" : : "r"(p->target), "r"(p->source) : "memory");
		blocks++;
		*ns = device_now_ns() - start;
	} while (*ns < SLICE_NS);
	return blocks;
}

static uint64_t slice(const struct pair *p, enum way way, uint64_t *ns)
{
	if (way == WAY_MEMCPY)
		return by_memcpy(p, ns);
	return by_verbs(p, way == WAY_WRITE ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, ns);
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 0) : 1u << 20;
	uint64_t blocks[WAYS] = {0};
	uint64_t ns[WAYS] = {0};
	struct pair p;

	if (!bytes || bytes > 1u << 30) {
		fputs("Usage: bulk [DEVICE [BYTES]]\n", stderr);
		return 2;
	}
	pair_open(&p, argc > 1 ? argv[1] : NULL, DEPTH, bytes);
	for (unsigned i = 0; i <= SLICES; i++) {
		for (enum way way = 0; way < WAYS; way++) {
			uint64_t took;
			uint64_t done = slice(&p, way, &took);

			if (i) { /* the first ones warm caches up */
				blocks[way] += done;
				ns[way] += took;
			}
		}
	}
	for (enum way way = 0; way < WAYS; way++)
		printf("%s %.0f MB/s\n", name_of[way],
		       (double)blocks[way] * (double)bytes * 1e3 / (double)ns[way]);
	pair_close(&p);
	return 0;
}
