/* SPDX-License-Identifier: BSD-2-Clause */
/* What device and host of tests/flexio/network agree on. */
#pragma once

#include <stdint.h>

#define LOG_DEPTH  5u
#define DEPTH	   (1u << LOG_DEPTH)
#define SLOT_BYTES 2048u

/* On the heap; the argument of the handler.  All words, so that the host may read them by a call. */
struct network {
	uint64_t cqn, cq_ring, cq_record; /* of receives */
	uint64_t rq_ring, rq_record;
	uint64_t sqn, sq_ring, sq_data, key;
	uint64_t edits; /* of frames of so many bytes, the last one */
	/* 1: the queues are of that device; 2: sends are rung across, by the device's number. */
	uint64_t elsewhere, device;
	/* by the handler */
	uint64_t ci, pi, frames, errors;
	uint64_t last_bytes, last_counter, last_user, last_sound;
};

/* What it becomes. */
#define EDITED 0xe5u

/* On the heap; the argument of the handler that posts and rings all the time. */
struct hammer {
	uint64_t stop;
	uint64_t cqn, sqn, qpn;		    /* of the queues that there are, by the host */
	uint64_t old_cqn, old_sqn, old_qpn; /* and of those before them */
	uint64_t first;			    /* of a queue that has gone long ago */
	uint64_t sq_ring, qp_ring, rq_record;
	uint64_t data, bytes, key, remote;
	/* by the handler */
	uint64_t pi, turns, finished;
};

#define HAMMER_BATCH 64u
#define HAMMER_AHEAD 8u /* numbers that queues have later */

/* One work request of a call: what send_requests makes so many of. */
struct request {
	uint64_t sqn, ring, pi, count;
	uint64_t ce;
	uint64_t kind; /* enum request_kind */
	uint64_t data, bytes, key;
	uint64_t remote, remote_key; /* of a write */
	uint64_t window, window_key; /* of a ring of the host's; 0: it is on the heap */
};

enum request_kind { REQUEST_SEND, REQUEST_NOP, REQUEST_WRITE, REQUEST_MESSAGE };
