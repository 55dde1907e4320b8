// SPDX-License-Identifier: BSD-2-Clause
/*
 * RMPP's two machines against a peer that says anything, and against each other over a channel that
 * the input disturbs: a message that is complete is the one that was sent.
 */
#include <string.h>

#include "fabric/daemon/mad/rmpp.h"
#include "fuzz.h"

#define MOST_QUEUED 256u
#define MOST_STEPS  4096u

struct queued {
	uint8_t mad[MAD_BYTES];
	bool control;
};

static struct queued queue[MOST_QUEUED];
static uint32_t nqueued;

void target_init(void)
{
}

static void queue_put(const uint8_t *mad, bool control)
{
	if (nqueued == MOST_QUEUED)
		return;
	memcpy(queue[nqueued].mad, mad, MAD_BYTES);
	queue[nqueued++].control = control;
}

static uint8_t *message_new(struct input *in, uint32_t *length)
{
	static const uint8_t classes[] = {MAD_CLASS_SA, MAD_CLASS_DEV_MGMT, 0x10, 0x32};
	uint8_t class = classes[in_u8(in) % sizeof(classes)], *message;

	*length = mad_data_at(class) + in_u16(in);
	message = malloc(*length);
	MUST(message);
	for (uint32_t i = 0; i < *length; i++)
		message[i] = (uint8_t)(i * 7 + i / 251);
	message[MAD_AT_CLASS] = class;
	return message;
}

static void check_message(const struct rmpp_part *part, const uint8_t *message, uint32_t length)
{
	MUST(part->length == length);
	MUST(!memcmp(part->message + MAD_RMPP_BYTES, message + MAD_RMPP_BYTES,
		     length - MAD_RMPP_BYTES));
}

/* Both machines; the input decides what is lost, doubled or late. */
static void fuzz_pair(struct input *in)
{
	struct rmpp_part part = {0};
	uint8_t out[MAD_BYTES], status;
	struct rmpp_send send;
	uint8_t *message;
	uint32_t length;
	bool reply;

	message = message_new(in, &length);
	nqueued = 0;
	MUST(rmpp_send_init(&send, message, length));
	send.response_due = in_u8(in) & 1;
	for (uint32_t n = 0; n < MOST_STEPS && !part.complete; n++) {
		uint8_t how = in_u8(in);
		uint32_t at = nqueued && how & 0x40 ? in_u8(in) % nqueued : 0;
		struct queued p;

		while (rmpp_send_next(&send, out))
			queue_put(out, false);
		if (!nqueued) {
			rmpp_send_rewind(&send);
			continue;
		}
		p = queue[at];
		memmove(&queue[at], &queue[at + 1], (--nqueued - at) * sizeof(p));
		if (how & 0x20)
			queue_put(p.mad, p.control);
		if ((how & 0x1f) == 0x1f)
			continue;
		if (p.control)
			MUST(rmpp_send_control(&send, p.mad, out, &reply, &status) != RMPP_ENDED);
		else
			MUST(rmpp_part_data(&part, p.mad, out, &reply, &status) != RMPP_ENDED);
		if (reply)
			queue_put(out, !p.control);
	}
	if (part.complete)
		check_message(&part, message, length);
	rmpp_part_free(&part);
	free(message);
}

static void read_packet(struct input *in, uint8_t mad[MAD_BYTES])
{
	memset(mad, 0x5a, MAD_BYTES);
	mad[MAD_AT_CLASS] = MAD_CLASS_SA;
	mad[MAD_AT_RMPP_VERSION] = in_u8(in) == 0xff ? 2 : 1;
	mad[MAD_AT_RMPP_TYPE] = in_u8(in) % 6;
	mad[MAD_AT_RMPP_FLAGS] = in_u8(in);
	mad[MAD_AT_RMPP_STATUS] = in_u8(in) & 0x80 ? in_u8(in) : 0;
	mad_put32(mad, MAD_AT_RMPP_SEGMENT, in_u8(in) == 0xff ? in_u32(in) : in_u8(in));
	mad_put32(mad, MAD_AT_RMPP_PAYLOAD, in_u8(in) == 0xff ? in_u32(in) : in_u8(in));
}

/* Each machine alone. */
static void fuzz_alone(struct input *in)
{
	struct rmpp_part part = {0};
	uint8_t mad[MAD_BYTES], out[MAD_BYTES], status;
	enum rmpp_outcome sent = RMPP_GO_ON, got = RMPP_GO_ON;
	struct rmpp_send send;
	uint8_t *message;
	uint32_t length;
	bool reply;

	message = message_new(in, &length);
	MUST(rmpp_send_init(&send, message, length));
	while (in->left) {
		uint8_t how = in_u8(in);

		read_packet(in, mad);
		if (how & 1 && sent == RMPP_GO_ON)
			sent = rmpp_send_control(&send, mad, out, &reply, &status);
		if (how & 2 && rmpp_send_next(&send, out))
			MUST(mad_get32(out, MAD_AT_RMPP_SEGMENT) <= send.message.segments);
		if (how & 4)
			rmpp_send_rewind(&send);
		if (how & 8 && got != RMPP_ENDED)
			got = rmpp_part_data(&part, mad, out, &reply, &status);
		MUST(send.acked <= send.message.segments && send.next <= send.message.segments + 1);
		MUST(!part.complete || part.length <= part.room);
	}
	rmpp_part_free(&part);
	free(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	if (in_u8(&in) & 1)
		fuzz_pair(&in);
	else
		fuzz_alone(&in);
	return 0;
}

void target_seeds(struct seed *s)
{
	put_u8(s, 1);
	put_u8(s, 0);
	put_u16(s, 30000);
	put_end(s, "pair");

	put_u8(s, 1);
	put_u8(s, 3);
	put_u16(s, 2000);
	for (uint32_t i = 0; i < 200; i++)
		put_u8(s, i * 37);
	put_end(s, "disturbed");

	put_u8(s, 0);
	put_u8(s, 0);
	put_u16(s, 1000);
	for (uint32_t i = 1; i < 8; i++) {
		put_u8(s, 1 | 2 | 8);
		put_u8(s, 0);
		put_u8(s, i % 2 ? MAD_RMPP_DATA : MAD_RMPP_ACK);
		put_u8(s, i == 1 ? 3 : 1);
		put_u8(s, 0);
		put_u8(s, 0);
		put_u8(s, i);
		put_u8(s, 0);
		put_u8(s, 64);
	}
	put_end(s, "alone");
}
