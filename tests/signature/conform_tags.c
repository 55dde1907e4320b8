// SPDX-License-Identifier: BSD-2-Clause
/* Application and reference tags of T10-DIF, and the escapes. */
#include <string.h>

#include "conform.h"

#define BLOCK 512u
#define UNIT  520u
#define REMAP MLX5DV_SIG_T10DIF_FLAG_REF_REMAP

static uint32_t ref_of(const uint8_t *unit)
{
	return (uint32_t)unit[516] << 24 | (uint32_t)unit[517] << 16 | (uint32_t)unit[518] << 8 |
	       unit[519];
}

static uint32_t app_of(const uint8_t *unit)
{
	return (uint32_t)unit[514] << 8 | unit[515];
}

/* Tags in the output, of four blocks, for one start. */
static void generated_tags(struct connected_pair *s, enum route r, uint32_t ref, uint16_t flags)
{
	struct domain d = {DIF_CRC, MLX5DV_BLOCK_SIZE_512, false, 0xbeef, ref, flags};
	bool gathers = route_gathers(r);
	struct key_conf c = signature_conf(gathers ? NULL : &d, gathers ? &d : NULL,
					   gathers ? 4 * BLOCK : 4 * UNIT, 0);
	const uint8_t *out = gathers ? s->remote.memory + REMOTE_AT : s->local.memory + LOCAL_AT;

	configure(&s->local, 0, &c);
	transfer(s, r, 0, gathers ? 4 * UNIT : 4 * BLOCK);
	for (uint32_t i = 0; i < 4; i++) {
		SAME(app_of(out + i * UNIT), 0xbeef);
		SAME(ref_of(out + i * UNIT), (uint32_t)(ref + (flags & REMAP ? i : 0)));
	}
}

static void test_generated(const struct test *t)
{
	static const uint32_t refs[] = {0, 0xf0debc9a, 0xfffffffe, 0xffffffff};
	struct connected_pair s;

	(void)t;
	pair_open_signed(&s, NULL);
	for (enum route r = 0; r < ROUTES; r++) {
		for (int i = 0; i < 4; i++) {
			generated_tags(&s, r, refs[i], 0);
			generated_tags(&s, r, refs[i], REMAP);
		}
	}
	pair_close(&s);
}

/* Three blocks with these tags go into the domain that is checked; NO_ERR or the error of a
 * block. */
struct tagged {
	struct domain want; /* the configuration */
	struct domain has;
	enum mlx5dv_mkey_err_type error;
	uint32_t block;
};

static void validated_tags(struct connected_pair *s, enum route r, const struct tagged *g)
{
	bool gathers = route_gathers(r);
	uint8_t *in = gathers ? s->local.memory + LOCAL_AT : s->remote.memory + REMOTE_AT;
	struct key_conf c = signature_conf(gathers ? &g->want : NULL, gathers ? NULL : &g->want,
					   gathers ? 3 * UNIT : 3 * BLOCK, 0xff);
	uint8_t data[3 * BLOCK];
	uint32_t want_ref = g->want.ref + (g->want.flags & REMAP ? g->block : 0);
	uint32_t has_ref = g->has.ref + (g->has.flags & REMAP ? g->block : 0);
	bool app = g->error == MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG;

	configure(&s->local, 0, &c);
	fill_random(data, sizeof(data), 5);
	reference_stream(&g->has, data, sizeof(data), in);
	transfer(s, r, 0, gathers ? 3 * BLOCK : 3 * UNIT);
	if (g->error == MLX5DV_MKEY_NO_ERR)
		expect_no_error(&s->local, 0);
	else
		expect_error(&s->local, 0,
			     (struct expected_error){
				     .type = g->error,
				     .calculated = app ? g->want.app : want_ref,
				     .found = app ? g->has.app : has_ref,
				     .block = g->block,
				     .unit = UNIT,
			     });
}

#define DIF(app, ref, flags)                                           \
	{                                                              \
		DIF_CRC, MLX5DV_BLOCK_SIZE_512, false, app, ref, flags \
	}
