// SPDX-License-Identifier: BSD-2-Clause
/*
 * Every signature, block size and seed, in each way that data can go, added, checked and removed,
 * checked and passed on, or changed into another one.
 */
#include <string.h>

#include "conform.h"

enum action { ADD, STRIP, PASS, CONVERT, ACTIONS };

#define MATRIX_BYTES (4 * 4160u)

/* Another type than this one's, half of the time also another block size. */
static struct domain partner_of(const struct domain *d)
{
	return (struct domain){
		.type = d->type == CRC64 ? DIF_CRC : d->type + 1,
		.size = d->ones				    ? d->size
			: d->size == MLX5DV_BLOCK_SIZE_4160 ? MLX5DV_BLOCK_SIZE_512
							    : d->size + 1,
		.ones = !d->ones,
		.app = 0x5678,
		.ref = 0xfffffffe,
		.flags = MLX5DV_SIG_T10DIF_FLAG_REF_REMAP,
	};
}

struct cell {
	struct connected_pair *s;
	enum route route;
	enum action action;
	struct domain in;
	struct domain out;
	uint8_t data[MATRIX_BYTES];
	uint8_t input[2 * MATRIX_BYTES];
	uint8_t want[2 * MATRIX_BYTES];
	uint32_t in_bytes;
	uint32_t out_bytes;
	uint32_t wire_bytes;
	uint32_t memory_bytes;
};

static void move_cell(struct cell *c)
{
	struct connected_pair *s = c->s;
	bool gathers = route_gathers(c->route);
	struct endpoint_proxy *from = gathers ? &s->local : &s->remote;
	struct endpoint_proxy *to = gathers ? &s->remote : &s->local;
	uint32_t from_at = gathers ? LOCAL_AT : REMOTE_AT;
	uint32_t to_at = gathers ? REMOTE_AT : LOCAL_AT;

	memcpy(from->memory + from_at, c->input, c->in_bytes);
	memset(to->memory + to_at, CANARY, 2 * MATRIX_BYTES);
	transfer(s, c->route, 0, c->wire_bytes);
	expect_only(to, to_at, c->want, c->out_bytes);
	memset(from->memory + from_at, CANARY, c->in_bytes);
	memset(to->memory + to_at, CANARY, c->out_bytes);
}

static void good_and_bad(struct cell *c)
{
	const struct domain *in = &c->in;
	uint32_t unit = reference_unit(in);
	uint32_t block = reference_block(in->size);
	bool gathers = route_gathers(c->route);
	struct key_conf conf = signature_conf(gathers ? in : &c->out, gathers ? &c->out : in,
					      c->memory_bytes, 0xff);
	struct mlx5dv_mkey_err nothing;
	uint64_t guard;

	configure(&c->s->local, 0, &conf);
	move_cell(c);
	expect_no_error(&c->s->local, 0);
	if (in->type == NO_SIGNATURE)
		return;

	/* A bit of the second block's guard, in its second byte. */
	c->input[unit + block + 1] ^= 0x10;
	guard = reference_number(in->type, in->ones, c->data + block, block);
	if (c->action == PASS)
		c->want[unit + block + 1] ^= 0x10;
	move_cell(c);
	expect_error(&c->s->local, 0,
		     (struct expected_error){
			     .type = MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
			     .calculated = guard,
			     .found = guard ^ (in->type == CRC32C || in->type == CRC64 ? 0x1000ull
					       : in->type == CRC32		       ? 0x100000ull
										       : 0x10ull),
			     .block = 1,
			     .unit = unit,
		     });
	SAME(try_check(&c->s->local, 0, &nothing), 0);
	SAME(nothing.err_type, MLX5DV_MKEY_NO_ERR);
}

static void run_cell(struct cell *c, const struct domain *d)
{
	static const struct domain none = {NO_SIGNATURE, MLX5DV_BLOCK_SIZE_512, false, 0, 0, 0};
	uint32_t data = (reference_block(d->size) < 600 ? 5 : 2) * reference_block(d->size);
	bool gathers = route_gathers(c->route);

	c->in = c->action == ADD ? none : *d;
	c->out = c->action == ADD || c->action == PASS ? *d : none;
	if (c->action == CONVERT) {
		c->out = partner_of(d);
		data += 1024; /* the last block may be a part */
	}
	if (!proxy_supports(&c->s->local, &c->in) || !proxy_supports(&c->s->local, &c->out))
		return;
	fill_random(c->data, data, options.seed + d->type * 100 + d->size * 10 + d->ones);
	c->in_bytes = (uint32_t)reference_stream(&c->in, c->data, data, c->input);
	c->out_bytes = (uint32_t)reference_stream(&c->out, c->data, data, c->want);
	c->wire_bytes = gathers ? c->out_bytes : c->in_bytes;
	c->memory_bytes = gathers ? c->in_bytes : c->out_bytes;
	good_and_bad(c);
}

