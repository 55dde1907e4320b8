/* SPDX-License-Identifier: BSD-2-Clause */
/* What device and host of tests/flexio/congestion agree on. */
#pragma once

#include <stdint.h>

/* On the heap; all words. */
struct control {
	/* Each event is answered so, unless rate is 0. */
	uint64_t rate, probe, next;
	/* While it is not 0 the handler takes no events. */
	uint64_t holds;
	/* By the handler. */
	uint64_t events, activations;
	uint64_t of_type[8];
	uint64_t bytes, packets, nacks, nack_kind;
	uint64_t ccq, tag, qpn, port;
	uint64_t flows; /* with data that was zero */
	uint64_t wrong;
	uint64_t round_trip;
	/* Of the last event of what was sent. */
	uint64_t last_bytes, last_packets, last_32bytes, last_16_bits_packets;
};

#define LOG_DEPTH 5u
#define DEPTH	  (1u << LOG_DEPTH)

/* A queue that device code sends by.  Lies on the heap. */
struct queue {
	uint64_t number, ring, pi;
	uint64_t data, bytes, key;
	uint64_t remote, rkey; /* of a write; 0: it is a frame */
	uint64_t cq_ring, cq_record, ci;
};
