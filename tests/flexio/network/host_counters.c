// SPDX-License-Identifier: BSD-2-Clause
/* What ports count of frames that device code sends and takes: of this program the bytes that device code reads,
 * and whoever starts it reads the files of the device tree. */
#include <stdio.h>
#include <string.h>

#include "host.h"

#define GROUP_MAC "\x33\x33\x00\x00\x00\x01"

/* Those to one station, and those to a group. */
static const struct {
	const char *to;
	unsigned count;
	uint32_t bytes;
} sent[] = {{DPA_MAC, 19, 996}, {GROUP_MAC, 8, 60}};

/* How far the counters of the port have moved, as a line: received, sent. */
static void counters_say(struct bench *b, uint64_t before)
{
	uint64_t after = call1(b->p, &port_bytes, 0);

	printf("%u %u\n", (uint32_t)after - (uint32_t)before,
	       (uint32_t)(after >> 32) - (uint32_t)(before >> 32));
}

static void counted_sends(void)
{
	uint8_t frame[SLOT_BYTES];
	struct completion c;
	uint64_t before;
	struct request r;
	struct bench b;

	bench_up(&b);
	ring_memory(&b, &b.out, false);
	sq_up(&b, &b.out);
	before = call1(b.p, &port_bytes, 0);
	r = (struct request){.sqn = b.out.number,
			     .ring = b.out.ring,
			     .ce = 2,
			     .kind = REQUEST_SEND,
			     .data = b.out.data,
			     .key = flexio_mkey_get_id(b.out.key)};
	for (unsigned i = 0; i < sizeof(sent) / sizeof(sent[0]); i++) {
		raw_frame(frame, sent[i].to, PEER_MAC, sent[i].bytes, (uint8_t)i);
		OK(flexio_host2dev_memcpy(b.p, frame, sent[i].bytes, b.out.data));
		r.bytes = sent[i].bytes;
		requests(&b, &r, sent[i].count);
		for (unsigned n = 0; n < sent[i].count; n++) {
			cq_next(&b, &b.out, &c);
			CHECK(c.opcode == 0);
		}
	}
	counters_say(&b, before);
	bench_down(&b);
}

static void counted_takes(void)
{
	struct completion c;
	uint64_t before;
	struct bench b;

	bench_up(&b);
	ring_memory(&b, &b.in, false);
	rq_up(&b, &b.in);
	rule_up(&b, &b.rule, flexio_rq_get_tir(b.in.rq));
	before = call1(b.p, &port_bytes, 0);
	puts("up");
	fflush(stdout);
	for (unsigned i = 0; i < sizeof(sent) / sizeof(sent[0]); i++)
		for (unsigned n = 0; n < sent[i].count; n++) {
			cq_next(&b, &b.in, &c);
			CHECK(c.opcode == 2 && c.bytes == sent[i].bytes);
		}
	CHECK(!cq_look(&b, &b.in, &c));
	counters_say(&b, before);
	bench_down(&b);
}

const struct host_case counter_cases[] = {
	{"counted_sends", counted_sends},
	{"counted_takes", counted_takes},
	{NULL, NULL},
};
