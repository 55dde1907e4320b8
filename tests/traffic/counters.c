// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counters objects through stock libibverbs (ibv_create_counters(3)): a steering rule counts the
 * frames that another context sends.  One row per case: outcome, name, reason.
 */
#include <errno.h>
#include <string.h>

#include "raw_end.h"

#define FRAME  100u
#define FRAMES 5u

static const uint8_t group[6] = {0x01, 0x50, 0x56, 0x19, 0x20, 0xa7};

static void transfer_bytes(struct raw_end *tx, struct raw_end *rx)
{
	raw_end_receive(rx);
	raw_end_send(tx, FRAME);
	NEED(raw_end_arrived(rx, RAW_PATIENCE_MS) == FRAME);
}

static struct ibv_flow *add_rule(struct raw_end *e, struct ibv_counters *counters)
{
	struct ibv_flow_spec_eth eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(eth)};
	struct ibv_flow_spec_counter_action count = {
		.type = IBV_FLOW_SPEC_ACTION_COUNT,
		.size = sizeof(count),
		.counters = counters,
	};
	struct ibv_flow_attr attr = {
		.type = IBV_FLOW_ATTR_NORMAL,
		.size = sizeof(attr) + sizeof(eth) + sizeof(count),
		.num_of_specs = 2,
		.port = 1,
	};
	/* one behind the other, without gaps: ibv_create_flow(3) */
	uint64_t list[32];
	uint8_t *at = (uint8_t *)list;

	memcpy(eth.val.dst_mac, group, sizeof(group));
	memset(eth.mask.dst_mac, 0xff, sizeof(group));
	memcpy(at, &attr, sizeof(attr));
	memcpy(at + sizeof(attr), &eth, sizeof(eth));
	memcpy(at + sizeof(attr) + sizeof(eth), &count, sizeof(count));
	return ibv_create_flow(e->qp, (struct ibv_flow_attr *)(void *)list);
}

int main(int argc, char **argv)
{
	const char *device = argc > 1 ? argv[1] : "mlx5_1";
	struct ibv_counters_init_attr init = {0};
	struct ibv_counter_attach_attr attach[] = {
		{.counter_desc = IBV_COUNTER_PACKETS, .index = 2},
		{.counter_desc = IBV_COUNTER_BYTES, .index = 0},
	};
	static struct raw_end tx, rx;
	struct ibv_counters *counters;
	struct ibv_flow *flow;
	uint64_t v[3] = {77, 77, 77};

	setvbuf(stdout, NULL, _IOLBF, 0);
	raw_end_open(&tx, device);
	raw_end_open(&rx, device);
	memcpy(tx.frame, group, sizeof(group));
	tx.frame[6] = 0x02;
	tx.frame[12] = 0x88;
	tx.frame[13] = 0xb5;
	NEED((counters = ibv_create_counters(rx.ctx, &init)));
	for (unsigned i = 0; i < 2; i++)
		NEED(!ibv_attach_counters_point_flow(counters, &attach[i], NULL));
	raw_row("nothing to read without a rule", ibv_read_counters(counters, v, 3, 0) == EINVAL);
	NEED((flow = add_rule(&rx, counters)));
	for (unsigned i = 0; i < FRAMES; i++)
		transfer_bytes(&tx, &rx);
	raw_row("too few places", ibv_read_counters(counters, v, 2, 0) == EINVAL);
	raw_row("packets and bytes", !ibv_read_counters(counters, v, 3, 0) && v[2] == FRAMES &&
					     v[0] == FRAMES * FRAME && v[1] == 0);
	raw_row("in use", ibv_destroy_counters(counters) == EBUSY);
	NEED(!ibv_destroy_flow(flow));
	/* the second rule counts into the same places and goes on from there */
	NEED((flow = add_rule(&rx, counters)));
	transfer_bytes(&tx, &rx);
	raw_row("a second rule",
		!ibv_read_counters(counters, v, 3, IBV_READ_COUNTERS_ATTR_PREFER_CACHED) &&
			v[2] == FRAMES + 1);
	NEED(!ibv_destroy_flow(flow));
	raw_row("end", !ibv_destroy_counters(counters));
	raw_end_close(&rx);
	raw_end_close(&tx);
	return raw_row_failed;
}
