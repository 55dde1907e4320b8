// SPDX-License-Identifier: BSD-2-Clause
/* RMPP's two machines alone: over a channel that loses, doubles and swaps; and each refusal. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fabric/daemon/mad/rmpp.h"

#define QUEUE 4096u

struct packet {
	uint8_t mad[MAD_BYTES];
	bool control;
};

static struct packet queue[QUEUE];
static uint32_t queued;

struct channel {
	uint32_t loss, doubling, order; /* in percent */
};

static bool chance(uint32_t percent)
{
	return (uint32_t)rand() % 100 < percent;
}

static void channel_put(const struct channel *c, const uint8_t *mad, bool control)
{
	for (uint32_t n = chance(c->loss) ? 0 : chance(c->doubling) ? 2 : 1; n; n--) {
		CHECK(queued < QUEUE);
		memcpy(queue[queued].mad, mad, MAD_BYTES);
		queue[queued++].control = control;
	}
}

static bool channel_get(const struct channel *c, struct packet *out)
{
	uint32_t at = queued && chance(c->order) ? (uint32_t)rand() % queued : 0;

	if (!queued)
		return false;
	*out = queue[at];
	memmove(&queue[at], &queue[at + 1], (queued - at - 1) * sizeof(queue[0]));
	queued--;
	return true;
}

static uint8_t *message_of(uint8_t class, uint32_t length)
{
	uint8_t *message = malloc(length);

	CHECK(message);
	for (uint32_t i = 0; i < length; i++)
		message[i] = (uint8_t)rand();
	message[MAD_AT_BASE_VERSION] = 1;
	message[MAD_AT_CLASS] = class;
	message[MAD_AT_METHOD] = MAD_GET_TABLE | MAD_RESPONSE;
	return message;
}

struct transfer {
	struct rmpp_send send;
	struct rmpp_part part;
	enum rmpp_outcome sent, got;
	uint32_t turns; /* ACKs that turn the direction */
};

static void step(struct transfer *t, const struct channel *c)
{
	uint8_t out[MAD_BYTES], status = 0;
	struct packet p;
	bool reply;

	while (rmpp_send_next(&t->send, out))
		channel_put(c, out, false);
	if (!channel_get(c, &p)) {
		rmpp_send_rewind(&t->send);
		return;
	}
	if (!p.control) {
		enum rmpp_outcome got = rmpp_part_data(&t->part, p.mad, out, &reply, &status);

		CHECK(got != RMPP_ENDED);
		if (reply)
			channel_put(c, out, true);
		if (got == RMPP_DONE) {
			CHECK(t->got == RMPP_GO_ON);
			t->got = got;
		}
		return;
	}
	CHECK(p.mad[MAD_AT_METHOD] == MAD_GET_TABLE);
	if (t->sent == RMPP_DONE)
		return;
	t->sent = rmpp_send_control(&t->send, p.mad, out, &reply, &status);
	CHECK(t->sent != RMPP_ENDED);
	t->turns += reply;
}

/* The headers of RMPP are the layer's; the rest is the sender's, to the byte. */
static void check_message(const struct transfer *t, const uint8_t *message, uint32_t length)
{
	CHECK(t->part.complete && t->part.length == length);
	CHECK(!memcmp(t->part.message, message, MAD_HEADER_BYTES));
	CHECK(!memcmp(t->part.message + MAD_RMPP_BYTES, message + MAD_RMPP_BYTES,
		      length - MAD_RMPP_BYTES));
}

static void transfer(uint8_t class, uint32_t data, const struct channel *c, bool response_due)
{
	uint32_t length = mad_data_at(class) + data;
	uint8_t *message = message_of(class, length);
	struct transfer t = {0};

	queued = 0;
	CHECK(rmpp_send_init(&t.send, message, length));
	t.send.response_due = response_due;
	while (t.got == RMPP_GO_ON ||
	       (t.sent == RMPP_GO_ON && t.send.acked < t.send.message.segments))
		step(&t, c);
	check_message(&t, message, length);
	CHECK(response_due ? t.turns >= 1 : t.sent == RMPP_DONE);
	rmpp_part_free(&t.part);
	free(message);
}

