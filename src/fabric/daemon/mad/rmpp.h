/* SPDX-License-Identifier: BSD-2-Clause */
/* Reliable multi-packet transfers (IBTA 13.6): the two machines alone.  The caller brings time and
 * packets, so a test or a fuzzer can drive them step by step. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "prm/mad.h"

#define RMPP_WINDOW	  64u /* segments that a receiver lets the sender be ahead */
#define RMPP_TOTAL_MS	  40000u
#define RMPP_LINGER_MS	  10000u
#define RMPP_ACK_MS	  2000u
#define RMPP_MOST_DATA_AT 64u	      /* the largest of all classes (mad_data_at) */
#define RMPP_MOST_BYTES	  (64u << 20) /* of a message that we put together */

enum rmpp_status {
	RMPP_RESOURCES = 1,
	RMPP_TOTAL_TIME = 118,
	RMPP_BAD_LENGTH,
	RMPP_BAD_SEGMENT,
	RMPP_BAD_TYPE,
	RMPP_WINDOW_SMALL,
	RMPP_SEGMENT_BIG,
	RMPP_BAD_STATUS,
	RMPP_BAD_VERSION,
	RMPP_RETRIES,
	RMPP_UNSPECIFIED,
};

struct rmpp_message {
	const uint8_t *bytes; /* headers once, then the data */
	uint32_t length;
	uint32_t segments;
	uint16_t data_at;
};

struct rmpp_send {
	struct rmpp_message message;
	uint32_t next, acked, window; /* next to send, last acknowledged, last allowed */
	bool response_due;	      /* the last acknowledgement is followed by an answer */
};

/* False: it is shorter than its class's headers. */
bool rmpp_send_init(struct rmpp_send *s, const uint8_t *message, uint32_t length) must_check;
/* Returns how many segments may go now. */
uint32_t rmpp_send_allowed(const struct rmpp_send *s);
/* Makes the next segment; false: wait for an acknowledgement. */
bool rmpp_send_next(struct rmpp_send *s, uint8_t out[MAD_BYTES]) must_check;
/* An acknowledgement took too long: begins again after the last acknowledged segment. */
void rmpp_send_rewind(struct rmpp_send *s);

/* Returns why nobody would send this as an ACK, STOP or ABORT; 0: it is a good one. */
uint8_t rmpp_control_check(const uint8_t *in);

enum rmpp_outcome { RMPP_GO_ON, RMPP_DONE, RMPP_ENDED /* *status says why; abort has been made */ };

/* Takes an ACK, STOP or ABORT.  *reply: out holds an ABORT, or the ACK that turns the direction. */
enum rmpp_outcome rmpp_send_control(struct rmpp_send *s, const uint8_t *in, uint8_t out[MAD_BYTES],
				    bool *reply, uint8_t *status);

/* A message under way. */
struct rmpp_part {
	uint8_t *message;
	size_t room;			 /* bytes of message */
	uint32_t segment, acked, window; /* contiguous up to; last acknowledged; last allowed */
	uint64_t ahead;			 /* bit n: segment + 2 + n has come */
	uint32_t last;			 /* number of the last segment; 0: it has not come */
	uint32_t last_payload;
	uint32_t length; /* set once the message is complete */
	bool complete;
};

/*
 * Takes a DATA segment.  As rmpp_send_control; reply: ACK or ABORT.  RMPP_DONE sets message,
 * length.
 */
enum rmpp_outcome rmpp_part_data(struct rmpp_part *r, const uint8_t *in, uint8_t out[MAD_BYTES],
				 bool *reply, uint8_t *status);
void rmpp_part_free(struct rmpp_part *r);
/* Makes an ABORT or STOP that answers 'in'. */
void rmpp_abort(const uint8_t *in, uint8_t status, uint8_t out[MAD_BYTES]);