#define BAD_APP MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG
#define BAD_REF MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG

static const struct tagged app_tags[] = {
	{DIF(0x1234, 5, 0), DIF(0x1234, 5, 0), MLX5DV_MKEY_NO_ERR, 0},
	{DIF(0x1234, 5, 0), DIF(0x1235, 5, 0), BAD_APP, 0},
	{DIF(0, 5, REMAP), DIF(0xffff, 5, REMAP), BAD_APP, 0},
};

static const struct tagged ref_tags[] = {
	{DIF(1, 5, 0), DIF(1, 5, 0), MLX5DV_MKEY_NO_ERR, 0},
	{DIF(1, 5, 0), DIF(1, 6, 0), BAD_REF, 0},
	{DIF(1, 5, REMAP), DIF(1, 5, REMAP), MLX5DV_MKEY_NO_ERR, 0},
	{DIF(1, 5, REMAP), DIF(1, 4, REMAP), BAD_REF, 0},
	/* One counts and the other does not: the first block is right. */
	{DIF(1, 5, REMAP), DIF(1, 5, 0), BAD_REF, 1},
	{DIF(1, 5, 0), DIF(1, 5, REMAP), BAD_REF, 1},
	{DIF(1, 0xffffffff, REMAP), DIF(1, 0xffffffff, REMAP), MLX5DV_MKEY_NO_ERR, 0},
};

static void test_validated(const struct test *t)
{
	const struct tagged *table = t->arg ? ref_tags : app_tags;
	size_t n = t->arg ? sizeof(ref_tags) / sizeof(*ref_tags)
			  : sizeof(app_tags) / sizeof(*app_tags);
	struct connected_pair s;

	pair_open_signed(&s, NULL);
	for (enum route r = 0; r < ROUTES; r++)
		for (size_t i = 0; i < n; i++)
			validated_tags(&s, r, &table[i]);
	pair_close(&s);
}

/* Both domains have tags: what is checked is the input's, what is made the output's. */
static void test_remapped(const struct test *t)
{
	struct domain mem = DIF(0x1111, 100, REMAP);
	struct domain wire = DIF(0x2222, 7000, REMAP);
	uint8_t data[4 * BLOCK];
	uint8_t want[4 * UNIT];
	struct key_conf c = signature_conf(&mem, &wire, 4 * UNIT, 0xff);
	struct connected_pair s;

	(void)t;
	pair_open_signed(&s, NULL);
	fill_random(data, sizeof(data), 9);
	for (enum route r = 0; r < ROUTES; r++) {
		bool gathers = route_gathers(r);
		uint8_t *in = gathers ? s.local.memory + LOCAL_AT : s.remote.memory + REMOTE_AT;

		configure(&s.local, 0, &c);
		fill_canary(&s.local);
		fill_canary(&s.remote);
		reference_stream(gathers ? &mem : &wire, data, sizeof(data), in);
		transfer(&s, r, 0, 4 * UNIT);
		expect_no_error(&s.local, 0);
		reference_stream(gathers ? &wire : &mem, data, sizeof(data), want);
		expect_only(gathers ? &s.remote : &s.local, gathers ? REMOTE_AT : LOCAL_AT, want,
			    sizeof(want));
	}
	pair_close(&s);
}

/* A block whose tags may switch its check off: guard and tags are all wrong. */
struct escaping {
	uint16_t flags; /* of the configuration */
	uint16_t app;	/* in the block */
	uint32_t ref;
	bool escapes;
};

#define APP	MLX5DV_SIG_T10DIF_FLAG_APP_ESCAPE
#define APP_REF MLX5DV_SIG_T10DIF_FLAG_APP_REF_ESCAPE

static const struct escaping app_escapes[] = {
	{APP, 0xffff, 7, true},	 {APP, 0xffff, 0xffffffff, true},  {APP | REMAP, 0xffff, 99, true},
	{APP, 0xfffe, 7, false}, {APP, 0x7fff, 0xffffffff, false}, {0, 0xffff, 0xffffffff, false},
};

