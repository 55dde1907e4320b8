// SPDX-License-Identifier: BSD-2-Clause
/* Memory layouts of keys: lists, interleaved ones, keys in keys, with and without signatures. */
#include <string.h>

#include "conform.h"

static uint8_t data[ROOM];
static uint8_t framed[ROOM];

static void open_plain(struct connected_pair *s, const struct setup *setup)
{
	pair_open(s, setup);
	key_create(&s->local, 0, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, ORDER_PIECES);
	fill_random(data, sizeof(data), options.seed + 3);
}

static struct key_conf layout_of(enum layout kind, uint32_t repeat)
{
	return (struct key_conf){
		.set_access = true,
		.access = ALL_ACCESS,
		.layout = kind,
		.repeat = repeat,
		.wr_id = 300,
	};
}

static void add_piece(struct key_conf *c, uint32_t at, uint32_t bytes, uint32_t skip)
{
	c->piece[c->pieces++] = (struct piece){at, bytes, skip, ORDER_WHOLE};
}

/* Where byte i of the key is in memory. */
static uint32_t place_of_byte(const struct key_conf *c, uint32_t i)
{
	uint32_t cycle = 0;
	uint32_t round = 0;

	if (c->layout == LAYOUT_INTERLEAVED) {
		for (int p = 0; p < c->pieces; p++)
			cycle += c->piece[p].bytes;
		round = i / cycle;
		i %= cycle;
	}
	for (int p = 0;; p++) {
		const struct piece *e = &c->piece[p];

		if (i < e->bytes)
			return e->at + i + round * (e->bytes + e->skip);
		i -= e->bytes;
	}
}

static uint32_t bytes_of(const struct key_conf *c)
{
	uint32_t sum = 0;

	for (int p = 0; p < c->pieces; p++)
		sum += c->piece[p].bytes;
	return c->layout == LAYOUT_INTERLEAVED ? sum * c->repeat : sum;
}

/* The bytes go through the layout in each way, and nowhere else. */
static void through_key(struct connected_pair *s, const struct key_conf *c, const uint8_t *memory,
			uint32_t memory_bytes, const uint8_t *wire, uint32_t wire_bytes)
{
	static uint8_t image[ORDER_MEMORY];

	memset(image, CANARY, sizeof(image));
	for (uint32_t i = 0; i < memory_bytes; i++)
		image[place_of_byte(c, i)] = memory[i];
	for (enum route r = 0; r < ROUTES; r++) {
		fill_canary(&s->local);
		fill_canary(&s->remote);
		if (route_gathers(r))
			memcpy(s->local.memory, image, sizeof(image));
		else
			memcpy(s->remote.memory + REMOTE_AT, wire, wire_bytes);
		transfer(s, r, 0, wire_bytes);
		if (route_gathers(r))
			expect_only(&s->remote, REMOTE_AT, wire, wire_bytes);
		else
			expect_only(&s->local, 0, image, sizeof(image));
	}
}

static void plain_through(struct connected_pair *s, const struct key_conf *c)
{
	uint32_t n = bytes_of(c);

	configure(&s->local, 0, c);
	through_key(s, c, data, n, data, n);
}

/* The first 64 bytes to one place, the next 4096 to another. */
static void list_example(const struct test *t)
{
	struct key_conf c = layout_of(LAYOUT_LIST, 0);
	struct connected_pair s;

	(void)t;
	open_plain(&s, NULL);
	add_piece(&c, 20000, 64, 0);
	add_piece(&c, 5000, 4096, 0);
	plain_through(&s, &c);
	pair_close(&s);
}

/* Twice 512 bytes that lie 516 apart, each followed by 8 bytes from elsewhere. */
static void interleaved_example(const struct test *t)
{
	struct key_conf c = layout_of(LAYOUT_INTERLEAVED, 2);
	struct connected_pair s;

	(void)t;
	open_plain(&s, NULL);
	add_piece(&c, 1000, 512, 4);
	add_piece(&c, 9000, 8, 0);
	plain_through(&s, &c);
	SAME(place_of_byte(&c, 520), 1516);
	SAME(place_of_byte(&c, 520 + 512), 9008);
	pair_close(&s);
}

static void test_interleavings(const struct test *t)
{
	struct connected_pair s;

	(void)t;
	open_plain(&s, NULL);
	for (uint32_t bytes = 1; bytes < 4096; bytes = bytes * 3 + 1) {
		struct key_conf c = layout_of(LAYOUT_INTERLEAVED, 20000 / (bytes + 8));

		if (c.repeat > 300)
			c.repeat = 300;
		add_piece(&c, 64, bytes, 5);
		add_piece(&c, 60000, 8, 0);
		plain_through(&s, &c);
		c.pieces = 0;
		c.repeat = c.repeat / 2 + 1;
		add_piece(&c, 64, bytes, 0);
		add_piece(&c, 60001, 7, 3);
		add_piece(&c, 90000, 13, 100);
		plain_through(&s, &c);
	}
	pair_close(&s);
}