static void test_lengths(void)
{
	static const uint8_t classes[] = {MAD_CLASS_SA, MAD_CLASS_DEV_MGMT, 0x10, 0x32};
	const struct channel perfect = {0};

	for (uint32_t i = 0; i < array_size(classes); i++)
		for (uint32_t data = 0; data < 700; data++)
			transfer(classes[i], data, &perfect, data & 1);
	transfer(MAD_CLASS_SA, 1 << 20, &perfect, false);
}

static void test_bad_channels(void)
{
	for (uint32_t i = 0; i < 300; i++) {
		const struct channel c = {(uint32_t)rand() % 40, (uint32_t)rand() % 40,
					  (uint32_t)rand() % 60};

		srand(i);
		transfer(i & 1 ? MAD_CLASS_SA : 0x32, (uint32_t)rand() % 40000, &c, i & 2);
	}
}

/* What the packets of a message say (the lengths are the kernel's). */
static void test_headers(void)
{
	uint8_t *message = message_of(MAD_CLASS_SA, 56 + 450), out[MAD_BYTES];
	struct rmpp_send s;

	CHECK(!rmpp_send_init(&s, message, 55));
	CHECK(rmpp_send_init(&s, message, 56 + 450) && s.message.segments == 3);
	CHECK(rmpp_send_next(&s, out));
	CHECK(out[MAD_AT_RMPP_VERSION] == 1 && out[MAD_AT_RMPP_TYPE] == MAD_RMPP_DATA);
	CHECK(out[MAD_AT_RMPP_FLAGS] == (MAD_RMPP_ACTIVE | MAD_RMPP_FIRST));
	CHECK(mad_get32(out, MAD_AT_RMPP_SEGMENT) == 1);
	CHECK(mad_get32(out, MAD_AT_RMPP_PAYLOAD) == 3 * 220 - 150);
	CHECK(!rmpp_send_next(&s, out)); /* one until it is acknowledged */
	s.window = 3;
	CHECK(rmpp_send_next(&s, out) && out[MAD_AT_RMPP_FLAGS] == MAD_RMPP_ACTIVE);
	CHECK(mad_get32(out, MAD_AT_RMPP_PAYLOAD) == 0);
	CHECK(rmpp_send_next(&s, out));
	CHECK(out[MAD_AT_RMPP_FLAGS] == (MAD_RMPP_ACTIVE | MAD_RMPP_LAST));
	CHECK(mad_get32(out, MAD_AT_RMPP_PAYLOAD) == 220 - 150);
	CHECK(!memcmp(&out[36], &message[36], 20) && !memcmp(&out[56], &message[456], 50));
	CHECK(!out[106] && !out[255]);
	/* Without data one segment, which holds the class's header only. */
	CHECK(rmpp_send_init(&s, message, 56) && s.message.segments == 1 &&
	      rmpp_send_next(&s, out));
	CHECK(out[MAD_AT_RMPP_FLAGS] == 7 && mad_get32(out, MAD_AT_RMPP_PAYLOAD) == 20);
	free(message);
}

/* Windows: 1, then 64 ahead of each acknowledgement. */
static void test_windows(void)
{
	uint8_t *message = message_of(MAD_CLASS_SA, 56 + 200 * 200), out[MAD_BYTES], status;
	uint32_t acks[8], nacks = 0;
	struct rmpp_part part = {0};
	struct rmpp_send s;
	bool reply;

	CHECK(rmpp_send_init(&s, message, 56 + 200 * 200));
	s.window = 200;
	while (rmpp_send_next(&s, out)) {
		(void)!rmpp_part_data(&part, out, out, &reply, &status);
		if (!reply)
			continue;
		CHECK(out[MAD_AT_RMPP_TYPE] == MAD_RMPP_ACK && nacks < 8);
		acks[nacks++] = mad_get32(out, MAD_AT_RMPP_SEGMENT);
		CHECK(mad_get32(out, MAD_AT_RMPP_PAYLOAD) ==
		      (part.complete ? 257 : acks[nacks - 1] + 64));
	}
	CHECK(nacks == 5 && acks[0] == 1 && acks[1] == 65 && acks[2] == 129 && acks[3] == 193 &&
	      acks[4] == 200);
	rmpp_part_free(&part);
	free(message);
}

/* ---- refusals ---- */

