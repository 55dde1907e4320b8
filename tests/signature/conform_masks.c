// SPDX-License-Identifier: BSD-2-Clause
/* Check masks and copy masks, byte by byte. */
#include <string.h>

#include "conform.h"

#define BLOCK 512u

static struct domain domain_of(enum signature type)
{
	return (struct domain){
		.type = type,
		.size = MLX5DV_BLOCK_SIZE_512,
		.ones = true,
		.app = 0x1234,
		.ref = 0x89abcdef,
	};
}

static enum mlx5dv_mkey_err_type kind_at(enum signature type, uint32_t byte)
{
	if (!reference_is_dif(type) || byte < 2)
		return MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD;
	return byte < 4 ? MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG : MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG;
}

/* A block whose signature has one byte spoilt goes through the local key; what the check says. */
static enum mlx5dv_mkey_err_type spoilt_byte(struct connected_pair *s, enum route r,
					     enum signature type, uint32_t byte, uint8_t check_mask)
{
	struct domain d = domain_of(type);
	uint32_t unit = reference_unit(&d);
	bool gathers = route_gathers(r);
	uint8_t *in = gathers ? s->local.memory + LOCAL_AT : s->remote.memory + REMOTE_AT;
	struct key_conf c = signature_conf(gathers ? &d : NULL, gathers ? NULL : &d,
					   gathers ? unit : BLOCK, check_mask);

	configure(&s->local, 0, &c);
	fill_random(in, BLOCK, byte + 1);
	reference_signature(&d, 0, in, in + BLOCK);
	in[BLOCK + byte] ^= 0x04;
	transfer(s, r, 0, gathers ? BLOCK : unit);
	return check(&s->local, 0).err_type;
}

static void every_check_bit(const struct test *t)
{
	struct connected_pair s;

	pair_open_signed(&s, NULL);
	for (enum route r = ROUTE_SEND; r <= ROUTE_RECEIVE; r += ROUTE_RECEIVE - ROUTE_SEND) {
		for (enum signature type = DIF_CRC; type < SIGNATURES; type++) {
			if (t->arg && type != t->arg)
				continue;
			for (uint32_t i = 0; i < reference_bytes(type); i++) {
				uint8_t bit = (uint8_t)(0x80u >> i);

				SAME(spoilt_byte(&s, r, type, i, bit), kind_at(type, i));
				SAME(spoilt_byte(&s, r, type, i, (uint8_t)~bit),
				     MLX5DV_MKEY_NO_ERR);
				SAME(spoilt_byte(&s, r, type, i, 0), MLX5DV_MKEY_NO_ERR);
			}
		}
	}
	pair_close(&s);
}

/* The last four bits mean nothing for a CRC of four bytes. */
static void meaningless_check_bits(const struct test *t)
{
	struct connected_pair s;

	(void)t;
	pair_open_signed(&s, NULL);
	for (enum signature type = CRC32; type <= CRC32C; type++) {
		for (uint32_t i = 0; i < 4; i++) {
			SAME(spoilt_byte(&s, ROUTE_SEND, type, i, 0x0f), MLX5DV_MKEY_NO_ERR);
			SAME(spoilt_byte(&s, ROUTE_SEND, type, i, 0xff),
			     MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD);
		}
	}
	pair_close(&s);
}

/* Half of the application tag is checked, the other half may be anything. */
static void half_a_tag(const struct test *t)
{
	struct connected_pair s;

	(void)t;
	pair_open_signed(&s, NULL);
	for (int high = 0; high < 2; high++) {
		uint8_t mask = high ? 0x20 : 0x10;

		SAME(spoilt_byte(&s, ROUTE_SEND, DIF_CRC, high ? 2 : 3, mask),
		     MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG);
		SAME(spoilt_byte(&s, ROUTE_SEND, DIF_CRC, high ? 3 : 2, mask), MLX5DV_MKEY_NO_ERR);
		/* Guard and reference tag as well. */
		SAME(spoilt_byte(&s, ROUTE_SEND, DIF_CRC, high ? 3 : 2,
				 mask | MLX5DV_SIG_MASK_T10DIF_GUARD |
					 MLX5DV_SIG_MASK_T10DIF_REFTAG),
		     MLX5DV_MKEY_NO_ERR);
	}
	pair_close(&s);
}

/* Two blocks with such signatures go from one domain to the other; which bytes of the signature
 * come from the input?  As a mask. */
struct copying {
	struct domain in;
	struct domain out;
	bool given; /* the mask, with MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK */
	uint8_t mask;
};

static void expect_copied(struct connected_pair *s, enum route r, const struct copying *c,
			  uint8_t want)
{
	bool gathers = route_gathers(r);
	uint32_t unit = reference_unit(&c->in);
	uint8_t *in = gathers ? s->local.memory + LOCAL_AT : s->remote.memory + REMOTE_AT;
	const uint8_t *out = gathers ? s->remote.memory + REMOTE_AT : s->local.memory + LOCAL_AT;
	struct key_conf conf =
		signature_conf(gathers ? &c->in : &c->out, gathers ? &c->out : &c->in, 2 * unit, 0);

	conf.sig_flags = c->given ? MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK : 0;
	conf.copy_mask = c->mask;
	configure(&s->local, 0, &conf);
	fill_random(in, 2 * unit, 77);
	for (uint32_t b = 0; b < 2; b++) {
		uint8_t made[8];

		/* Every byte differs from what would be made. */
		reference_signature(&c->out, b, in + b * unit, made);
		for (uint32_t i = 0; i < unit - BLOCK; i++)
			in[b * unit + BLOCK + i] = made[i] ^ 0xff;
	}
	transfer(s, r, 0, 2 * unit);
	for (uint32_t b = 0; b < 2; b++) {
		uint8_t made[8];

		EXPECT(!memcmp(out + b * unit, in + b * unit, BLOCK));
		reference_signature(&c->out, b, in + b * unit, made);
		for (uint32_t i = 0; i < unit - BLOCK; i++) {
			uint8_t got = out[b * unit + BLOCK + i];
			bool copied = want & 0x80u >> i;

			if (got != (uint8_t)(copied ? made[i] ^ 0xff : made[i]))
				fail("%s, %s: byte %u of signature %u is %02x: %s", route_name(r),
				     reference_name(c->in.type), i, b, got,
				     copied ? "not copied" : "not made");
		}
	}
	expect_no_error(&s->local, 0);
}

