/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory in pieces of random lengths, some of them empty. */
#pragma once

#include "check.h"
#include "usermem/usermem.h"

#define TEST_RUNS 100u

/* Cuts what begins at base; returns how many pieces there are. */
static inline uint32_t test_runs_cut(struct rng *rng, unsigned char *base, size_t total,
				     struct run runs[TEST_RUNS])
{
	uint32_t n = 0;

	for (size_t off = 0; off < total && n < TEST_RUNS; n++) {
		size_t len = rng_below(rng, total / 20 + 2);

		if (len > total - off || n == TEST_RUNS - 1)
			len = total - off;
		runs[n] = (struct run){.addr = base + off, .len = len};
		off += len;
	}
	return n;
}
