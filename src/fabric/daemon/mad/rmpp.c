// SPDX-License-Identifier: BSD-2-Clause
/* RMPP's two machines; see rmpp.h. */
#include "fabric/daemon/mad/rmpp.h"

#include <stdlib.h>
#include <string.h>

/* ---- the sending machine of RMPP: segments, and what an acknowledgement permits ---- */

/* Bytes of a segment behind the RMPP header, as PayloadLength counts: with the class's header. */
#define SEGMENT_PAYLOAD (MAD_BYTES - MAD_RMPP_BYTES)
#define ABORT_FIRST	RMPP_TOTAL_TIME
#define ABORT_LAST	RMPP_UNSPECIFIED

static uint32_t segment_bytes(const struct rmpp_message *m)
{
	return MAD_BYTES - m->data_at;
}

/* False: it is shorter than its class's headers. */
static must_check bool rmpp_message_init(struct rmpp_message *m, const uint8_t *bytes,
					 uint32_t length)
{
	*m = (struct rmpp_message){.bytes = bytes,
				   .length = length,
				   .data_at = (uint16_t)mad_data_at(bytes[MAD_AT_CLASS])};
	if (length < m->data_at)
		return false;
	m->segments = div_round_up(length - m->data_at, segment_bytes(m));
	if (!m->segments)
		m->segments = 1;
	return true;
}

/* Returns what the header says: the first segment the length of the whole, the last its own. */
static uint32_t payload_length(const struct rmpp_message *m, uint32_t segment)
{
	uint32_t pad = m->segments * segment_bytes(m) - (m->length - m->data_at);

	if (segment == 1)
		return m->segments * SEGMENT_PAYLOAD - pad;
	return segment == m->segments ? SEGMENT_PAYLOAD - pad : 0;
}

static void rmpp_segment_data(const struct rmpp_message *m, uint32_t segment, uint8_t *out)
{
	uint32_t bytes = segment_bytes(m), at = m->data_at + (segment - 1) * bytes;
	uint32_t there = min_u32(m->length - at, bytes);

	memcpy(out, m->bytes + at, there);
	memset(out + there, 0, bytes - there);
}

/* Fills the headers of the n-th segment, counted from 1; those of the MAD are in 'out' already. */
static void rmpp_segment_headers(const struct rmpp_message *m, uint32_t segment, uint8_t *out)
{
	out[MAD_AT_RMPP_VERSION] = 1;
	out[MAD_AT_RMPP_TYPE] = MAD_RMPP_DATA;
	out[MAD_AT_RMPP_FLAGS] = MAD_RMPP_ACTIVE;
	if (segment == 1)
		out[MAD_AT_RMPP_FLAGS] |= MAD_RMPP_FIRST;
	if (segment == m->segments)
		out[MAD_AT_RMPP_FLAGS] |= MAD_RMPP_LAST;
	out[MAD_AT_RMPP_STATUS] = 0;
	mad_put32(out, MAD_AT_RMPP_SEGMENT, segment);
	mad_put32(out, MAD_AT_RMPP_PAYLOAD, payload_length(m, segment));
}

bool rmpp_send_init(struct rmpp_send *s, const uint8_t *message, uint32_t length)
{
	*s = (struct rmpp_send){.next = 1, .window = 1};
	return rmpp_message_init(&s->message, message, length);
}

uint32_t rmpp_send_allowed(const struct rmpp_send *s)
{
	uint32_t last = min_u32(s->window, s->message.segments);

	return s->next > last ? 0 : last - s->next + 1;
}

bool rmpp_send_next(struct rmpp_send *s, uint8_t out[MAD_BYTES])
{
	if (!rmpp_send_allowed(s))
		return false;
	memcpy(out, s->message.bytes, s->message.data_at);
	rmpp_segment_headers(&s->message, s->next, out);
	rmpp_segment_data(&s->message, s->next, out + s->message.data_at);
	s->next++;
	return true;
}

