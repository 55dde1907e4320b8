// SPDX-License-Identifier: BSD-2-Clause
/*
 * The switch between the host's port and the uplink: where frames go that device code sends, and those that come
 * from elsewhere.  The last byte of the address that a frame is for says which rule takes it.
 */
#include <stdio.h>
#include <string.h>

#include "host.h"

#define BYTES	   200u
#define OTHERS_MAC "\x02\x42\x7e\x7f\xeb\x03"

/* The rules, by that byte.  A table of level 1 gives what none of its rules takes to the host, which manages the
 * switch (libmlx5's default); what the root leads to no table goes to the other side. */
enum { TO_UPLINK = 0x11, TO_HOST, TO_NOWHERE, TO_NO_RULE, TO_NO_TABLE, TO_END };

/* In an order in which neighbours differ; the last one is to be seen outside. */
static const uint8_t order[] = {TO_HOST, TO_UPLINK, TO_NOWHERE, TO_NO_RULE, TO_NO_TABLE,
				TO_HOST, TO_UPLINK, TO_NOWHERE, TO_NO_RULE, TO_END};
#define FRAMES ((unsigned)sizeof(order))
/* Those that come to device code when they come from the wire. */
#define BACK 5u

static void switch_frame(uint8_t *frame, uint8_t way, const char *from, uint8_t kind)
{
	raw_frame(frame, DPA_MAC, from, BYTES, kind);
	frame[0] ^= (uint8_t)(way == TO_NO_TABLE ? 0x80 : 0);
	frame[5] = way;
}

static void switch_rules(struct tables *t, struct ibv_context *ctx)
{
	struct fields mask = {.bytes = sizeof(mask.at)}, value = mask, root;

	memset(mask.at + FIELD_TO, 0xff, 6);
	memcpy(value.at + FIELD_TO, DPA_MAC, 5);
	root = mask;
	root.at[FIELD_TO + 5] = 0;
	tables_up(t, ctx, MLX5DV_DR_DOMAIN_TYPE_FDB, &mask, &root, &value);
	value.at[FIELD_TO + 5] = TO_UPLINK;
	tables_rule(t, &value, mlx5dv_dr_action_create_dest_vport(t->domain, UPLINK));
	value.at[FIELD_TO + 5] = TO_END;
	tables_rule(t, &value, mlx5dv_dr_action_create_dest_vport(t->domain, UPLINK));
	value.at[FIELD_TO + 5] = TO_HOST;
	tables_rule(t, &value, mlx5dv_dr_action_create_dest_vport(t->domain, 0));
	value.at[FIELD_TO + 5] = TO_NOWHERE;
	tables_rule(t, &value, mlx5dv_dr_action_create_drop());
}

/* What goes to the host's port comes to the receive queue, once, and nothing else of these does: the queue's rule
 * is for their source alone.  What is outside, others see. */
static void switch_sends(void)
{
	struct completion c;
	struct request r;
	struct tables t;
	struct bench b;

	bench_up(&b);
	ring_memory(&b, &b.in, false);
	ring_memory(&b, &b.out, false);
	rq_up(&b, &b.in);
	sq_up(&b, &b.out);
	switch_rules(&t, b.ctx);
	rule_up(&b, &b.rule, flexio_rq_get_tir(b.in.rq));
	r = (struct request){.sqn = b.out.number,
			     .ring = b.out.ring,
			     .ce = 2,
			     .kind = REQUEST_SEND,
			     .data = b.out.data,
			     .bytes = BYTES,
			     .key = flexio_mkey_get_id(b.out.key)};
	for (unsigned i = 0; i < FRAMES; i++) {
		bool host = order[i] == TO_HOST || order[i] == TO_NO_RULE;
		uint8_t frame[BYTES];

		/* A port hears what it sends; only what is for the host is of the address that the rule has. */
		switch_frame(frame, order[i], host ? PEER_MAC : OTHERS_MAC, (uint8_t)i);
		OK(flexio_host2dev_memcpy(b.p, frame, BYTES, b.out.data));
		requests(&b, &r, 1);
		cq_next(&b, &b.out, &c);
		CHECK(c.opcode == 0 && c.counter == i);
		if (host) {
			cq_next(&b, &b.in, &c);
			CHECK(c.opcode == 2 && c.bytes == BYTES);
		}
		CHECK(!cq_look(&b, &b.in, &c));
	}
	rule_down(&b.rule);
	tables_down(&t);
	bench_down(&b);
}

/* Device code sends back what comes to it.  Whoever started us says when all have come. */
static void switch_receives(void)
{
	struct tables t;
	struct bench b;
	uint64_t ret;

	bench_up(&b);
	reflector_make(&b);
	OK(flexio_process_call(b.p, &poke, &ret, b.n + offsetof(struct network, edits),
			       (uint64_t)BYTES));
	OK(flexio_event_handler_run(b.eh, b.n));
	switch_rules(&t, b.ctx);
	puts("up");
	fflush(stdout);
	CHECK(getchar() == EOF);
	CHECK(!network_get(&b, errors));
	printf("%u\n", (unsigned)network_get(&b, frames));
	tables_down(&t);
	bench_down(&b);
}

static void outside_hears(struct raw_peer *peer, uint8_t frame[BYTES])
{
	uint32_t bytes = raw_peer_hear(peer, frame, BYTES);

	CHECK(bytes == BYTES);
	printf("%02x %02x %02x\n", frame[5], frame[20], frame[BYTES - 1]);
}

/* Another host, which hears what comes until the last. */
static void outside_listens(void)
{
	struct raw_peer *peer = raw_peer_of_all();
	uint8_t frame[BYTES];

	puts("up");
	fflush(stdout);
	do
		outside_hears(peer, frame);
	while (frame[5] != TO_END);
	raw_peer_free(peer);
}

/* Another host, which sends such frames, and hears what device code sends back.  It sends none that would go back
 * to the wire from the switch: such rules drop frames from version 50 of libmlx5 on. */
static void outside_sends(void)
{
	struct raw_peer *peer = raw_peer_of_all();
	uint8_t frame[BYTES];

	puts("up");
	fflush(stdout);
	for (unsigned i = 0; i < FRAMES; i++) {
		if (order[i] == TO_UPLINK || order[i] == TO_END)
			continue;
		switch_frame(frame, order[i], PEER_MAC, (uint8_t)i);
		raw_peer_send_frame(peer, frame, BYTES);
	}
	for (unsigned back = 0; back < BACK; back++)
		outside_hears(peer, frame);
	raw_peer_free(peer);
}

const struct host_case switch_cases[] = {
	{"switch_sends", switch_sends},
	{"switch_receives", switch_receives},
	{"outside_listens", outside_listens},
	{"outside_sends", outside_sends},
	{NULL, NULL},
};
