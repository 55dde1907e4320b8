/* SPDX-License-Identifier: BSD-2-Clause */
/* What both sides of the example know. */
#pragma once

#include <stdint.h>

#define LOG_ENTRIES 4u
#define ENTRIES	    (1u << LOG_ENTRIES) /* of each ring */
#define FRAMES	    8u			/* that are under way at a time */
#define FRAME_BYTES 64u
#define TRIPS	    1000u
#define ETHERTYPE   0x88b5u /* for experiments */

#define OWN_MAC                                    \
	{                                          \
		0x02, 0x00, 0x5e, 0x00, 0x02, 0x03 \
	}

struct frame {
	uint8_t to[6], from[6], type[2];
	uint8_t number, reserved;
	uint32_t trips; /* both sides have one byte order */
	uint8_t rest[FRAME_BYTES - 20];
};

/*
 * All in memory of the host: rings, doorbell record, data and counters.  The host loads and stores here as it likes,
 * and device code does by a window; the device knows the beginning as a umem, and the data by a key.
 */
struct area {
	uint8_t receive_cq[ENTRIES][64], send_cq[ENTRIES][64];
	uint8_t requests[ENTRIES][64];
	uint8_t receives[ENTRIES][16];
	uint32_t receive_record[2];
	/* the device code's */
	uint64_t arrivals, finished, errors;
	/* at the same place as the receive, or the request */
	struct frame received[ENTRIES], sent[ENTRIES];
};

/* In the DPA's memory; the argument of the handler. */
struct work {
	uint64_t area; /* the host's address of it */
	uint64_t key, window;
	uint64_t cqn, cq_record, sqn; /* a CQ's record is always in the DPA's memory */
	uint64_t completions, requests;
};
