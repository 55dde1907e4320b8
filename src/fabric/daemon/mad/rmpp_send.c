// SPDX-License-Identifier: BSD-2-Clause
/* The sending machine of RMPP: segments, and what an acknowledgement lets go; see rmpp.h. */
#include <string.h>

#include "fabric/daemon/mad/rmpp.h"

/* Of each segment, behind the RMPP header: so PayloadLength counts, with the class's own header. */
#define SEGMENT_PAYLOAD (MAD_BYTES - MAD_RMPP_BYTES)
#define ABORT_FIRST	RMPP_TOTAL_TIME
#define ABORT_LAST	RMPP_UNSPECIFIED

static uint32_t segment_bytes(const struct rmpp_send *s)
{
	return MAD_BYTES - s->data_at;
}

bool rmpp_send_init(struct rmpp_send *s, const uint8_t *message, uint32_t length)
{
	*s = (struct rmpp_send){.message = message,
				.length = length,
				.next = 1,
				.window = 1,
				.data_at = (uint16_t)mad_data_at(message[MAD_AT_CLASS])};
	if (length < s->data_at)
		return false;
	s->segments = div_round_up(length - s->data_at, segment_bytes(s));
	if (!s->segments)
		s->segments = 1;
	return true;
}

/* What the header says: the first segment of the whole, the last of itself. */
static uint32_t payload_length(const struct rmpp_send *s, uint32_t segment)
{
	uint32_t pad = s->segments * segment_bytes(s) - (s->length - s->data_at);

	if (segment == 1)
		return s->segments * SEGMENT_PAYLOAD - pad;
	return segment == s->segments ? SEGMENT_PAYLOAD - pad : 0;
}

bool rmpp_send_next(struct rmpp_send *s, uint8_t out[MAD_BYTES])
{
	uint32_t segment = s->next, bytes = segment_bytes(s), at, left;

	if (segment > s->window || segment > s->segments)
		return false;
	at = s->data_at + (segment - 1) * bytes;
	left = s->length - at;
	memset(out, 0, MAD_BYTES);
	memcpy(out, s->message, s->data_at);
	memcpy(out + s->data_at, s->message + at, left < bytes ? left : bytes);
	out[MAD_AT_RMPP_VERSION] = 1;
	out[MAD_AT_RMPP_TYPE] = MAD_RMPP_DATA;
	out[MAD_AT_RMPP_FLAGS] = MAD_RMPP_ACTIVE;
	if (segment == 1)
		out[MAD_AT_RMPP_FLAGS] |= MAD_RMPP_FIRST;
	if (segment == s->segments)
		out[MAD_AT_RMPP_FLAGS] |= MAD_RMPP_LAST;
	out[MAD_AT_RMPP_STATUS] = 0;
	mad_put32(out, MAD_AT_RMPP_SEGMENT, segment);
	mad_put32(out, MAD_AT_RMPP_PAYLOAD, payload_length(s, segment));
	s->next++;
	return true;
}

void rmpp_send_rewind(struct rmpp_send *s)
{
	s->next = s->acked + 1;
}

/* The headers of what has come, the other way round. */
static void rmpp_turn(const uint8_t *in, enum mad_rmpp_type type, uint8_t out[MAD_BYTES])
{
	memset(out, 0, MAD_BYTES);
	memcpy(out, in, mad_data_at(in[MAD_AT_CLASS]));
	out[MAD_AT_METHOD] ^= MAD_RESPONSE;
	out[MAD_AT_RMPP_VERSION] = 1;
	out[MAD_AT_RMPP_TYPE] = (uint8_t)type;
	out[MAD_AT_RMPP_FLAGS] = MAD_RMPP_ACTIVE;
	out[MAD_AT_RMPP_STATUS] = 0;
	mad_put32(out, MAD_AT_RMPP_SEGMENT, 0);
	mad_put32(out, MAD_AT_RMPP_PAYLOAD, 0);
}

void rmpp_abort(const uint8_t *in, uint8_t status, uint8_t out[MAD_BYTES])
{
	rmpp_turn(in, status == RMPP_RESOURCES ? MAD_RMPP_STOP : MAD_RMPP_ABORT, out);
	out[MAD_AT_RMPP_STATUS] = status;
}

void rmpp_acknowledge(const uint8_t *in, uint32_t segment, uint32_t window, uint8_t out[MAD_BYTES])
{
	rmpp_turn(in, MAD_RMPP_ACK, out);
	mad_put32(out, MAD_AT_RMPP_SEGMENT, segment);
	mad_put32(out, MAD_AT_RMPP_PAYLOAD, window);
}

static enum rmpp_outcome send_refuse(const uint8_t *in, uint8_t why, uint8_t out[MAD_BYTES],
				     bool *reply, uint8_t *status)
{
	rmpp_abort(in, why, out);
	*reply = true;
	*status = why;
	return RMPP_ENDED;
}

/* All has arrived.  If an answer is awaited, its sender hears that he may begin. */
static enum rmpp_outcome send_complete(const struct rmpp_send *s, const uint8_t *in,
				       uint8_t out[MAD_BYTES], bool *reply)
{
	if (!s->response_due)
		return RMPP_DONE;
	rmpp_acknowledge(in, 0, 1, out);
	*reply = true;
	return RMPP_GO_ON;
}

static enum rmpp_outcome send_acked(struct rmpp_send *s, const uint8_t *in, uint8_t out[MAD_BYTES],
				    bool *reply, uint8_t *status)
{
	uint32_t segment = mad_get32(in, MAD_AT_RMPP_SEGMENT);
	uint32_t window = mad_get32(in, MAD_AT_RMPP_PAYLOAD);

	if (in[MAD_AT_RMPP_STATUS])
		return send_refuse(in, RMPP_BAD_STATUS, out, reply, status);
	if (window < segment)
		return send_refuse(in, RMPP_WINDOW_SMALL, out, reply, status);
	/* The last one again: what it was answered with was lost. */
	if (s->acked == s->segments)
		return segment == s->segments ? send_complete(s, in, out, reply) : RMPP_GO_ON;
	if (segment > s->segments || segment > s->window)
		return send_refuse(in, RMPP_SEGMENT_BIG, out, reply, status);
	if (window < s->window || segment < s->acked)
		return RMPP_GO_ON; /* an old one */
	s->acked = segment;
	s->window = window;
	if (s->next <= segment)
		s->next = segment + 1;
	return s->acked == s->segments ? send_complete(s, in, out, reply) : RMPP_GO_ON;
}

enum rmpp_outcome rmpp_send_control(struct rmpp_send *s, const uint8_t *in, uint8_t out[MAD_BYTES],
				    bool *reply, uint8_t *status)
{
	uint8_t why = in[MAD_AT_RMPP_STATUS];

	*reply = false;
	if (in[MAD_AT_RMPP_VERSION] != 1)
		return send_refuse(in, RMPP_BAD_VERSION, out, reply, status);
	switch (in[MAD_AT_RMPP_TYPE]) {
	case MAD_RMPP_ACK:
		return send_acked(s, in, out, reply, status);
	case MAD_RMPP_STOP:
		if (why != RMPP_RESOURCES)
			return send_refuse(in, RMPP_BAD_STATUS, out, reply, status);
		break;
	case MAD_RMPP_ABORT:
		if (why < ABORT_FIRST || why > ABORT_LAST)
			return send_refuse(in, RMPP_BAD_STATUS, out, reply, status);
		break;
	default:
		return send_refuse(in, RMPP_BAD_TYPE, out, reply, status);
	}
	*status = why;
	return RMPP_ENDED;
}
