/* SPDX-License-Identifier: BSD-2-Clause */
/* What both sides of the example know. */
#pragma once

#include <stdint.h>

#define QUEUES	    4u /* and as many handlers; a power of two */
#define LOG_ENTRIES 10u
#define ENTRIES	    (1u << LOG_ENTRIES) /* of each queue: room for a whole file of flows.pl */
#define FRAME_BYTES 2048u

/* What a handler works on, in the DPA's memory. */
struct lane {
	uint64_t receive_cq_ring, receive_cq_record, receive_cqn;
	uint64_t receive_data, receive_record;
	uint64_t send_cq_ring, send_cq_record;
	uint64_t send_ring, send_data, send_key, sqn;
	/* the handler's */
	uint64_t received, requests, sent;
	/* and the host's to read */
	uint64_t frames, errors;
	uint64_t flows; /* a bit for each: the lowest bits of UDP's source port */
};