/* The default request takes 4 entries of a list and 3 interleaved ones. */
static void default_entries(const struct test *t)
{
	struct key_conf list = layout_of(LAYOUT_LIST, 0);
	struct key_conf interleaved = layout_of(LAYOUT_INTERLEAVED, 3);
	struct connected_pair s;

	(void)t;
	/* One byte: nobody asked for more than the default. */
	open_plain(&s, &(struct setup){.inline_bytes = 1});
	for (uint32_t i = 0; i < 4; i++)
		add_piece(&list, 3000 * (4 - i), 100 + i, 0);
	for (uint32_t i = 0; i < 3; i++)
		add_piece(&interleaved, 3000 * (3 - i), 100 + i, 1);
	plain_through(&s, &list);
	plain_through(&s, &interleaved);
	pair_close(&s);

	/* More by max_inline_data. */
	open_plain(&s, NULL);
	for (uint32_t i = 4; i < ORDER_PIECES; i++)
		add_piece(&list, 16000 + 2000 * (ORDER_PIECES - i), 500 + i, 0);
	plain_through(&s, &list);
	for (uint32_t i = 3; i < ORDER_PIECES - 1; i++)
		add_piece(&interleaved, 10000 + 2000 * (ORDER_PIECES - i), 300 + i, i % 7);
	plain_through(&s, &interleaved);
	pair_close(&s);
}

/* A key for n interleaved pieces needs n + 1 entries. */
static void one_entry_more(const struct test *t)
{
	struct key_conf c = layout_of(LAYOUT_INTERLEAVED, 4);
	uint16_t pieces;
	struct connected_pair s;

	(void)t;
	pair_open(&s, NULL);
	fill_random(data, sizeof(data), 1);
	key_create(&s.local, 0, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, 8);
	pieces = (uint16_t)(s.local.key[0].entries - 1);
	EXPECT(pieces >= 7 && pieces <= ORDER_PIECES);
	for (uint32_t i = 0; i < pieces; i++)
		add_piece(&c, 4000 * i + 100, 99, i);
	plain_through(&s, &c);
	pair_close(&s);
}

/* A layout takes the place of the one before it, of either kind. */
static void test_replaced(const struct test *t)
{
	struct key_conf list = layout_of(LAYOUT_LIST, 0);
	struct key_conf interleaved = layout_of(LAYOUT_INTERLEAVED, 10);
	struct key_conf other = layout_of(LAYOUT_LIST, 0);
	struct connected_pair s;

	(void)t;
	open_plain(&s, NULL);
	add_piece(&list, 3000, 1000, 0);
	add_piece(&list, 1000, 1000, 0);
	add_piece(&interleaved, 100, 64, 64);
	add_piece(&other, 50000, 3000, 0);
	plain_through(&s, &list);
	plain_through(&s, &interleaved);
	plain_through(&s, &other);
	plain_through(&s, &list);
	pair_close(&s);
}

/* Data and signatures apart in memory, and every border of pieces at an odd place. */
static void with_signatures(const struct test *t)
{
	static const struct domain mem = {DIF_CRC,    MLX5DV_BLOCK_SIZE_512,	       true, 0x77,
					  0xfffffff0, MLX5DV_SIG_T10DIF_FLAG_REF_REMAP};
	static const struct domain wire = {CRC32C, MLX5DV_BLOCK_SIZE_4096, false, 0, 0, 0};
	struct key_conf c = layout_of(t->arg ? LAYOUT_INTERLEAVED : LAYOUT_LIST, 24);
	struct connected_pair s;
	uint32_t n;

	pair_open_signed(&s, &(struct setup){.mtu = IBV_MTU_256});
	fill_random(data, sizeof(data), 5);
	if (t->arg) {
		add_piece(&c, 1, 512, 5); /* not aligned either */
		add_piece(&c, 100001, 8, 0);
	} else {
		static const uint32_t borders[] = {1,	 511,  3,    5,	   509,	 515,
						   1043, 2999, 1000, 1301, 2000, 2593};

		for (uint32_t i = 0; i < 12; i++)
			add_piece(&c, 40000 - 3001 * i, borders[i], 0);
	}
	c.set_signature = true;
	c.check_mask = 0xff;
	c.mem = mem;
	n = bytes_of(&c);
	SAME(n, 24 * 520);
	SAME(reference_stream(&mem, data, 24 * 512, framed), n);
	configure(&s.local, 0, &c);
	through_key(&s, &c, framed, n, data, 24 * 512);
	expect_no_error(&s.local, 0);

	c.wire = wire;
	configure(&s.local, 0, &c);
	SAME(reference_stream(&wire, data, 24 * 512, framed + n), 3 * 4100);
	through_key(&s, &c, framed, n, framed + n, 3 * 4100);
	expect_no_error(&s.local, 0);

	/* It is really checked: the last block's reference tag. */
	memset(&c.wire, 0, sizeof(c.wire));
	configure(&s.local, 0, &c);
	for (uint32_t i = 0; i < n; i++)
		s.local.memory[place_of_byte(&c, i)] = framed[i];
	s.local.memory[place_of_byte(&c, n - 1)] ^= 1;
	transfer(&s, ROUTE_SEND, 0, 24 * 512);
	expect_error(&s.local, 0,
		     (struct expected_error){
			     .type = MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG,
			     .calculated = 0xfffffff0u + 23,
			     .found = (uint32_t)(0xfffffff0u + 23) ^ 1,
			     .block = 23,
			     .unit = 520,
		     });
	pair_close(&s);
}

