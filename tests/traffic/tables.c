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

/* A matcher of which the fields are in no definer: the port of UDP. */
static void by_ports(void)
{
	enum {
		FIRST = 5000,
		RULES = 40,
		PARAMETERS = 32,
		PROTOCOL = 16,
		VERSION = 18,
		SOURCE_PORT = 28
	};
	struct {
		size_t size;
		uint8_t bytes[PARAMETERS];
	} mask = {.size = PARAMETERS}, value = {.size = PARAMETERS};
	static struct mlx5dv_dr_rule *rules[RULES];
	struct mlx5dv_dr_matcher *matcher;
	struct mlx5dv_dr_action *queue;
	struct tables t;
	int good = 1;

	tables_make(&t, rx.ctx, MLX5DV_DR_DOMAIN_TYPE_NIC_RX);
	memset(mask.bytes + SOURCE_PORT, 0xff, 2);
	mask.bytes[PROTOCOL] = 0xff;
	value.bytes[PROTOCOL] = 17;
	mask.bytes[VERSION] = 4 << 1; /* as libmlx5 wants it: the version itself */
	value.bytes[VERSION] = 4 << 1;
	NEED((matcher = mlx5dv_dr_matcher_create(t.table, 1, OUTER, (void *)&mask)));
	NEED((queue = mlx5dv_dr_action_create_dest_ibv_qp(rx.qp)));
	for (uint32_t i = 0; i <= RULES; i++) {
		uint32_t port = FIRST + i * 3;

		memset(tx.frame, 0, FRAME);
		mac_of(tx.frame, 0xffff);
		mac_of(tx.frame + 6, 7);
		memcpy(tx.frame + 12, (uint8_t[]){8, 0, 0x45, 0, 0, FRAME - 14}, 6);
		tx.frame[22] = 64;
		tx.frame[23] = 17;
		tx.frame[34] = value.bytes[SOURCE_PORT] = (uint8_t)(port >> 8);
		tx.frame[35] = value.bytes[SOURCE_PORT + 1] = (uint8_t)port;
		tx.frame[39] = FRAME - 34;
		if (i < RULES)
			NEED((rules[i] =
				      mlx5dv_dr_rule_create(matcher, (void *)&value, 1, &queue)));
		raw_end_send(&tx, FRAME);
		if (raw_end_arrived(&rx, i < RULES ? RAW_PATIENCE_MS : SILENCE_MS) == FRAME)
			raw_end_receive(&rx);
		else
			good &= i == RULES;
		good &= i == RULES || !memcmp(rx.frame, tx.frame, FRAME);
	}
	raw_row("rules for ports take their frames and no other", good);
	for (uint32_t i = 0; i < RULES; i++)
		NEED(!mlx5dv_dr_rule_destroy(rules[i]));
	NEED(!mlx5dv_dr_action_destroy(queue));
	NEED(!mlx5dv_dr_matcher_destroy(matcher));
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

/* ---- tunnels ---- */

#define VXLAN_BYTES 50u

/* Ethernet with a source address of its own, IPv4, UDP, VXLAN; lengths and checksums are the device's. */
static const uint8_t vxlan[VXLAN_BYTES] = {
	2,    0,    0,	  0xff, 0xff, 0xff, 2,	0, 0, 0,   0, 9, 0x08, 0x00, 0x45, 0, 0,
	0,    0,    0,	  0,	0,    64,   17, 0, 0, 192, 0, 2, 1,    192,  0,	   2, 2,
	0x30, 0x39, 0x12, 0xb5, 0,    0,    0,	0, 8, 0,   0, 0, 0,    0,    7,	   0,
};

static struct mlx5dv_dr_action *reformat(struct tables *t,
					 enum mlx5dv_flow_action_packet_reformat_type type,
					 const void *headers, size_t n)
{
	struct mlx5dv_dr_action *a = mlx5dv_dr_action_create_packet_reformat(
		t->domain, 0, type, n, (void *)(uintptr_t)headers);

	NEED(a);
	return a;
}

static uint32_t be16_at(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* The headers, with lengths and a checksum that adds up, and all of the frame behind them. */
static int in_tunnel(uint32_t got)
{
	uint32_t sum = 0;

	for (uint32_t i = 14; i < 34; i += 2)
		sum += be16_at(rx.frame + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return got == VXLAN_BYTES + FRAME && !memcmp(rx.frame, vxlan, 16) && sum == 0xffff &&
	       be16_at(rx.frame + 16) == got - 14 && be16_at(rx.frame + 38) == got - 34 &&
	       !memcmp(rx.frame + 42, vxlan + 42, 8) &&
	       !memcmp(rx.frame + VXLAN_BYTES, tx.frame, FRAME);
}

/* Sent frames go into a tunnel; then a rule for received ones, which looks inside, takes them out. */
static void tunnels(void)
{
	struct ibv_flow_attr everything = {
		.type = IBV_FLOW_ATTR_ALL_DEFAULT, .size = sizeof(everything), .port = 1};
	struct mlx5dv_dr_action *into, *out, *queue, *both[2];
	struct mlx5dv_dr_rule *rule, *back;
	struct ibv_flow *flow;
	struct tables t, r;
	struct match m;
	uint32_t got;

	tables_make(&t, tx.ctx, MLX5DV_DR_DOMAIN_TYPE_NIC_TX);
	into = reformat(&t, MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L2_TUNNEL, vxlan,
			VXLAN_BYTES);
	rule = rule_make(&t, 1, into);
	NEED((flow = ibv_create_flow(rx.qp, &everything)));
	frame_send(1);
	got = raw_end_arrived(&rx, RAW_PATIENCE_MS);
	raw_row("a sent frame goes into a tunnel", in_tunnel(got));
	raw_end_receive(&rx);
	NEED(!ibv_destroy_flow(flow));

	tables_make(&r, rx.ctx, MLX5DV_DR_DOMAIN_TYPE_NIC_RX);
	out = reformat(&r, MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TUNNEL_TO_L2, NULL, 0);
	NEED((queue = mlx5dv_dr_action_create_dest_ibv_qp(rx.qp)));
	both[0] = out;
	both[1] = queue;
	NEED((back = mlx5dv_dr_rule_create(r.matcher, match_make(&m, vxlan + 6), 2, both)));
	frame_send(1);
	got = raw_end_arrived(&rx, RAW_PATIENCE_MS);
	raw_row("and comes out of it as it was",
		got == FRAME && !memcmp(rx.frame, tx.frame, FRAME));
	raw_end_receive(&rx);
	raw_row("one that is in no tunnel is not for that rule", frame_is_lost(2));
	NEED(!mlx5dv_dr_rule_destroy(back));
	NEED(!mlx5dv_dr_rule_destroy(rule));
	NEED(!mlx5dv_dr_action_destroy(queue));
	NEED(!mlx5dv_dr_action_destroy(out));
	NEED(!mlx5dv_dr_action_destroy(into));
	tables_destroy(&r);
	tables_destroy(&t);
}

/* Another network's header is lost on the way: what comes is a datagram with headers of the rule's. */
static void tunnels_of_ip(void)
{
	static const uint8_t back[14] = {2, 0, 0, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 5, 0x08, 0x00};
	static const uint8_t gre[38] = {2,    0,    0, 0xff, 0xff, 0xff, 2, 0, 0, 0,  0,  9, 0x08,
					0x00, 0x45, 0, 0,    0,	   0,	 0, 0, 0, 64, 47, 0, 0,
					192,  0,    2, 1,    192,  0,	 2, 2, 0, 0,  8,  0};
	struct mlx5dv_dr_action *into, *out, *queue, *both[2];
	struct mlx5dv_dr_rule *rule, *rule_back;
	struct tables t, r;
	struct match m;
	uint32_t got;

	tables_make(&t, tx.ctx, MLX5DV_DR_DOMAIN_TYPE_NIC_TX);
	into = reformat(&t, MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L3_TUNNEL, gre,
			sizeof(gre));
	rule = rule_make(&t, 1, into);
	tables_make(&r, rx.ctx, MLX5DV_DR_DOMAIN_TYPE_NIC_RX);
	out = reformat(&r, MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L3_TUNNEL_TO_L2, back,
		       sizeof(back));
	NEED((queue = mlx5dv_dr_action_create_dest_ibv_qp(rx.qp)));
	both[0] = out;
	both[1] = queue;
	NEED((rule_back = mlx5dv_dr_rule_create(r.matcher, match_make(&m, gre + 6), 2, both)));
	memset(tx.frame, 0, FRAME);
	mac_of(tx.frame, 0xffff);
	mac_of(tx.frame + 6, 1);
	memcpy(tx.frame + 12, vxlan + 12, 22);
	tx.frame[17] = FRAME - 14;
	raw_end_send(&tx, FRAME);
	got = raw_end_arrived(&rx, RAW_PATIENCE_MS);
	raw_row("a datagram goes through a tunnel of datagrams",
		got == FRAME && !memcmp(rx.frame, back, 14) &&
			!memcmp(rx.frame + 14, tx.frame + 14, FRAME - 14));
	raw_end_receive(&rx);
	NEED(!mlx5dv_dr_rule_destroy(rule_back));
	NEED(!mlx5dv_dr_rule_destroy(rule));
	NEED(!mlx5dv_dr_action_destroy(queue));
	NEED(!mlx5dv_dr_action_destroy(out));
	NEED(!mlx5dv_dr_action_destroy(into));
	tables_destroy(&r);
	tables_destroy(&t);
}

int main(int argc, char **argv)
{
	const char *device = argc > 1 ? argv[1] : "mlx5_1";

	setvbuf(stdout, NULL, _IOLBF, 0);
	raw_end_open(&tx, device);
	raw_end_open(&rx, device);
	raw_end_receive(&rx);
	many_rules();
	by_ports();
	ways();
	tunnels();
	tunnels_of_ip();
	raw_end_close(&rx);
	raw_end_close(&tx);
	return raw_row_failed;
}