static void test_matrix(const struct test *t)
{
	static struct cell c;
	struct connected_pair s;

	c = (struct cell){.s = &s, .route = t->arg / ACTIONS, .action = t->arg % ACTIONS};
	pair_open_signed(&s, NULL);
	for (enum signature type = DIF_CRC; type < SIGNATURES; type++) {
		for (int size = 0; size <= MLX5DV_BLOCK_SIZE_4160; size++) {
			for (int ones = 0; ones < 2; ones++) {
				struct domain d = {
					.type = type,
					.size = (enum mlx5dv_block_size)size,
					.ones = ones,
					.app = 0xabcd,
					.ref = 0x01234567,
					.flags = MLX5DV_SIG_T10DIF_FLAG_REF_REMAP,
				};

				run_cell(&c, &d);
			}
		}
	}
	pair_close(&s);
}

#define CELL(route, action) ((route)*ACTIONS + (action))

const struct test matrix_tests[] = {
	{"all-added-by-SEND", test_matrix, {1, 10, 36}, CELL(ROUTE_SEND, ADD)},
	{"all-checked-and-stripped-by-SEND", test_matrix, {1, 11, 36}, CELL(ROUTE_SEND, STRIP)},
	{"all-passed-by-SEND", test_matrix, {1, 20}, CELL(ROUTE_SEND, PASS)},
	{"all-converted-by-SEND", test_matrix, {1}, CELL(ROUTE_SEND, CONVERT)},
	{"all-added-by-WRITE", test_matrix, {1, 10}, CELL(ROUTE_WRITE, ADD)},
	{"all-checked-and-stripped-by-WRITE", test_matrix, {1, 11}, CELL(ROUTE_WRITE, STRIP)},
	{"all-passed-by-WRITE", test_matrix, {1, 20}, CELL(ROUTE_WRITE, PASS)},
	{"all-converted-by-WRITE", test_matrix, {1}, CELL(ROUTE_WRITE, CONVERT)},
	{"all-added-by-READ-of-the-peer", test_matrix, {1, 10}, CELL(ROUTE_READ_BY, ADD)},
	{"all-checked-and-stripped-by-READ-of-the-peer",
	 test_matrix,
	 {1, 11},
	 CELL(ROUTE_READ_BY, STRIP)},
	{"all-passed-by-READ-of-the-peer", test_matrix, {1, 20}, CELL(ROUTE_READ_BY, PASS)},
	{"all-converted-by-READ-of-the-peer", test_matrix, {1}, CELL(ROUTE_READ_BY, CONVERT)},
	{"all-added-by-RECEIVE", test_matrix, {1, 11}, CELL(ROUTE_RECEIVE, ADD)},
	{"all-checked-and-stripped-by-RECEIVE", test_matrix, {1, 10}, CELL(ROUTE_RECEIVE, STRIP)},
	{"all-passed-by-RECEIVE", test_matrix, {1, 20}, CELL(ROUTE_RECEIVE, PASS)},
	{"all-converted-by-RECEIVE", test_matrix, {1}, CELL(ROUTE_RECEIVE, CONVERT)},
	{"all-added-by-WRITE-of-the-peer", test_matrix, {1, 11}, CELL(ROUTE_WRITTEN, ADD)},
	{"all-checked-and-stripped-by-WRITE-of-the-peer",
	 test_matrix,
	 {1, 10},
	 CELL(ROUTE_WRITTEN, STRIP)},
	{"all-passed-by-WRITE-of-the-peer", test_matrix, {1, 20}, CELL(ROUTE_WRITTEN, PASS)},
	{"all-converted-by-WRITE-of-the-peer", test_matrix, {1}, CELL(ROUTE_WRITTEN, CONVERT)},
	{"all-added-by-READ", test_matrix, {1, 11}, CELL(ROUTE_READ, ADD)},
	{"all-checked-and-stripped-by-READ", test_matrix, {1, 10}, CELL(ROUTE_READ, STRIP)},
	{"all-passed-by-READ", test_matrix, {1, 20}, CELL(ROUTE_READ, PASS)},
	{"all-converted-by-READ", test_matrix, {1}, CELL(ROUTE_READ, CONVERT)},
	{0},
};
