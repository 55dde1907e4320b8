// SPDX-License-Identifier: BSD-2-Clause
/*
 * Configurations that must be refused: the setters return nothing, ibv_wr_complete tells, nothing
 * is posted, and the queue goes on as before.
 */
#include <errno.h>
#include <string.h>

#include "conform.h"

/* What a builder gets, spoilt by each test in its own way. */
struct attempt {
	struct mlx5dv_mkey_conf_attr conf;
	struct mlx5dv_sig_t10dif dif;
	struct mlx5dv_sig_crc crc;
	struct mlx5dv_sig_block_domain mem;
	struct mlx5dv_sig_block_domain wire;
	struct mlx5dv_sig_block_attr attr;
	unsigned wr_flags;
	uint32_t access;
	uint8_t setters;
	bool again[3]; /* access, layout, signature: call the setter twice */
	bool no_configure;
	int key;
};

enum { KEY_SIGNED, KEY_PLAIN };

static struct attempt good_attempt(void)
{
	return (struct attempt){
		.dif = {.bg_type = MLX5DV_SIG_T10DIF_CRC},
		.crc = {.type = MLX5DV_SIG_CRC_TYPE_CRC32},
		.mem = {.sig_type = MLX5DV_SIG_TYPE_T10DIF, .block_size = MLX5DV_BLOCK_SIZE_512},
		.wire = {.sig_type = MLX5DV_SIG_TYPE_CRC, .block_size = MLX5DV_BLOCK_SIZE_512},
		.wr_flags = IBV_SEND_INLINE,
		.access = IBV_ACCESS_LOCAL_WRITE,
		.setters = 3,
		.key = KEY_SIGNED,
	};
}

static int try_attempt(struct connected_pair *s, struct attempt *a)
{
	struct endpoint *d = s->local.endpoint;
	struct ibv_sge sge = endpoint_sge(d, ORDER_WHOLE, LOCAL_AT, 520);
	struct mlx5dv_sig_block_attr attr = a->attr;

	a->mem.sig.dif = &a->dif;
	a->wire.sig.crc = &a->crc;
	attr.mem = &a->mem;
	attr.wire = &a->wire;
	ibv_wr_start(d->qpx);
	d->qpx->wr_id = 1;
	d->qpx->wr_flags = a->wr_flags;
	if (!a->no_configure)
		mlx5dv_wr_mkey_configure(d->mqpx, d->key[a->key], a->setters, &a->conf);
	for (int i = 0; i <= a->again[0]; i++)
		mlx5dv_wr_set_mkey_access_flags(d->mqpx, a->access);
	for (int i = 0; i <= a->again[1]; i++)
		mlx5dv_wr_set_mkey_layout_list(d->mqpx, 1, &sge);
	for (int i = 0; i <= a->again[2]; i++)
		mlx5dv_wr_set_mkey_sig_block(d->mqpx, &attr);
	return ibv_wr_complete(d->qpx);
}

static void open_keys(struct connected_pair *s)
{
	pair_open(s, NULL);
	signature_key(s, KEY_SIGNED);
	key_create(&s->local, KEY_PLAIN, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, 4);
}

/* The queue has lost nothing by a refusal: a good configuration and a transfer still work. */
static void still_works(struct connected_pair *s)
{
	struct attempt a = good_attempt();

	expect_no_completion(&s->local, SENDS);
	SAME(state_of(&s->local), IBV_QPS_RTS);
	a.conf.conf_flags = MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR;
	a.wr_flags |= IBV_SEND_SIGNALED;
	SAME(try_attempt(s, &a), 0);
	SAME(success(&s->local, SENDS).opcode, IBV_WC_DRIVER1);
}

static void expect_refused(const struct test *t, int want, void (*spoil)(struct attempt *a))
{
	struct connected_pair s;
	struct attempt a = good_attempt();

	(void)t;
	open_keys(&s);
	spoil(&a);
	SAME(try_attempt(&s, &a), want);
	still_works(&s);
	pair_close(&s);
}

static void no_inline(struct attempt *a)
{
	a->wr_flags = 0;
}

static void conf_flags(struct attempt *a)
{
	a->conf.conf_flags = MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR << 1;
}

static void conf_comp_mask(struct attempt *a)
{
	a->conf.comp_mask = 1;
}

static void attr_comp_mask(struct attempt *a)
{
	a->attr.comp_mask = 1ull << 40;
}

static void mem_comp_mask(struct attempt *a)
{
	a->mem.comp_mask = 1;
}