void rmpp_send_rewind(struct rmpp_send *s)
{
	s->next = s->acked + 1;
}

/* Makes the headers of a packet against those that have come. */
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

/* Makes an ACK that answers 'in'. */
static void rmpp_acknowledge(const uint8_t *in, uint32_t segment, uint32_t window,
			     uint8_t out[MAD_BYTES])
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

/* All has arrived.  If the sender waits for an answer, it tells the peer that it may begin. */
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

	/* The last segment goes again, because the answer to it was lost. */
	if (s->acked == s->message.segments)
		return segment == s->message.segments ? send_complete(s, in, out, reply)
						      : RMPP_GO_ON;
	if (segment > s->message.segments || segment > s->window)
		return send_refuse(in, RMPP_SEGMENT_BIG, out, reply, status);
	if (window < s->window || segment < s->acked)
		return RMPP_GO_ON; /* the acknowledgement is an old one */
	s->acked = segment;
	s->window = window;
	if (s->next <= segment)
		s->next = segment + 1;
	return s->acked == s->message.segments ? send_complete(s, in, out, reply) : RMPP_GO_ON;
}

uint8_t rmpp_control_check(const uint8_t *in)
{
	uint8_t why = in[MAD_AT_RMPP_STATUS];

	if (in[MAD_AT_RMPP_VERSION] != 1)
		return RMPP_BAD_VERSION;
	switch (in[MAD_AT_RMPP_TYPE]) {
	case MAD_RMPP_ACK:
		if (why)
			return RMPP_BAD_STATUS;
		return mad_get32(in, MAD_AT_RMPP_PAYLOAD) < mad_get32(in, MAD_AT_RMPP_SEGMENT)
			       ? RMPP_WINDOW_SMALL
			       : 0;
	case MAD_RMPP_STOP:
		return why == RMPP_RESOURCES ? 0 : RMPP_BAD_STATUS;
	case MAD_RMPP_ABORT:
		return why < ABORT_FIRST || why > ABORT_LAST ? RMPP_BAD_STATUS : 0;
	default:
		return RMPP_BAD_TYPE;
	}
}

enum rmpp_outcome rmpp_send_control(struct rmpp_send *s, const uint8_t *in, uint8_t out[MAD_BYTES],
				    bool *reply, uint8_t *status)
{
	uint8_t why = rmpp_control_check(in);

	*reply = false;
	if (why)
		return send_refuse(in, why, out, reply, status);
	if (in[MAD_AT_RMPP_TYPE] == MAD_RMPP_ACK)
		return send_acked(s, in, out, reply, status);
	*status = in[MAD_AT_RMPP_STATUS];
	return RMPP_ENDED;
}

/* ---- the receiving machine of RMPP: segments become a message ---- */

#define FIRST_ROOM 4096u

static enum rmpp_outcome part_refuse(const uint8_t *in, uint8_t why, uint8_t out[MAD_BYTES],
				     bool *reply, uint8_t *status)
{
	rmpp_abort(in, why, out);
	*reply = true;
	*status = why;
	return RMPP_ENDED;
}

/* Makes room for that many segments.  False: no memory, or more than we take. */
static bool part_room(struct rmpp_part *r, uint32_t segments, uint32_t data_at)
{
	uint64_t need = data_at + (uint64_t)segments * (MAD_BYTES - data_at);
	size_t room = r->room ? r->room : FIRST_ROOM;
	uint8_t *message;

	if (need > RMPP_MOST_BYTES)
		return false;
	if (need <= r->room)
		return true;
	while (room < need)
		room *= 2;
	message = realloc(r->message, room);
	if (!message)
		return false;
	r->message = message;
	r->room = room;
	return true;
}