/* A key with signatures over a key without, which is itself in pieces. */
static void key_in_key(const struct test *t)
{
	static const struct domain wire = {CRC64, MLX5DV_BLOCK_SIZE_512, true, 0, 0, 0};
	struct key_conf inner = layout_of(LAYOUT_INTERLEAVED, 16);
	struct key_conf outer = layout_of(LAYOUT_LIST, 0);
	struct connected_pair s;

	(void)t;
	pair_open(&s, NULL);
	fill_random(data, sizeof(data), 8);
	signature_key(&s, 0);
	key_create(&s.local, 1, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, 4);
	add_piece(&inner, 256, 128, 128);
	configure(&s.local, 1, &inner);
	outer.piece[outer.pieces++] = (struct piece){.at = 512, .bytes = 1024, .key = 1};
	outer.piece[outer.pieces++] = (struct piece){.at = 0, .bytes = 512, .key = 1};
	outer.set_signature = true;
	outer.check_mask = 0xff;
	outer.wire = wire;
	configure(&s.local, 0, &outer);
	for (uint32_t i = 0; i < 1536; i++)
		s.local.memory[place_of_byte(&inner, i < 1024 ? 512 + i : i - 1024)] = data[i];
	reference_stream(&wire, data, 1536, framed);
	transfer(&s, ROUTE_SEND, 0, 3 * 520);
	expect_only(&s.remote, REMOTE_AT, framed, 3 * 520);
	pair_close(&s);
}

/* Keys by mlx5dv_wr_mr_list and mlx5dv_wr_mr_interleaved. */
static void old_builders(const struct test *t)
{
	struct key_conf c = layout_of(t->arg ? LAYOUT_INTERLEAVED : LAYOUT_LIST, 3);
	struct mlx5dv_mr_interleaved interleaved[2];
	struct ibv_sge list[2];
	struct connected_pair s;
	struct endpoint *d;

	open_plain(&s, NULL);
	d = s.local.endpoint;
	for (int i = 0; i < 2; i++) {
		add_piece(&c, 1000 + 5000 * (uint32_t)i, 700, 9);
		list[i] = endpoint_sge(d, ORDER_WHOLE, c.piece[i].at, 700);
		interleaved[i] = (struct mlx5dv_mr_interleaved){list[i].addr, 700, 9, list[i].lkey};
	}
	ibv_wr_start(d->qpx);
	d->qpx->wr_id = 5;
	d->qpx->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
	if (t->arg)
		mlx5dv_wr_mr_interleaved(d->mqpx, d->key[0], ALL_ACCESS, 3, 2, interleaved);
	else
		mlx5dv_wr_mr_list(d->mqpx, d->key[0], ALL_ACCESS, 2, list);
	SAME(ibv_wr_complete(d->qpx), 0);
	SAME(success(&s.local, SENDS).opcode, IBV_WC_DRIVER1);
	through_key(&s, &c, data, bytes_of(&c), data, bytes_of(&c));
	pair_close(&s);
}

const struct test layout_tests[] = {
	{"list-of-the-manual-page", list_example, {99, 95}},
	{"interleaving-of-the-manual-page", interleaved_example, {100, 98}},
	{"interleaved-layouts", test_interleavings, {98}},
	{"default-number-of-entries", default_entries, {96}},
	{"one-entry-more-for-interleaving", one_entry_more, {97}},
	{"layout-replaced", test_replaced, {94, 83}},
	{"signatures-over-a-list", with_signatures, {8}, 0},
	{"signatures-over-an-interleaved-layout", with_signatures, {8}, 1},
	{"signatures-over-a-key-of-keys", key_in_key, {8}},
	{"list-by-mr_list", old_builders, {108}, 0},
	{"interleaving-by-mr_interleaved", old_builders, {108}, 1},
	{0},
};
