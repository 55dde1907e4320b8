// SPDX-License-Identifier: BSD-2-Clause
/*
 * Steering by mlx5's own rules (mlx5dv_create_flow_matcher(3), mlx5dv_create_flow(3)): which frames
 * a rule takes, and what is refused.  One row per case: outcome, name, reason.
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

#include "raw_end.h"

#define PARAM_BYTES 512u
#define OUTER	    1u
#define INNER	    4u
#define FRAME	    100u
#define SILENCE_MS  30u

/* The buffer of mlx5dv_flow_match_parameters, with room for all of it. */
struct param {
	size_t size;
	uint64_t words[PARAM_BYTES / 8];
};

/* A field: where it stands in the outer headers, and what it must be. */
struct field {
	uint16_t at, bytes;
	uint8_t mask[16], value[16];
};

struct what {
	const char *name;
	struct field field[3];
	unsigned frames; /* bit i: takes frames[i] */
};

enum { V4_UDP, V4_TCP, V6_UDP, TAGGED, FRAMES };

/* Destination 02:..:02, source 02:..:01; what follows differs. */
static const uint8_t frames[FRAMES][FRAME] = {
	[V4_UDP] = {2,	  0,	0,  0,	0, 2, 2,    0,	  0,	0,    0, 1, 0x08, 0x00,
		    0x45, 0x28, 0,  86, 0, 0, 0,    0,	  64,	17,   0, 0, 10,	  0,
		    0,	  1,	10, 0,	0, 2, 0x12, 0x34, 0x56, 0x78, 0, 66},
	[V4_TCP] = {2,	  0,	0, 0, 0,  2, 2, 0, 0,	 0,    0,    1,	   0x08,
		    0x00, 0x45, 0, 0, 86, 0, 0, 0, 0,	 3,    6,    0,	   0,
		    10,	  0,	0, 1, 10, 0, 0, 3, 0x12, 0x34, 0x56, 0x78, [46] = 0x50},
	[V6_UDP] = {2,	  0,	    0,	  0,	    0,	  2,	2,    0,    0,	0,  0,
		    1,	  0x86,	    0xdd, 0x60,	    0,	  0,	0,    0,    46, 17, 64,
		    0xfd, [37] = 1, 0xfd, [53] = 2, 0x12, 0x34, 0x56, 0x78, 0,	46},
	[TAGGED] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0x00, 0x60, 0x07, 0x88, 0xb5},
};

#define ALL	  15u
#define ON(frame) (1u << (frame))
#define FF2                \
	{                  \
		0xff, 0xff \
	}
#define FF4                            \
	{                              \
		0xff, 0xff, 0xff, 0xff \
	}
#define V4                     \
	{                      \
		18, 2, {0x1e}, \
		{              \
			0x08   \
		}              \
	}
#define V6                     \
	{                      \
		18, 2, {0x1e}, \
		{              \
			0x0c   \
		}              \
	}

