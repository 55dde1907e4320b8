// SPDX-License-Identifier: BSD-2-Clause
/*
 * See table.h.  Commands are those of NVIDIA's "Ethernet Adapters Programming Manual": CREATE_RQT, with the numbers
 * of the queues, and CREATE_TIR, with the hash.
 */
#include "table.h"

#include <string.h>

#define OP_ALLOC_TRANSPORT_DOMAIN 0x816u
#define OP_CREATE_TIR		  0x900u
#define OP_CREATE_RQT		  0x916u
#define OUT_BYTES		  16u
#define OUT_NUMBER		  0x48u /* bit; of 24 */

/* Bits of the commands; contexts begin at byte 0x20. */
#define CONTEXT		0x100u
#define RQT_MAX		(CONTEXT + 0xb0)
#define RQT_ACTUAL	(CONTEXT + 0xd0)
#define RQT_ENTRY(n)	(CONTEXT + 0x788 + 32 * (n))
#define TIR_BY_TABLE	(CONTEXT + 0x20)
#define TIR_RQT		(CONTEXT + 0x108)
#define TIR_HASH	(CONTEXT + 0x120)
#define TIR_DOMAIN	(CONTEXT + 0x128)
#define TIR_KEY_BYTE	(0x20u + 0x28u)
#define TIR_OUTER_L4	(CONTEXT + 0x281) /* 1: UDP; the bit before: 0, IPv4 */
#define TIR_OUTER_WHICH (CONTEXT + 0x282)
#define HASH_TOEPLITZ	2u
#define HASH_ALL	0xfu /* both addresses, both ports */

/* Frames that are sent back go to another address: a port's own frames come to its rules, too. */
static const uint8_t own_mac[6] = {0x02, 0x00, 0x5e, 0x00, 0x02, 0x02};
#define MATCH_BYTES 64u
#define MATCH_OUTER 1u
#define MATCH_TO    8u /* the destination address, behind source address and type */

/* The key that Microsoft's description of receive scaling uses for its examples. */
static const uint8_t hash_key[40] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

/* Fields are numbered from the highest bit of the first byte, and end within a word of 32 bits. */
static void put(uint8_t *command, unsigned int bit, unsigned int bits, uint32_t value)
{
	for (unsigned int i = 0; i < bits; i++)
		if (value >> (bits - 1 - i) & 1)
			command[(bit + i) / 8] |= (uint8_t)(0x80 >> (bit + i) % 8);
}

static uint32_t get_number(const uint8_t *out)
{
	return (uint32_t)out[OUT_NUMBER / 8] << 16 | (uint32_t)out[OUT_NUMBER / 8 + 1] << 8 |
	       out[OUT_NUMBER / 8 + 2];
}

static struct mlx5dv_devx_obj *make(struct ibv_context *context, uint8_t *in, size_t bytes,
				    uint32_t opcode, uint32_t *number)
{
	uint8_t out[OUT_BYTES] = {0};
	struct mlx5dv_devx_obj *obj;

	put(in, 0, 16, opcode);
	obj = mlx5dv_devx_obj_create(context, in, bytes, out, sizeof(out));
	*number = get_number(out);
	return obj;
}

static int make_tir(struct spread_table *t, struct ibv_context *context, const uint32_t *queues,
		    unsigned int n)
{
	uint8_t domain_in[16] = {0}, rqt_in[0x110 + 4 * TABLE_MOST] = {0}, tir_in[0x110] = {0};
	uint32_t domain, rqt, tir;

	t->domain = make(context, domain_in, sizeof(domain_in), OP_ALLOC_TRANSPORT_DOMAIN, &domain);
	if (!t->domain)
		return 0;
	put(rqt_in, RQT_MAX, 16, n);
	put(rqt_in, RQT_ACTUAL, 16, n);
	for (unsigned int i = 0; i < n; i++)
		put(rqt_in, RQT_ENTRY(i), 24, queues[i]);
	t->rqt = make(context, rqt_in, sizeof(rqt_in), OP_CREATE_RQT, &rqt);
	if (!t->rqt)
		return 0;
	put(tir_in, TIR_BY_TABLE, 4, 1);
	put(tir_in, TIR_RQT, 24, rqt);
	put(tir_in, TIR_HASH, 4, HASH_TOEPLITZ);
	put(tir_in, TIR_DOMAIN, 24, domain);
	memcpy(tir_in + TIR_KEY_BYTE, hash_key, sizeof(hash_key));
	put(tir_in, TIR_OUTER_L4, 1, 1);
	put(tir_in, TIR_OUTER_WHICH, 30, HASH_ALL);
	t->tir = make(context, tir_in, sizeof(tir_in), OP_CREATE_TIR, &tir);
	return t->tir != NULL;
}

static int make_rule(struct spread_table *t, struct ibv_context *context)
{
	struct {
		struct mlx5dv_flow_match_parameters parameters;
		uint8_t bytes[MATCH_BYTES];
	} mask = {.parameters.match_sz = MATCH_BYTES}, value = {.parameters.match_sz = MATCH_BYTES};

	memset(mask.bytes + MATCH_TO, 0xff, 6);
	memcpy(value.bytes + MATCH_TO, own_mac, 6);
	t->rules = mlx5dv_dr_domain_create(context, MLX5DV_DR_DOMAIN_TYPE_NIC_RX);
	if (t->rules)
		t->root = mlx5dv_dr_table_create(t->rules, 0);
	if (t->root)
		t->matcher = mlx5dv_dr_matcher_create(t->root, 0, MATCH_OUTER, &mask.parameters);
	t->to_tir = mlx5dv_dr_action_create_dest_devx_tir(t->tir);
	if (t->matcher && t->to_tir)
		t->rule = mlx5dv_dr_rule_create(t->matcher, &value.parameters, 1, &t->to_tir);
	return t->rule != NULL;
}

int spread_table_make(struct spread_table *t, struct ibv_context *context, const uint32_t *queues,
		      unsigned int n)
{
	memset(t, 0, sizeof(*t));
	if (n && n <= TABLE_MOST && make_tir(t, context, queues, n) && make_rule(t, context))
		return 1;
	spread_table_destroy(t);
	return 0;
}

void spread_table_destroy(struct spread_table *t)
{
	if (t->rule)
		mlx5dv_dr_rule_destroy(t->rule);
	if (t->to_tir)
		mlx5dv_dr_action_destroy(t->to_tir);
	if (t->matcher)
		mlx5dv_dr_matcher_destroy(t->matcher);
	if (t->root)
		mlx5dv_dr_table_destroy(t->root);
	if (t->rules)
		mlx5dv_dr_domain_destroy(t->rules);
	if (t->tir)
		mlx5dv_devx_obj_destroy(t->tir);
	if (t->rqt)
		mlx5dv_devx_obj_destroy(t->rqt);
	if (t->domain)
		mlx5dv_devx_obj_destroy(t->domain);
}