static void data_packet(uint8_t out[MAD_BYTES], uint32_t segment, uint8_t flags, uint8_t status)
{
	memset(out, 0, MAD_BYTES);
	out[MAD_AT_CLASS] = MAD_CLASS_SA;
	out[MAD_AT_METHOD] = MAD_GET_TABLE | MAD_RESPONSE;
	out[MAD_AT_RMPP_VERSION] = 1;
	out[MAD_AT_RMPP_TYPE] = MAD_RMPP_DATA;
	out[MAD_AT_RMPP_FLAGS] = flags | MAD_RMPP_ACTIVE;
	out[MAD_AT_RMPP_STATUS] = status;
	mad_put32(out, MAD_AT_RMPP_SEGMENT, segment);
}

static void expect_abort(const uint8_t *out, uint8_t status)
{
	CHECK(out[MAD_AT_RMPP_TYPE] == (status == RMPP_RESOURCES ? MAD_RMPP_STOP : MAD_RMPP_ABORT));
	CHECK(out[MAD_AT_RMPP_STATUS] == status && out[MAD_AT_METHOD] == MAD_GET_TABLE);
	CHECK(out[MAD_AT_RMPP_FLAGS] == MAD_RMPP_ACTIVE && out[MAD_AT_RMPP_VERSION] == 1);
}

static void refuse_data(uint32_t segment, uint8_t flags, uint8_t status, uint8_t why)
{
	uint8_t in[MAD_BYTES], out[MAD_BYTES], found = 0;
	struct rmpp_part part = {0};
	bool reply;

	data_packet(in, segment, flags, status);
	CHECK(rmpp_part_data(&part, in, out, &reply, &found) == RMPP_ENDED);
	CHECK(reply && found == why);
	expect_abort(out, why);
	rmpp_part_free(&part);
}

static void test_data_refusals(void)
{
	uint8_t in[MAD_BYTES], out[MAD_BYTES], status;
	struct rmpp_part part = {0};
	bool reply;

	refuse_data(1, 0, 0, RMPP_BAD_SEGMENT);
	refuse_data(2, MAD_RMPP_FIRST, 0, RMPP_BAD_SEGMENT);
	refuse_data(1, MAD_RMPP_FIRST, 1, RMPP_BAD_STATUS);
	/* The middle of what has not begun, and what is beyond the window: nothing. */
	data_packet(in, 2, 0, 0);
	CHECK(rmpp_part_data(&part, in, out, &reply, &status) == RMPP_GO_ON && !reply);
	data_packet(in, 1, MAD_RMPP_FIRST, 0);
	CHECK(rmpp_part_data(&part, in, out, &reply, &status) == RMPP_GO_ON && reply);
	data_packet(in, 66, 0, 0);
	CHECK(rmpp_part_data(&part, in, out, &reply, &status) == RMPP_GO_ON && !reply);
	data_packet(in, 65, 0, 0);
	CHECK(rmpp_part_data(&part, in, out, &reply, &status) == RMPP_GO_ON && !reply);
	CHECK(part.segment == 1 && part.ahead == 1ull << 62);
	/* Seen already: acknowledged again. */
	data_packet(in, 1, MAD_RMPP_FIRST, 0);
	CHECK(rmpp_part_data(&part, in, out, &reply, &status) == RMPP_GO_ON && reply);
	CHECK(mad_get32(out, MAD_AT_RMPP_SEGMENT) == 1);
	rmpp_part_free(&part);

	/* More than we put together. */
	part = (struct rmpp_part){.segment = 335544, .acked = 335544, .window = 335600};
	data_packet(in, 335545, 0, 0);
	CHECK(rmpp_part_data(&part, in, out, &reply, &status) == RMPP_ENDED);
	CHECK(status == RMPP_RESOURCES);
	expect_abort(out, RMPP_RESOURCES);
	rmpp_part_free(&part);
}

struct control {
	uint8_t version, type, status;
	uint32_t segment, window;
	enum rmpp_outcome outcome;
	uint8_t why; /* 0: GO_ON */
	bool abort;
};