static const struct what cases[] = {
	{"all, by an empty mask", {{0}}, ALL},
	{"source address", {{0, 6, {[5] = 0xff}, {[5] = 1}}}, ALL},
	{"another source address", {{0, 6, {[5] = 0xff}, {[5] = 7}}}, 0},
	{"destination address", {{8, 6, {0xff, [5] = 0xff}, {2, [5] = 2}}}, ALL},
	{"type", {{6, 2, FF2, {0x86, 0xdd}}}, ON(V6_UDP)},
	{"type behind a tag", {{6, 2, FF2, {0x88, 0xb5}}}, ON(TAGGED)},
	{"tagged", {{18, 2, {0x80}, {0x80}}}, ON(TAGGED)},
	{"not tagged", {{18, 2, {0x80}, {0}}}, ALL & ~ON(TAGGED)},
	{"VLAN", {{18, 2, {0x80}, {0x80}}, {14, 2, {0x0f, 0xff}, {0, 7}}}, ON(TAGGED)},
	{"priority of the VLAN", {{18, 2, {0x80}, {0x80}}, {14, 2, {0xe0}, {0x60}}}, ON(TAGGED)},
	{"IP version 4", {V4}, ON(V4_UDP) | ON(V4_TCP)},
	{"IP version 6", {V6}, ON(V6_UDP)},
	{"protocol", {V4, {16, 1, {0xff}, {6}}}, ON(V4_TCP)},
	{"next header", {V6, {16, 1, {0xff}, {17}}}, ON(V6_UDP)},
	{"DSCP", {V4, {17, 1, {0xfc}, {0x28}}}, ON(V4_UDP)},
	{"time to live", {V4, {27, 1, {0xff}, {3}}}, ON(V4_TCP)},
	{"IPv4 destination", {V4, {60, 4, FF4, {10, 0, 0, 3}}}, ON(V4_TCP)},
	{"IPv4 prefix, version by type",
	 {{6, 2, FF2, {8, 0}}, {60, 4, {0xff}, {10}}},
	 ON(V4_UDP) | ON(V4_TCP)},
	{"IPv4 source", {V4, {44, 4, FF4, {10, 0, 0, 1}}}, ON(V4_UDP) | ON(V4_TCP)},
	{"IPv6 destination", {V6, {48, 16, {0xff, [15] = 0xff}, {0xfd, [15] = 2}}}, ON(V6_UDP)},
	{"another IPv6 source", {V6, {32, 16, {0xff, [15] = 0xff}, {0xfd, [15] = 2}}}, 0},
	{"UDP destination", {{30, 2, FF2, {0x56, 0x78}}}, ON(V4_UDP) | ON(V6_UDP)},
	{"TCP source", {{20, 2, FF2, {0x12, 0x34}}}, ON(V4_TCP)},
	{"another port", {{30, 2, FF2, {0x56, 0x79}}}, 0},
};

static struct raw_end tx, rx;

static void fill_param(struct param *p, const struct what *w, int mask)
{
	*p = (struct param){.size = PARAM_BYTES};
	for (unsigned i = 0; i < 3; i++)
		memcpy((uint8_t *)p->words + w->field[i].at,
		       mask ? w->field[i].mask : w->field[i].value, w->field[i].bytes);
}

static struct mlx5dv_flow_matcher *make_matcher(struct ibv_context *ctx, const struct param *mask,
						uint8_t criteria, uint16_t priority)
{
	struct mlx5dv_flow_matcher_attr attr = {
		.type = IBV_FLOW_ATTR_NORMAL,
		.priority = priority,
		.match_criteria_enable = criteria,
		.match_mask = (struct mlx5dv_flow_match_parameters *)(uintptr_t)mask,
	};

	return mlx5dv_create_flow_matcher(ctx, &attr);
}

static struct ibv_flow *make_flow(struct mlx5dv_flow_matcher *m, const struct param *value,
				  struct ibv_qp *qp)
{
	struct mlx5dv_flow_action_attr action = {
		.type = qp ? MLX5DV_FLOW_ACTION_DEST_IBV_QP : MLX5DV_FLOW_ACTION_DROP,
		.qp = qp,
	};

	return mlx5dv_create_flow(m, (struct mlx5dv_flow_match_parameters *)(uintptr_t)value, 1,
				  &action);
}

/* Which of the frames arrive? */
static unsigned send_all(void)
{
	unsigned arrived = 0;

	for (unsigned i = 0; i < FRAMES; i++) {
		memcpy(tx.frame, frames[i], FRAME);
		raw_end_send(&tx, FRAME);
		if (raw_end_arrived(&rx, SILENCE_MS)) {
			arrived |= ON(i);
			NEED(!memcmp(rx.frame, frames[i], FRAME));
			raw_end_receive(&rx);
		}
	}
	return arrived;
}

