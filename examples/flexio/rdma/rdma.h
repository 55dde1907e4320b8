/* SPDX-License-Identifier: BSD-2-Clause */
/* What the host's part and the device's part agree on. */
#pragma once

#include <stdint.h>

#define NUMBERS	  1000u
#define LOG_DEPTH 4u
#define DEPTH	  (1u << LOG_DEPTH)

/* On the heap of the DPA: the queue pair, its completions, and the memory at both ends. */
struct writer {
	uint64_t qpn, ring, pi;
	uint64_t cq_ring, cq_record, ci;
	uint64_t numbers, lkey;
	uint64_t remote, rkey;
};
