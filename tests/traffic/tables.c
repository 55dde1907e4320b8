// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tables of mlx5dv_dr (mlx5dv_dr_table_create(3)): which frames come through rules of level 1, for received
 * and sent frames and through the switch.  One row per case: outcome, name, reason.
 */
#include <infiniband/mlx5dv.h>
#include <string.h>

#include "raw_end.h"

#define OUTER	    1u
#define FRAME	    100u
#define SILENCE_MS  30u
#define MATCH_BYTES 8u /* the source address, and two bytes that do not count */
#define UPLINK	    0xffffu
#define MANY	    300u

static struct raw_end tx, rx;

struct match {
	size_t size;
	uint64_t word;
};

static struct mlx5dv_flow_match_parameters *match_make(struct match *m, const void *mac)
{
	m->size = MATCH_BYTES;
	m->word = 0;
	memcpy(&m->word, mac, 6);
	return (struct mlx5dv_flow_match_parameters *)m;
}

/* A root table that leads frames of all source addresses to one of level 1. */
struct tables {
	struct mlx5dv_dr_domain *domain;
	struct mlx5dv_dr_table *root, *table;
	struct mlx5dv_dr_matcher *root_matcher, *matcher;
	struct mlx5dv_dr_action *to_table;
	struct mlx5dv_dr_rule *root_rule;
};

