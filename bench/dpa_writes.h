/* SPDX-License-Identifier: BSD-2-Clause */
/* What host and device code of dpa_writes agree on. */
#pragma once

#include <stdint.h>

#define LOG_WRITE_DEPTH 6u
#define WRITE_DEPTH	(1u << LOG_WRITE_DEPTH)

/* On the heap of the DPA. */
struct write_loop {
	uint64_t qpn, ring, pi;
	uint64_t cq_ring, cq_record, ci;
	uint64_t data, lkey, bytes;
	uint64_t remote, rkey;
};