static void wire_comp_mask(struct attempt *a)
{
	a->wire.comp_mask = 1ull << 63;
}

static void attr_flags(struct attempt *a)
{
	a->attr.flags = MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK << 1;
}

static void copy_mask(struct attempt *a)
{
	a->attr.flags = MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK; /* T10-DIF against CRC32 */
}

static void plain_key(struct attempt *a)
{
	a->key = KEY_PLAIN;
}

static void no_configure(struct attempt *a)
{
	a->no_configure = true;
}

static void access_twice(struct attempt *a)
{
	a->again[0] = true;
	a->setters = 4;
}

static void layout_twice(struct attempt *a)
{
	a->again[1] = true;
	a->setters = 4;
}

static void signature_twice(struct attempt *a)
{
	a->again[2] = true;
	a->setters = 4;
}

static void dif_seed(struct attempt *a)
{
	a->dif.bg = 1;
}

static void dif_guard(struct attempt *a)
{
	a->dif.bg_type = (enum mlx5dv_sig_t10dif_bg_type)2;
}

static void dif_flags(struct attempt *a)
{
	a->dif.flags = 1 << 3;
}

static void crc32_seed(struct attempt *a)
{
	a->crc.seed = 0x7fffffff;
}

static void crc32c_seed(struct attempt *a)
{
	a->crc = (struct mlx5dv_sig_crc){MLX5DV_SIG_CRC_TYPE_CRC32C, 1};
}

static void crc64_seed(struct attempt *a)
{
	a->crc = (struct mlx5dv_sig_crc){MLX5DV_SIG_CRC_TYPE_CRC64_XP10, UINT32_MAX};
}

static void crc_type(struct attempt *a)
{
	a->crc.type = (enum mlx5dv_sig_crc_type)3;
}

static void block_size(struct attempt *a)
{
	a->mem.block_size = (enum mlx5dv_block_size)(MLX5DV_BLOCK_SIZE_4160 + 1);
}

static void sig_type(struct attempt *a)
{
	a->wire.sig_type = (enum mlx5dv_sig_type)2;
}

static void access_flags(struct attempt *a)
{
	a->access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;
}

struct refusal {
	void (*spoil)(struct attempt *a);
	int err;
};

enum refusal_name {
	R_INLINE,
	R_CONF_FLAGS,
	R_CONF_COMP,
	R_ATTR_COMP,
	R_MEM_COMP,
	R_WIRE_COMP,
	R_ATTR_FLAGS,
	R_COPY_MASK,
	R_PLAIN_KEY,
	R_NO_CONFIGURE,
	R_ACCESS_TWICE,
	R_LAYOUT_TWICE,
	R_SIG_TWICE,
	R_DIF_SEED,
	R_DIF_GUARD,
	R_DIF_FLAGS,
	R_CRC32_SEED,
	R_CRC32C_SEED,
	R_CRC64_SEED,
	R_CRC_TYPE,
	R_BLOCK_SIZE,
	R_SIG_TYPE,
	R_ACCESS,
};

static const struct refusal refusals[] = {
	[R_INLINE] = {no_inline, EOPNOTSUPP},	      [R_CONF_FLAGS] = {conf_flags, EOPNOTSUPP},
	[R_CONF_COMP] = {conf_comp_mask, EOPNOTSUPP}, [R_ATTR_COMP] = {attr_comp_mask, EINVAL},
	[R_MEM_COMP] = {mem_comp_mask, EINVAL},	      [R_WIRE_COMP] = {wire_comp_mask, EINVAL},
	[R_ATTR_FLAGS] = {attr_flags, EINVAL},	      [R_COPY_MASK] = {copy_mask, EINVAL},
	[R_PLAIN_KEY] = {plain_key, EINVAL},	      [R_NO_CONFIGURE] = {no_configure, EINVAL},
	[R_ACCESS_TWICE] = {access_twice, EINVAL},    [R_LAYOUT_TWICE] = {layout_twice, EINVAL},
	[R_SIG_TWICE] = {signature_twice, EINVAL},    [R_DIF_SEED] = {dif_seed, EINVAL},
	[R_DIF_GUARD] = {dif_guard, EINVAL},	      [R_DIF_FLAGS] = {dif_flags, EINVAL},
	[R_CRC32_SEED] = {crc32_seed, EINVAL},	      [R_CRC32C_SEED] = {crc32c_seed, EINVAL},
	[R_CRC64_SEED] = {crc64_seed, EINVAL},	      [R_CRC_TYPE] = {crc_type, EINVAL},
	[R_BLOCK_SIZE] = {block_size, EINVAL},	      [R_SIG_TYPE] = {sig_type, EINVAL},
	[R_ACCESS] = {access_flags, EINVAL},
};

