// SPDX-License-Identifier: BSD-2-Clause
/*
 * Frames of every length go through a channel, both ends in one process, and come as they were sent.  The
 * lengths differ from one to the next, so that each lies over what an earlier one has left in the ring.
 */
#include <string.h>

#include "test_fabric.h"
#include "wire/channel.h"
#include "wire/payload.h"

#define LONGEST 9216u
#define STEP	4099u /* prime to the number of lengths: all come */

static uint8_t block[2 * LONGEST];

/* Each another part of the block. */
static uint8_t *frame_of(uint32_t length)
{
	return block + length * 7 % LONGEST;
}

static void take_frame(void *user, const struct pkt *p)
{
	static uint8_t got[LONGEST + 1];
	uint32_t *length = user;
	struct run to = {got, p->payload_len};

	CHECK(pkt_transport(p) == BTH_RAW && p->payload_len == *length && p->sqpn == *length);
	got[*length] = 0xa5;
	CHECK(payload_pull(&to, 1, p));
	CHECK(!memcmp(got, frame_of(*length), *length) && got[*length] == 0xa5);
	CHECK(!memcmp(p->path->dgid.raw, frame_of(*length), min_u32(6, *length)));
	*length = UINT32_MAX;
}

static uint32_t take_short_sends(void *user, uint32_t dst_port, const struct short_send *b)
{
	(void)user;
	(void)dst_port;
	(void)b;
	CHECK(false);
	return 0;
}

static void send_frame(struct channel *ch, uint32_t length)
{
	struct run run = {frame_of(length), length};
	const struct path path = {.src_port = 1, .dst_port = SUBNET_NONE};
	const struct pkt p = {
		.opcode = BTH_RAW | BTH_SEND_ONLY,
		.dqpn = IB_MULTICAST_QPN,
		.sqpn = length,
		.npkts = 1,
		.path = &path,
		.payload_len = length,
		.nruns = 1,
		.runs = &run,
	};
	enum wire_verdict v;

	CHECK(channel_send(ch, 1, &p, &v) && v == WIRE_SENT);
}

int main(void)
{
	struct test_fabric *fabric = test_fabric_create();
	static struct channel out, in;
	struct rng rng = {5};

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (uint8_t)rng_next(&rng);
	CHECK(!channel_attach(&out, 1, fabric->channel_fd, TEST_FABRIC_CHANNEL_BYTES, 0));
	CHECK(!channel_attach(&in, 0, fabric->channel_fd, TEST_FABRIC_CHANNEL_BYTES, 1));
	for (uint32_t i = 0; i < LONGEST; i++) {
		uint32_t length = 1 + (uint32_t)((uint64_t)i * STEP % LONGEST);
		const struct channel_sink sink = {take_frame, take_short_sends, &length};

		send_frame(&out, length);
		CHECK(channel_drain(&in, NULL, false, &sink) & CHANNEL_DELIVERED);
		CHECK(length == UINT32_MAX);
	}
	channel_detach(&out);
	channel_detach(&in);
	return 0;
}
