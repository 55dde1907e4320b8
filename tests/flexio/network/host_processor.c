// SPDX-License-Identifier: BSD-2-Clause
/*
 * Programs of the shape of the SDK's packet processor and of the reflector of DOCA, with rules for what their
 * send queue sends: they run until SIGINT.  And one that sees that all frames come back.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

#define MANY 10000u

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

/* Of frames by one of their addresses. */
static void address_fields(struct fields *mask, struct fields *value, unsigned field)
{
	*mask = *value = (struct fields){.bytes = sizeof(mask->at)};
	memset(mask->at + field, 0xff, 6);
	memcpy(value->at + field, PEER_MAC, 6);
}

/* The rules of the switch: what is for the peer goes to the wire. */
static void uplink_up(struct tables *t, struct bench *b)
{
	struct fields mask, value;

	address_fields(&mask, &value, FIELD_TO);
	tables_up(t, b->ctx, MLX5DV_DR_DOMAIN_TYPE_FDB, &mask, &mask, &value);
	tables_rule(t, &value, mlx5dv_dr_action_create_dest_vport(t->domain, UPLINK));
}

/* Works until SIGINT, and says how many frames there were. */
static void processor_run(struct bench *b)
{
	signal(SIGINT, on_interrupt);
	OK(flexio_event_handler_run(b->eh, b->n));
	puts("up");
	fflush(stdout);
	while (!interrupted)
		usleep(1000);
	CHECK(!network_get(b, errors));
	printf("%u\n", (unsigned)network_get(b, frames));
}

/* A rule of the root for what comes; one of the switch and one behind it for what goes. */
static void processor_switch(void)
{
	struct tables to_wire;
	struct bench b;

	bench_up(&b);
	reflector_make(&b);
	uplink_up(&to_wire, &b);
	processor_run(&b);
	tables_down(&to_wire);
	bench_down(&b);
}

/* Tables of level 1 in each direction, and in the switch. */
static void processor_tables(void)
{
	struct tables come, go, to_wire;
	struct fields mask, value;
	struct bench b;

	bench_up(&b);
	reflector_make(&b);
	rule_down(&b.rule);
	address_fields(&mask, &value, FIELD_FROM);
	tables_up(&come, b.ctx, MLX5DV_DR_DOMAIN_TYPE_NIC_RX, &mask, NULL, NULL);
	tables_rule(&come, &value,
		    mlx5dv_dr_action_create_dest_devx_tir(flexio_rq_get_tir(b.in.rq)));
	address_fields(&mask, &value, FIELD_TO);
	tables_up(&go, b.ctx, MLX5DV_DR_DOMAIN_TYPE_NIC_TX, &mask, NULL, NULL);
	tables_rule(&go, &value, mlx5dv_dr_action_create_default_miss());
	uplink_up(&to_wire, &b);
	processor_run(&b);
	tables_down(&to_wire);
	tables_down(&go);
	tables_down(&come);
	bench_down(&b);
}

/* As the reflector, which takes its tables away in an order in which part of them stays. */
static void processor_left(void)
{
	struct tables to_wire;
	struct bench b;

	bench_up(&b);
	reflector_make(&b);
	uplink_up(&to_wire, &b);
	processor_run(&b);
	tables_abandon(&to_wire);
	rule_down(&b.rule);
	ring_down(&b, &b.out);
	ring_down(&b, &b.in);
	OK(flexio_event_handler_destroy(b.eh));
	OK(flexio_process_destroy(b.p));
	(void)ibv_close_device(b.ctx);
}

/* Each comes back as it has to, in its order. */
static void all_come_back(void)
{
	struct raw_flow f = {
		.window = RAW_WINDOW, .bytes = {64, 1500, 65, 512}, .count = MANY, .whole = true};
	struct raw_peer *peer = raw_peer_make();

	while (f.back < MANY)
		raw_peer_flow(peer, &f);
	CHECK(!f.under_way);
	raw_peer_free(peer);
}

const struct host_case processor_cases[] = {
	{"processor_switch", processor_switch},
	{"processor_tables", processor_tables},
	{"processor_left", processor_left},
	{"all_come_back", all_come_back},
	{NULL, NULL},
};
