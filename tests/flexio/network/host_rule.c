// SPDX-License-Identifier: BSD-2-Clause
/*
 * Rules of mlx5dv_create_flow that lead to a receive queue of the DPA, by its TIR; what there is no such
 * rule for; and objects of DEVX that the device has not got.
 */
#include <errno.h>
#include <string.h>

#include "host.h"
#include "prm/cmd.h"
#include "prm/hca_cap.h"

#define FRAMES 20u
#define OUTER  1u

/* Of general objects: a function that is plugged in, and one that is a block device. */
#define HOTPLUG_DEVICE	     0x14u
#define VIRTIO_BLK_EMULATION 0x16u

struct param {
	size_t bytes;
	uint8_t fields[64]; /* the outer headers; the source address comes first */
};

static struct mlx5dv_flow_matcher *matcher_of_source(struct ibv_context *ctx)
{
	struct param mask = {.bytes = sizeof(mask.fields),
			     .fields = {255, 255, 255, 255, 255, 255}};
	struct mlx5dv_flow_matcher_attr attr = {
		.type = IBV_FLOW_ATTR_NORMAL,
		.match_criteria_enable = OUTER,
		.match_mask = (struct mlx5dv_flow_match_parameters *)(void *)&mask,
	};
	struct mlx5dv_flow_matcher *m = mlx5dv_create_flow_matcher(ctx, &attr);

	CHECK(m);
	return m;
}

static struct ibv_flow *flow_to(struct mlx5dv_flow_matcher *m, struct mlx5dv_devx_obj *obj)
{
	struct param value = {.bytes = sizeof(value.fields)};
	struct mlx5dv_flow_action_attr action = {.type = MLX5DV_FLOW_ACTION_DEST_DEVX, .obj = obj};

	memcpy(value.fields, PEER_MAC, 6);
	return mlx5dv_create_flow(m, (struct mlx5dv_flow_match_parameters *)(void *)&value, 1,
				  &action);
}

static void own_rule(void)
{
	struct mlx5dv_flow_matcher *m;
	struct raw_peer *peer;
	struct ibv_flow *flow;
	struct bench b;

	bench_up(&b);
	reflector_up(&b);
	rule_down(&b.rule);
	peer = raw_peer_make();
	/* nobody takes it */
	raw_peer_send(peer, 100, 1);
	m = matcher_of_source(b.ctx);
	flow = flow_to(m, flexio_rq_get_tir(b.in.rq));
	CHECK(flow);
	for (unsigned i = 0; i < FRAMES; i++) {
		raw_peer_send(peer, 60 + i, (uint8_t)i);
		raw_peer_expect(peer, 60 + i, (uint8_t)i);
	}
	CHECK(network_get(&b, frames) == FRAMES);
	/* a queue that a rule leads to stays, and a matcher with a rule */
	FAILS(flexio_rq_destroy(b.in.rq));
	CHECK(mlx5dv_destroy_flow_matcher(m));
	CHECK(!ibv_destroy_flow(flow));
	raw_peer_send(peer, 100, 2);
	flow = flow_to(m, flexio_rq_get_tir(b.in.rq));
	CHECK(flow);
	raw_peer_send(peer, 200, 3);
	raw_peer_expect(peer, 200, 3);
	CHECK(network_get(&b, frames) == FRAMES + 1);
	CHECK(!ibv_destroy_flow(flow) && !mlx5dv_destroy_flow_matcher(m));
	raw_peer_free(peer);
	bench_down(&b);
}

/* Where frames cannot go: an object that takes none. */
static void no_destination(void)
{
	struct mlx5dv_flow_matcher *m;
	struct mlx5dv_devx_obj *object;
	uint8_t in[CMD_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0};
	struct ibv_context *ctx = ethernet_open();

	m = matcher_of_source(ctx);
	prm_set(in, CMD_IN_OPCODE, PRM_OP_ALLOC_PD);
	object = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	CHECK(object);
	CHECK(!flow_to(m, object) && errno == EINVAL);
	CHECK(!mlx5dv_devx_obj_destroy(object) && !mlx5dv_destroy_flow_matcher(m));
	CHECK(!ibv_close_device(ctx));
}

/* Of what is not emulated: they are not among the types that the device names, and making one says so. */
static void emulated_objects(void)
{
	static const uint16_t types[] = {HOTPLUG_DEVICE, VIRTIO_BLK_EMULATION};
	uint8_t cap[HCA_CAP_OUT_BYTES] = {0}, ask[CMD_IN_BYTES] = {0};
	const uint8_t *page = cap + HCA_CAP_HEADER;
	struct ibv_context *ctx = ethernet_open();

	prm_set(ask, CMD_IN_OPCODE, PRM_OP_QUERY_HCA_CAP);
	prm_set(ask, CMD_IN_OP_MOD, HCA_CAP_GENERAL << 1 | 1);
	CHECK(!mlx5dv_devx_general_cmd(ctx, ask, sizeof(ask), cap, sizeof(cap)));
	/* a type's bit stands so far in front of the end of the map's 64 */
	CHECK(prm_get(page, PRM_FIELD(0x43f - GENERAL_DPA_PROCESS, 1)));
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		uint8_t in[0x100] = {0}, out[CMD_OUT_BYTES] = {0};

		CHECK(!prm_get(page, PRM_FIELD(0x43fu - types[i], 1)));
		prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_GENERAL_OBJECT);
		prm_set(in, GENERAL_IN_TYPE, types[i]);
		CHECK(!mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out)));
		CHECK(errno == EREMOTEIO && prm_get(out, CMD_OUT_STATUS) == CMD_STATUS_BAD_OP);
	}
	CHECK(!ibv_close_device(ctx));
}

const struct host_case rule_cases[] = {
	{"own_rule", own_rule},
	{"no_destination", no_destination},
	{"emulated_objects", emulated_objects},
	{NULL, NULL},
};
