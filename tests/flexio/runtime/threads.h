/* SPDX-License-Identifier: BSD-2-Clause */
/* What host and device code of the threads program share. */
#pragma once

#include <stdint.h>

/* On the heap, cleared.  What different threads write lies in different cache lines. */
struct shared {
	struct {
		uint32_t locked;
	} lock;
	uint32_t torn;
	uint64_t first;
	uint64_t second;
	uint32_t added32;
	uint32_t swapped32;
	uint64_t added64;
	uint64_t swapped64;
	uint64_t token;
	uint64_t flag __attribute__((__aligned__(64)));
	uint64_t data[2] __attribute__((__aligned__(64)));
};