static void test_refusal(const struct test *t)
{
	const struct refusal *r = &refusals[t->arg];

	expect_refused(t, r->err, r->spoil);
}

/* Same type and size is the same structure; either alone is not. */
static void copy_mask_structure(const struct test *t)
{
	static const struct domain dif = {DIF_CRC, MLX5DV_BLOCK_SIZE_512};
	static const struct domain other[] = {
		{DIF_CRC, MLX5DV_BLOCK_SIZE_4096},
		{CRC32, MLX5DV_BLOCK_SIZE_512},
		{CRC64, MLX5DV_BLOCK_SIZE_512},
		{DIF_CSUM, MLX5DV_BLOCK_SIZE_512, true, 1, 2, 0},
	};
	static const int want[] = {EINVAL, EINVAL, EINVAL, 0};
	struct connected_pair s;

	(void)t;
	pair_open_signed(&s, NULL);
	for (int i = 0; i < 4; i++) {
		struct key_conf c = signature_conf(&dif, &other[i], 520, 0xff);

		c.conf_flags = MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR;
		c.sig_flags = MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK;
		SAME(try_configure(&s.local, 0, &c), (unsigned)want[i]);
	}
	SAME(success(&s.local, SENDS).opcode, IBV_WC_DRIVER1);
	pair_close(&s);
}

/* Both domains NULL is no signature at all. */
static void neither_domain(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, NULL, 512, 0xff);
	struct connected_pair s;

	(void)t;
	pair_open_signed(&s, NULL);
	SAME(try_configure(&s.local, 0, &c), EINVAL);
	expect_no_completion(&s.local, SENDS);
	pair_close(&s);
}

/* After a refused or abandoned configuration the key can be set up anew, or freed of signatures. */
static void after_failure(const struct test *t)
{
	static const struct domain crc = {CRC32, MLX5DV_BLOCK_SIZE_512, false, 0, 0, 0};
	struct attempt a = good_attempt();
	struct key_conf c = signature_conf(NULL, &crc, 512, 0xff);
	uint8_t want[516];
	struct connected_pair s;

	(void)t;
	open_keys(&s);
	mem_comp_mask(&a);
	SAME(try_attempt(&s, &a), EINVAL);
	fill_random(s.local.memory + LOCAL_AT, 512, 1);
	configure(&s.local, KEY_SIGNED, &c);
	transfer(&s, ROUTE_SEND, KEY_SIGNED, 516);
	reference_stream(&crc, s.local.memory + LOCAL_AT, 512, want);
	expect_only(&s.remote, REMOTE_AT, want, 516);

	ibv_wr_start(s.local.endpoint->qpx);
	endpoint_key_build(s.local.endpoint, KEY_SIGNED, &c);
	ibv_wr_abort(s.local.endpoint->qpx);
	c.conf_flags = MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR;
	c.set_signature = false;
	configure(&s.local, KEY_SIGNED, &c);
	fill_canary(&s.remote);
	transfer(&s, ROUTE_SEND, KEY_SIGNED, 512);
	expect_only(&s.remote, REMOTE_AT, want, 512);
	pair_close(&s);
}

/* More entries than the key or the request has room for. */
static void too_many_entries(const struct test *t)
{
	struct setup small = {.inline_bytes = 1};
	struct key_conf c = signature_conf(NULL, NULL, 16, 0);
	struct connected_pair s;

	(void)t;
	c.set_signature = false;
	pair_open(&s, NULL);
	key_create(&s.local, 0, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, 1);
	for (int i = 0; i < ORDER_PIECES; i++)
		c.piece[i] = c.piece[0];
	c.pieces = (uint16_t)(s.local.key[0].entries + 1);
	SAME(try_configure(&s.local, 0, &c), ENOMEM);
	c.pieces--;
	configure(&s.local, 0, &c);
	pair_close(&s);

	/* A signature takes 64 of the bytes; four entries alone fit always. */
	pair_open(&s, &small);
	if (s.local.endpoint->max_inline + 4 >= 64 + 64)
		skip("the smallest request has room for %u bytes", s.local.endpoint->max_inline);
	signature_key(&s, 0);
	c = signature_conf(&(struct domain){CRC32, MLX5DV_BLOCK_SIZE_512, false, 0, 0, 0}, NULL,
			   516, 0xff);
	SAME(try_configure(&s.local, 0, &c), ENOMEM);
	pair_close(&s);
}