static void rule_takes(const struct what *w)
{
	struct mlx5dv_flow_matcher *m;
	struct param mask, value;
	struct ibv_flow *f;

	fill_param(&mask, w, 1);
	fill_param(&value, w, 0);
	NEED((m = make_matcher(rx.ctx, &mask, OUTER, 0)));
	NEED((f = make_flow(m, &value, rx.qp)));
	raw_row(w->name, send_all() == w->frames);
	NEED(!ibv_destroy_flow(f));
	NEED(!mlx5dv_destroy_flow_matcher(m));
}

/* One rule drops what another, of less precedence, would have taken. */
static void rule_drops(void)
{
	static const struct what all = {0}, tcp = {.field = {V4, {16, 1, {0xff}, {6}}}};
	struct mlx5dv_flow_matcher *first, *second;
	struct param mask, value;
	struct ibv_flow *drop, *take;

	fill_param(&mask, &tcp, 1);
	fill_param(&value, &tcp, 0);
	NEED((first = make_matcher(rx.ctx, &mask, OUTER, 0)));
	NEED((drop = make_flow(first, &value, NULL)));
	fill_param(&mask, &all, 1);
	NEED((second = make_matcher(rx.ctx, &mask, 0, 1)));
	NEED((take = make_flow(second, &mask, rx.qp)));
	raw_row("a rule that drops, of higher priority", send_all() == (ALL & ~ON(V4_TCP)));
	raw_row("a matcher in use", mlx5dv_destroy_flow_matcher(first) == EBUSY);
	NEED(!ibv_destroy_flow(drop));
	raw_row("without it", send_all() == ALL);
	NEED(!ibv_destroy_flow(take));
	raw_row("nothing without rules", send_all() == 0);
	NEED(!mlx5dv_destroy_flow_matcher(first));
	NEED(!mlx5dv_destroy_flow_matcher(second));
}

static int matcher_refused(const struct field *f, uint8_t criteria, int error)
{
	struct what w = {.field = {*f}};
	struct mlx5dv_flow_matcher *m;
	struct param mask;

	fill_param(&mask, &w, 1);
	m = make_matcher(rx.ctx, &mask, criteria, 0);
	return !m && errno == error;
}

static void rules_refuse(void)
{
	static const struct field tcp_flags = {18, 2, {0, 0xff}, {0}};
	static const struct field fragments = {18, 2, {0x20}, {0}};
	static const struct field half_version = {18, 2, {0x02}, {0}};
	static const struct field inner = {128, 6, {0xff}, {0}};
	static const struct what bare = {.field = {{60, 4, FF4, {10, 0, 0, 3}}}};
	struct mlx5dv_flow_matcher *m;
	struct param mask;
	struct ibv_flow *f;

	raw_row("TCP flags are not known", matcher_refused(&tcp_flags, OUTER, EOPNOTSUPP));
	raw_row("fragments are not known", matcher_refused(&fragments, OUTER, EOPNOTSUPP));
	raw_row("half an IP version", matcher_refused(&half_version, OUTER, EOPNOTSUPP));
	raw_row("inner headers are not known", matcher_refused(&inner, OUTER | INNER, EOPNOTSUPP));
	fill_param(&mask, &bare, 1);
	NEED((m = make_matcher(rx.ctx, &mask, OUTER, 0)));
	f = make_flow(m, &mask, rx.qp);
	raw_row("an IP address of no version", !f && errno == EOPNOTSUPP);
	NEED(!mlx5dv_destroy_flow_matcher(m));
	NEED((m = make_matcher(rx.ctx, &mask, 0, UINT16_MAX)));
	f = make_flow(m, &mask, rx.qp);
	raw_row("a priority that there is not", !f && errno == EINVAL);
	NEED(!mlx5dv_destroy_flow_matcher(m));
}

int main(int argc, char **argv)
{
	const char *device = argc > 1 ? argv[1] : "mlx5_1";

	setvbuf(stdout, NULL, _IOLBF, 0);
	raw_end_open(&tx, device);
	raw_end_open(&rx, device);
	raw_end_receive(&rx);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		rule_takes(&cases[i]);
	rule_drops();
	rules_refuse();
	raw_end_close(&rx);
	raw_end_close(&tx);
	return raw_row_failed;
}
