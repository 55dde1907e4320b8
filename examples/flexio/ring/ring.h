/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two rings in memory of the host: the host writes requests and device code reads them, device code writes
 * answers and the host reads them.  Who writes a ring counts what it has written; who reads it, what it has
 * read, so neither overtakes the other.
 */
#pragma once

#include <stdint.h>

#define RING_ENTRIES 64u
#define STOP	     UINT64_MAX /* a request after which there is none */

struct ring {
	uint64_t written;
	uint8_t apart[56]; /* the counters are in a cache line each */
	uint64_t read;
	uint8_t apart_too[56];
	uint64_t entry[RING_ENTRIES];
};

struct rings {
	struct ring requests, answers;
};

/* The argument of the device code. */
struct work {
	uint64_t rings; /* the host's address of struct rings */
	uint32_t key, window;
};

#define WORK_FAILED UINT64_MAX
