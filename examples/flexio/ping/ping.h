/* SPDX-License-Identifier: BSD-2-Clause */
/* What both sides of the example know. */
#pragma once

#include <stdint.h>

#define LOG_ENTRIES 6u
#define ENTRIES	    (1u << LOG_ENTRIES) /* of each queue */
#define FRAME_BYTES 2048u

#define OWN_MAC                                    \
	{                                          \
		0x02, 0x00, 0x5e, 0x00, 0x02, 0x02 \
	}

/* In the DPA's memory; the argument of the handler. */
struct responder {
	uint64_t receive_cq_ring, receive_cq_record, receive_cqn;
	uint64_t receive_data, receive_record;
	uint64_t send_ring, send_data, send_key, sqn;
	uint32_t address; /* whom it answers for, in the byte order of the network */
	uint32_t reserved;
	/* the handler's */
	uint64_t completions, requests;
	/* and the host's to read */
	uint64_t answers, others, errors;
};