/* To a send of 3 segments with the first acknowledged and a window of 2. */
static const struct control controls[] = {
	{1, MAD_RMPP_ACK, 0, 2, 65, RMPP_GO_ON, 0, false},
	{1, MAD_RMPP_ACK, 0, 0, 65, RMPP_GO_ON, 0, false},
	{1, MAD_RMPP_ACK, 0, 1, 1, RMPP_GO_ON, 0, false},
	{2, MAD_RMPP_ACK, 0, 2, 65, RMPP_ENDED, RMPP_BAD_VERSION, true},
	{1, 0, 0, 2, 65, RMPP_ENDED, RMPP_BAD_TYPE, true},
	{1, 5, 0, 2, 65, RMPP_ENDED, RMPP_BAD_TYPE, true},
	{1, MAD_RMPP_ACK, 1, 2, 65, RMPP_ENDED, RMPP_BAD_STATUS, true},
	{1, MAD_RMPP_ACK, 0, 2, 1, RMPP_ENDED, RMPP_WINDOW_SMALL, true},
	{1, MAD_RMPP_ACK, 0, 3, 65, RMPP_ENDED, RMPP_SEGMENT_BIG, true},
	{1, MAD_RMPP_ACK, 0, 4, 65, RMPP_ENDED, RMPP_SEGMENT_BIG, true},
	{1, MAD_RMPP_STOP, 1, 0, 0, RMPP_ENDED, RMPP_RESOURCES, false},
	{1, MAD_RMPP_STOP, 118, 0, 0, RMPP_ENDED, RMPP_BAD_STATUS, true},
	{1, MAD_RMPP_ABORT, 118, 0, 0, RMPP_ENDED, RMPP_TOTAL_TIME, false},
	{1, MAD_RMPP_ABORT, 127, 0, 0, RMPP_ENDED, RMPP_UNSPECIFIED, false},
	{1, MAD_RMPP_ABORT, 117, 0, 0, RMPP_ENDED, RMPP_BAD_STATUS, true},
	{1, MAD_RMPP_ABORT, 128, 0, 0, RMPP_ENDED, RMPP_BAD_STATUS, true},
};

static void test_controls(void)
{
	uint8_t *message = message_of(MAD_CLASS_SA, 56 + 450);

	for (uint32_t i = 0; i < array_size(controls); i++) {
		const struct control *c = &controls[i];
		uint8_t in[MAD_BYTES], out[MAD_BYTES], status = 0;
		struct rmpp_send s;
		bool reply;

		CHECK(rmpp_send_init(&s, message, 56 + 450));
		s.acked = 1;
		s.window = 2;
		s.next = 3;
		data_packet(in, c->segment, 0, c->status);
		in[MAD_AT_RMPP_VERSION] = c->version;
		in[MAD_AT_RMPP_TYPE] = c->type;
		mad_put32(in, MAD_AT_RMPP_PAYLOAD, c->window);
		CHECK_SAY(rmpp_send_control(&s, in, out, &reply, &status) == c->outcome,
			  "control %u", i);
		CHECK_SAY(reply == c->abort && status == c->why, "control %u", i);
		if (c->abort)
			expect_abort(out, c->why);
	}
	free(message);
}

/* The last acknowledgement again: so is the packet that turns the direction. */
static void test_turn(void)
{
	uint8_t *message = message_of(MAD_CLASS_SA, 100), in[MAD_BYTES], out[MAD_BYTES], status;
	struct rmpp_send s;
	bool reply;

	CHECK(rmpp_send_init(&s, message, 100) && rmpp_send_next(&s, out));
	s.response_due = true;
	data_packet(in, 1, 0, 0);
	in[MAD_AT_RMPP_TYPE] = MAD_RMPP_ACK;
	mad_put32(in, MAD_AT_RMPP_PAYLOAD, 1);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK(rmpp_send_control(&s, in, out, &reply, &status) == RMPP_GO_ON && reply);
		CHECK(out[MAD_AT_RMPP_TYPE] == MAD_RMPP_ACK);
		CHECK(!mad_get32(out, MAD_AT_RMPP_SEGMENT));
		CHECK(mad_get32(out, MAD_AT_RMPP_PAYLOAD) == 1);
	}
	free(message);
}

int main(void)
{
	srand(1);
	test_lengths();
	test_bad_channels();
	test_headers();
	test_windows();
	test_data_refusals();
	test_controls();
	test_turn();
	return 0;
}
