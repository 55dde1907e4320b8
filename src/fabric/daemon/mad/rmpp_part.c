// SPDX-License-Identifier: BSD-2-Clause
/* The receiving machine of RMPP: segments become a message; see rmpp.h. */
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/mad/rmpp.h"

#define SEGMENT_PAYLOAD (MAD_BYTES - MAD_RMPP_BYTES)
#define FIRST_ROOM	4096u

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