static void part_store(struct rmpp_part *r, const uint8_t *in, uint32_t segment)
{
	uint32_t data_at = mad_data_at(in[MAD_AT_CLASS]), bytes = MAD_BYTES - data_at;

	if (segment == 1)
		memcpy(r->message, in, data_at);
	memcpy(r->message + data_at + (size_t)(segment - 1) * bytes, in + data_at, bytes);
	if (in[MAD_AT_RMPP_FLAGS] & MAD_RMPP_LAST && (!r->last || segment < r->last)) {
		r->last = segment;
		r->last_payload = mad_get32(in, MAD_AT_RMPP_PAYLOAD);
	}
}

/* The contiguous part grows by this segment and by what was there ahead of it. */
static void part_advance(struct rmpp_part *r)
{
	r->segment++;
	while (r->ahead & 1) {
		r->ahead >>= 1;
		r->segment++;
	}
	r->ahead >>= 1;
}

static void part_complete(struct rmpp_part *r, uint32_t data_at)
{
	uint32_t pad = r->last_payload <= SEGMENT_PAYLOAD ? SEGMENT_PAYLOAD - r->last_payload : 0;

	r->segment = r->last;
	r->length = data_at + r->last * (MAD_BYTES - data_at) - pad;
	r->complete = true;
}

static void part_acknowledge(struct rmpp_part *r, const uint8_t *in, uint8_t out[MAD_BYTES],
			     bool *reply)
{
	rmpp_acknowledge(in, r->segment, r->window, out);
	r->acked = r->segment;
	*reply = true;
}

/* Takes a segment that is new, inside the window and not there yet. */
static enum rmpp_outcome part_take(struct rmpp_part *r, const uint8_t *in, uint8_t out[MAD_BYTES],
				   bool *reply, uint8_t *status)
{
	uint32_t segment = mad_get32(in, MAD_AT_RMPP_SEGMENT);
	uint32_t data_at = mad_data_at(in[MAD_AT_CLASS]);

	if (!part_room(r, segment, data_at))
		return part_refuse(in, RMPP_RESOURCES, out, reply, status);
	part_store(r, in, segment);
	if (segment > r->segment + 1) {
		r->ahead |= 1ull << (segment - r->segment - 2) % RMPP_WINDOW;
		return RMPP_GO_ON;
	}
	part_advance(r);
	if (r->last && r->segment >= r->last) {
		part_complete(r, data_at);
		part_acknowledge(r, in, out, reply);
		return RMPP_DONE;
	}
	if (r->segment >= r->window || r->segment == 1) {
		r->window = r->segment + RMPP_WINDOW;
		part_acknowledge(r, in, out, reply);
	}
	return RMPP_GO_ON;
}

enum rmpp_outcome rmpp_part_data(struct rmpp_part *r, const uint8_t *in, uint8_t out[MAD_BYTES],
				 bool *reply, uint8_t *status)
{
	uint32_t segment = mad_get32(in, MAD_AT_RMPP_SEGMENT), ahead;

	*reply = false;
	if (in[MAD_AT_RMPP_STATUS])
		return part_refuse(in, RMPP_BAD_STATUS, out, reply, status);
	if (!(in[MAD_AT_RMPP_FLAGS] & MAD_RMPP_FIRST) == (segment == 1))
		return part_refuse(in, RMPP_BAD_SEGMENT, out, reply, status);
	if (!r->segment) { /* nothing has come yet */
		if (segment != 1)
			return RMPP_GO_ON;
		r->window = 1;
	}
	if (segment > r->window)
		return RMPP_GO_ON;
	if (r->segment && (segment <= r->acked || r->complete)) {
		part_acknowledge(r, in, out, reply);
		return RMPP_GO_ON;
	}
	if (segment <= r->segment)
		return RMPP_GO_ON;
	ahead = segment - r->segment - 1;
	if (ahead && r->ahead >> (ahead - 1) & 1)
		return RMPP_GO_ON;
	return part_take(r, in, out, reply, status);
}

void rmpp_part_free(struct rmpp_part *r)
{
	free(r->message);
	r->message = NULL;
	r->room = 0;
}