/* In both directions. */
static void both_ways(struct connected_pair *s, const struct copying *c, uint8_t want)
{
	expect_copied(s, ROUTE_WRITE, c, want);
	expect_copied(s, ROUTE_READ, c, want);
}

static void copied_by_default(const struct test *t)
{
	struct connected_pair s;

	pair_open_signed(&s, NULL);
	for (enum signature type = DIF_CRC; type < SIGNATURES; type++) {
		struct copying c = {domain_of(type), domain_of(type)};

		/* A mask that nobody asked to apply (statement 19). */
		c.mask = t->arg ? 0x5a : 0;
		both_ways(&s, &c, reference_mask(type));
	}
	pair_close(&s);
}

static void dif_parts(const struct test *t)
{
	struct copying c = {domain_of(DIF_CRC), domain_of(DIF_CRC)};
	struct connected_pair s;

	(void)t;
	pair_open_signed(&s, NULL);
	c.out.app++;
	both_ways(&s, &c, 0xcf);
	c.out.ref++;
	both_ways(&s, &c, 0xc0);
	c.out.app--;
	both_ways(&s, &c, 0xf0);
	c.out.ones = false;
	both_ways(&s, &c, 0x30);
	c.out.ref--;
	both_ways(&s, &c, 0x3f);
	c.out.ones = true;
	both_ways(&s, &c, 0xff);
	c.out.type = DIF_CSUM;
	both_ways(&s, &c, 0x3f);
	pair_close(&s);
}

static void given_masks(const struct test *t)
{
	struct connected_pair s;

	(void)t;
	pair_open_signed(&s, NULL);
	for (enum signature type = DIF_CRC; type < SIGNATURES; type++) {
		struct copying c = {.in = domain_of(type), .out = domain_of(type), .given = true};
		uint8_t all = reference_mask(type);

		for (uint32_t i = 0; i < 8; i++) {
			c.mask = (uint8_t)(0x80u >> i);
			both_ways(&s, &c, c.mask & all);
			c.mask = (uint8_t)~c.mask;
			both_ways(&s, &c, c.mask & all);
		}
		c.mask = 0;
		both_ways(&s, &c, 0);
		c.mask = 0xff;
		both_ways(&s, &c, all);
	}
	pair_close(&s);
}

/* Half of the tag from the input, half from the output's configuration, as vendor tests have it. */
static void mixed_tag(const struct test *t)
{
	struct domain mem = {DIF_CRC, MLX5DV_BLOCK_SIZE_512, false, 0x0078, 1, 0};
	struct domain wire = {DIF_CRC, MLX5DV_BLOCK_SIZE_512, false, 0x56ff, 1, 0};
	struct key_conf c = signature_conf(&mem, &wire, 520, 0xdf);
	struct connected_pair s;

	(void)t;
	pair_open_signed(&s, NULL);
	c.sig_flags = MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK;
	c.copy_mask = 0x10 | MLX5DV_SIG_MASK_T10DIF_GUARD | MLX5DV_SIG_MASK_T10DIF_REFTAG;
	configure(&s.local, 0, &c);
	fill_random(s.local.memory + LOCAL_AT, 512, 3);
	reference_signature(&mem, 0, s.local.memory + LOCAL_AT, s.local.memory + LOCAL_AT + 512);
	transfer(&s, ROUTE_SEND, 0, 520);
	SAME(s.remote.memory[REMOTE_AT + 514], 0x56);
	SAME(s.remote.memory[REMOTE_AT + 515], 0x78);
	expect_no_error(&s.local, 0);
	pair_close(&s);
}

const struct test mask_tests[] = {
	{"each-bit-of-the-check-mask", every_check_bit, {12, 13}},
	{"check-mask-of-T10-DIF", every_check_bit, {15}, DIF_CRC},
	{"check-mask-of-CRC32", every_check_bit, {16}, CRC32},
	{"check-mask-of-CRC32C", every_check_bit, {16}, CRC32C},
	{"check-mask-of-CRC64", every_check_bit, {17}, CRC64},
	{"check-bits-past-the-signature", meaningless_check_bits, {14}},
	{"half-of-an-application-tag", half_a_tag, {18}},
	{"copied-by-default", copied_by_default, {20, 23}},
	{"copy-mask-without-its-flag", copied_by_default, {19}, 1},
	{"parts-of-T10-DIF-copied-one-by-one", dif_parts, {21}},
	{"each-bit-of-the-copy-mask", given_masks, {22, 23, 24, 26}},
	{"application-tag-of-two-origins", mixed_tag, {22, 26}},
	{0},
};
