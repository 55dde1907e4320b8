/* SPDX-License-Identifier: BSD-2-Clause */
/* What device and host of tests/flexio/queues agree on. */
#pragma once

#include <stdint.h>

/* What the handler does with its queue. */
#define QUEUE_ARMS	  1u /* again, after it has taken all */
#define QUEUE_WAITS	  2u /* for go, between the last look and the bell */
#define QUEUE_WAITS_ARMED 4u /* for go, between the bell and the end */
#define QUEUE_FINISHES	  8u
#define QUEUE_TAKES_NONE  16u
#define QUEUE_YIELDS	  64u
#define QUEUE_RETRIGGERS  32u /* until it has been activated as often as limit says */

#define QUEUE_RINGS 128u /* an empty completion to another CQ */

/* On the heap; the argument of the handler.  All words, so that the host may read them by a call. */
struct queue {
	uint64_t how;
	uint64_t cqn, ring, record, entries;
	uint64_t other; /* address of another one of the same handler; 0: none */
	uint64_t go, limit;
	/* by the handler */
	uint64_t ci;
	uint64_t activations, taken, ends;
	uint64_t byte_cnt, wqe_counter, qpn, opcode, user_index;
	uint64_t thread_id, local_storage;
	uint64_t served, all_activations, resumed;
	uint64_t rings; /* QUEUE_RINGS: number of that CQ */
	uint64_t frame; /* where its stack begins */
	uint64_t wrong; /* it has no context, or no fresh stack */
};

/* The length of a message, by its number. */
#define WATCHED_BYTES(number) (8 + (number) % 1000)

enum ending_how { ENDING_RESCHEDULES, ENDING_RETRIGGERS, ENDING_FINISHES, ENDING_FINISHES_ALL };

/* On the heap, too: a window, a key and the words that a handler counts its ends in. */
struct ending {
	uint64_t how, window, key, host;
};