static const struct escaping app_ref_escapes[] = {
	{APP_REF, 0xffff, 0xffffffff, true},
	{APP_REF | REMAP, 0xffff, 0xffffffff, true},
	{APP_REF, 0xffff, 0xfffffffe, false},
	{APP_REF, 0xffff, 7, false},
	{APP_REF, 0xfffe, 0xffffffff, false},
	/* Of both flags the library keeps this one. */
	{APP | APP_REF, 0xffff, 0xffffffff, true},
	{APP | APP_REF, 0xffff, 7, false},
};

static void escape_case(struct connected_pair *s, enum route r, const struct escaping *e)
{
	struct domain d = {DIF_CRC, MLX5DV_BLOCK_SIZE_512, true, 0x4321, 7, e->flags};
	struct domain has = {DIF_CRC, MLX5DV_BLOCK_SIZE_512, true, e->app, e->ref, 0};
	bool gathers = route_gathers(r);
	uint8_t *in = gathers ? s->local.memory + LOCAL_AT : s->remote.memory + REMOTE_AT;
	struct key_conf c = signature_conf(gathers ? &d : NULL, gathers ? NULL : &d,
					   gathers ? UNIT : BLOCK, 0xff);
	uint64_t guard;

	configure(&s->local, 0, &c);
	fill_random(in, BLOCK, 5);
	guard = reference_number(DIF_CRC, true, in, BLOCK);
	reference_signature(&has, 0, in, in + BLOCK);
	in[BLOCK] ^= 0x80;
	transfer(s, r, 0, gathers ? BLOCK : UNIT);
	if (e->escapes)
		expect_no_error(&s->local, 0);
	else
		expect_error(&s->local, 0,
			     (struct expected_error){
				     .type = MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
				     .calculated = guard,
				     .found = guard ^ 0x8000,
				     .unit = UNIT,
			     });
}

static void test_escapes(const struct test *t)
{
	const struct escaping *table = t->arg ? app_ref_escapes : app_escapes;
	size_t n = t->arg ? sizeof(app_ref_escapes) / sizeof(*app_ref_escapes)
			  : sizeof(app_escapes) / sizeof(*app_escapes);
	struct connected_pair s;

	pair_open_signed(&s, NULL);
	for (enum route r = 0; r < ROUTES; r++)
		for (size_t i = 0; i < n; i++)
			escape_case(&s, r, &table[i]);
	pair_close(&s);
}

/* The escape is of one block: the next is checked. */
static void escape_of_one_block(const struct test *t)
{
	struct domain d = DIF(1, 2, APP);
	struct key_conf c = signature_conf(&d, NULL, 3 * UNIT, 0xff);
	struct connected_pair s;
	uint8_t *in;

	(void)t;
	pair_open_signed(&s, NULL);
	in = s.local.memory + LOCAL_AT;
	configure(&s.local, 0, &c);
	for (int i = 0; i < 3; i++) {
		fill_random(in + i * UNIT, BLOCK, 5);
		reference_signature(&d, (uint32_t)i, in + i * UNIT, in + i * UNIT + BLOCK);
	}
	memset(in + UNIT + BLOCK, 0xff, 8);
	in[2 * UNIT + BLOCK + 7] ^= 1;
	transfer(&s, ROUTE_WRITE, 0, 3 * BLOCK);
	expect_error(
		&s.local, 0,
		(struct expected_error){
			.type = BAD_REF, .calculated = 2, .found = 3, .block = 2, .unit = UNIT});
	pair_close(&s);
}

const struct test tag_tests[] = {
	{"tags-generated", test_generated, {37, 41, 42, 43}},
	{"application-tags-validated", test_validated, {41, 57}, 0},
	{"reference-tags-validated", test_validated, {37, 42, 43, 57}, 1},
	{"tags-remapped", test_remapped, {21, 42, 43}},
	{"application-tag-escapes", test_escapes, {44}, 0},
	{"application-and-reference-tags-escape", test_escapes, {45}, 1},
	{"escape-of-one-block", escape_of_one_block, {44}},
	{0},
};