static void tables_make(struct tables *t, struct ibv_context *ctx, enum mlx5dv_dr_domain_type type)
{
	struct match all, address;

	match_make(&all, (uint8_t[6]){0});
	match_make(&address, (uint8_t[6]){0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
	NEED((t->domain = mlx5dv_dr_domain_create(ctx, type)));
	NEED((t->root = mlx5dv_dr_table_create(t->domain, 0)));
	NEED((t->table = mlx5dv_dr_table_create(t->domain, 1)));
	NEED((t->root_matcher = mlx5dv_dr_matcher_create(t->root, 0, OUTER, (void *)&all)));
	NEED((t->matcher = mlx5dv_dr_matcher_create(t->table, 0, OUTER, (void *)&address)));
	NEED((t->to_table = mlx5dv_dr_action_create_dest_table(t->table)));
	NEED((t->root_rule =
		      mlx5dv_dr_rule_create(t->root_matcher, (void *)&all, 1, &t->to_table)));
}

static void tables_destroy(struct tables *t)
{
	NEED(!mlx5dv_dr_rule_destroy(t->root_rule));
	NEED(!mlx5dv_dr_action_destroy(t->to_table));
	NEED(!mlx5dv_dr_matcher_destroy(t->root_matcher));
	NEED(!mlx5dv_dr_matcher_destroy(t->matcher));
	NEED(!mlx5dv_dr_table_destroy(t->table));
	NEED(!mlx5dv_dr_table_destroy(t->root));
	NEED(!mlx5dv_dr_domain_destroy(t->domain));
}

static void mac_of(uint8_t mac[6], uint32_t n)
{
	memcpy(mac, (uint8_t[6]){2, 0, 0, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n}, 6);
}

static struct mlx5dv_dr_rule *rule_make(struct tables *t, uint32_t n, struct mlx5dv_dr_action *a)
{
	struct mlx5dv_dr_rule *rule;
	struct match m;
	uint8_t mac[6];

	mac_of(mac, n);
	NEED((rule = mlx5dv_dr_rule_create(t->matcher, match_make(&m, mac), 1, &a)));
	return rule;
}

static void frame_send(uint32_t n)
{
	memset(tx.frame, 0, FRAME);
	mac_of(tx.frame, 0xffff);
	mac_of(tx.frame + 6, n);
	tx.frame[12] = 0x88;
	tx.frame[13] = 0xb5;
	raw_end_send(&tx, FRAME);
}

static int frame_arrives(uint32_t n)
{
	frame_send(n);
	if (raw_end_arrived(&rx, RAW_PATIENCE_MS) != FRAME)
		return 0;
	raw_end_receive(&rx);
	return !memcmp(rx.frame + 6, tx.frame + 6, 6);
}

static int frame_is_lost(uint32_t n)
{
	frame_send(n);
	return !raw_end_arrived(&rx, SILENCE_MS);
}

/* Rules enough for tables that grow, and for several in one place; then half of them go. */
static void many_rules(void)
{
	static struct mlx5dv_dr_rule *rules[MANY];
	struct mlx5dv_dr_action *queue;
	struct tables t;
	int good = 1;

	tables_make(&t, rx.ctx, MLX5DV_DR_DOMAIN_TYPE_NIC_RX);
	NEED((queue = mlx5dv_dr_action_create_dest_ibv_qp(rx.qp)));
	for (uint32_t i = 0; i < MANY; i++)
		rules[i] = rule_make(&t, i * 7919, queue);
	for (uint32_t i = 0; i < MANY; i++)
		good &= frame_arrives(i * 7919);
	raw_row("each of 300 rules takes its frames", good);
	raw_row("a frame of no rule is lost", frame_is_lost(1));
	for (uint32_t i = 0; i < MANY; i += 2)
		NEED(!mlx5dv_dr_rule_destroy(rules[i]));
	good = 1;
	for (uint32_t i = 1; i < MANY; i += 2)
		good &= frame_arrives(i * 7919);
	raw_row("after every second has gone the others do", good);
	raw_row("and those that went do not", frame_is_lost(0) && frame_is_lost(2 * 7919));
	for (uint32_t i = 1; i < MANY; i += 2)
		NEED(!mlx5dv_dr_rule_destroy(rules[i]));
	NEED(!mlx5dv_dr_action_destroy(queue));
	tables_destroy(&t);
}

/* A rule of verbs takes what comes through; what a table on the way does is seen by that. */
static void on_the_way(const char *name, struct tables *t, struct mlx5dv_dr_action *goes,
		       struct mlx5dv_dr_action *stays, int others)
{
	struct mlx5dv_dr_rule *first = rule_make(t, 1, goes), *second = rule_make(t, 2, stays);
	char row[80];

	snprintf(row, sizeof(row), "%s: one goes on", name);
	raw_row(row, frame_arrives(1));
	snprintf(row, sizeof(row), "%s: one is dropped", name);
	raw_row(row, frame_is_lost(2));
	snprintf(row, sizeof(row), "%s: one without a rule %s", name,
		 others ? "goes on" : "is lost");
	raw_row(row, others ? frame_arrives(3) : frame_is_lost(3));
	NEED(!mlx5dv_dr_rule_destroy(first));
	NEED(!mlx5dv_dr_rule_destroy(second));
	NEED(!mlx5dv_dr_action_destroy(goes));
	NEED(!mlx5dv_dr_action_destroy(stays));
	tables_destroy(t);
}

static void ways(void)
{
	struct ibv_flow_attr everything = {
		.type = IBV_FLOW_ATTR_ALL_DEFAULT, .size = sizeof(everything), .port = 1};
	struct mlx5dv_dr_action *goes;
	struct ibv_flow *flow;
	struct tables t;

	NEED((flow = ibv_create_flow(rx.qp, &everything)));
	tables_make(&t, tx.ctx, MLX5DV_DR_DOMAIN_TYPE_NIC_TX);
	on_the_way("sent frames", &t, mlx5dv_dr_action_create_default_miss(),
		   mlx5dv_dr_action_create_drop(), 1);
	tables_make(&t, tx.ctx, MLX5DV_DR_DOMAIN_TYPE_FDB);
	NEED((goes = mlx5dv_dr_action_create_dest_vport(t.domain, UPLINK)));
	on_the_way("switch, to the wire", &t, goes, mlx5dv_dr_action_create_drop(), 1);
	tables_make(&t, tx.ctx, MLX5DV_DR_DOMAIN_TYPE_FDB);
	NEED((goes = mlx5dv_dr_action_create_dest_vport(t.domain, 0)));
	on_the_way("switch, to the host", &t, goes, mlx5dv_dr_action_create_drop(), 1);
	raw_row("without rules a frame goes on", frame_arrives(2));
	NEED(!ibv_destroy_flow(flow));
}

int main(int argc, char **argv)
{
	const char *device = argc > 1 ? argv[1] : "mlx5_1";

	setvbuf(stdout, NULL, _IOLBF, 0);
	raw_end_open(&tx, device);
	raw_end_open(&rx, device);
	raw_end_receive(&rx);
	many_rules();
	ways();
	raw_end_close(&rx);
	raw_end_close(&tx);
	return raw_row_failed;
}