/* A configuration takes up to three places of the ring; when there are none, nothing of it is
 * posted. */
static void ring_full(const struct test *t)
{
	static const struct domain mem = {CRC32, MLX5DV_BLOCK_SIZE_512, true, 0, 0, 0};
	static const struct domain wire = {DIF_CRC, MLX5DV_BLOCK_SIZE_512, true, 1, 2, 0};
	struct key_conf c = signature_conf(&mem, &wire, 516, 0xff);
	unsigned posted = 0;
	struct connected_pair s;
	int err = 0;

	(void)t;
	pair_open_signed(&s, &(struct setup){.max_send_wr = 2});
	while (posted < 1000 && !(err = try_configure(&s.local, 0, &c)))
		posted++;
	SAME(err, ENOMEM);
	for (unsigned i = 0; i < posted; i++)
		SAME(success(&s.local, SENDS).opcode, IBV_WC_DRIVER1);
	expect_no_completion(&s.local, SENDS);
	if (!posted) { /* not even one fits, which is as good */
		pair_close(&s);
		return;
	}
	c.conf_flags = MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR;
	configure(&s.local, 0, &c);
	transfer(&s, ROUTE_WRITE, 0, 0);
	pair_close(&s);
}

/* A 64-bit seed of all ones is not the 32-bit one. */
static void crc32_seed_width(const struct test *t)
{
	struct attempt a = good_attempt();
	struct connected_pair s;

	(void)t;
	open_keys(&s);
	a.crc.seed = UINT64_MAX;
	SAME(try_attempt(&s, &a), EINVAL);
	a.crc.seed = UINT32_MAX;
	a.conf.conf_flags = MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR;
	a.wr_flags |= IBV_SEND_SIGNALED;
	SAME(try_attempt(&s, &a), 0);
	SAME(success(&s.local, SENDS).opcode, IBV_WC_DRIVER1);
	pair_close(&s);
}

const struct test refusal_tests[] = {
	{"refused-without-inline", test_refusal, {85, 46}, R_INLINE},
	{"refused-unknown-conf-flags", test_refusal, {90, 46}, R_CONF_FLAGS},
	{"refused-conf-comp-mask", test_refusal, {90}, R_CONF_COMP},
	{"refused-attr-comp-mask", test_refusal, {27, 46}, R_ATTR_COMP},
	{"refused-memory-comp-mask", test_refusal, {28, 46}, R_MEM_COMP},
	{"refused-wire-comp-mask", test_refusal, {28}, R_WIRE_COMP},
	{"refused-attr-flags", test_refusal, {46}, R_ATTR_FLAGS},
	{"refused-copy-mask-of-other-type", test_refusal, {25}, R_COPY_MASK},
	{"copy-mask-needs-the-same-structure", copy_mask_structure, {25}},
	{"refused-key-without-signatures", test_refusal, {47, 103}, R_PLAIN_KEY},
	{"refused-setter-without-configure", test_refusal, {48}, R_NO_CONFIGURE},
	{"refused-access-twice", test_refusal, {82}, R_ACCESS_TWICE},
	{"refused-layout-twice", test_refusal, {82, 94}, R_LAYOUT_TWICE},
	{"refused-signature-twice", test_refusal, {82}, R_SIG_TWICE},
	{"refused-guard-seed", test_refusal, {40}, R_DIF_SEED},
	{"refused-guard-type", test_refusal, {46}, R_DIF_GUARD},
	{"refused-dif-flags", test_refusal, {46}, R_DIF_FLAGS},
	{"refused-CRC32-seed", test_refusal, {34}, R_CRC32_SEED},
	{"refused-CRC32C-seed", test_refusal, {34}, R_CRC32C_SEED},
	{"refused-CRC64-seed", test_refusal, {35}, R_CRC64_SEED},
	{"CRC32-seed-has-32-bits", crc32_seed_width, {33, 34}},
	{"refused-CRC-type", test_refusal, {46}, R_CRC_TYPE},
	{"refused-block-size", test_refusal, {46}, R_BLOCK_SIZE},
	{"refused-signature-type", test_refusal, {46}, R_SIG_TYPE},
	{"refused-access-flags", test_refusal, {92}, R_ACCESS},
	{"refused-no-domain", neither_domain, {46}},
	{"configuration-after-a-failed-one", after_failure, {49}},
	{"refused-by-a-full-ring", ring_full, {46}},
	{"refused-too-many-entries", too_many_entries, {96, 46}},
	{0},
};
