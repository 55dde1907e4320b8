// SPDX-License-Identifier: BSD-2-Clause
/* Decoding BSFs: the bytes that libmlx5 writes, all combinations, and each reason for a refusal. */
#include <string.h>

#include "adapter/sig/sig.h"
#include "check.h"
#include "prm/bsf.h"

/* libmlx5: wire T10-DIF with CRC seed ffff, tags abcd and 01234567, REF_REMAP, 512 bytes. */
static const uint8_t wire_t10dif[BSF_BYTES] = {
	0x80, 0xff, 0x01, 0x00, 0xff, 0xff,	   0xff, 0xff, 0x00, 0x00, 0x00,
	0x12, 0x00, 0x00, 0x00, 0x00, [32] = 0xc0, 0x00, 0xab, 0xcd, 0x01, 0x23,
	0x45, 0x67, 0x01, 0x88, 0x00, 0x00,	   0x00, 0x40, 0xff, 0xff,
};

static void bytes_of_libmlx5(void)
{
	struct sig_config c;
	const struct sig_domain *w = &c.side[SIG_WIRE];

	CHECK(sig_config_decode(wire_t10dif, BSF_BYTES, &c) == SIG_ACCEPTED);
	CHECK(w->type == SIG_T10DIF_CRC && w->block == 512 && w->seed_ones);
	CHECK(w->app_tag == 0xabcd && w->ref_tag == 0x01234567 && w->app_mask == 0xffff);
	CHECK(w->ref_increment && w->escape == SIG_ESCAPE_NONE && w->psv == 0x12);
	CHECK(c.side[SIG_MEMORY].type == SIG_NONE && !c.side[SIG_MEMORY].block);
	CHECK(c.check_mask == 0xff && !c.same_structure && !c.copy_mask);
	CHECK(c.data_bytes == UINT32_MAX);
	CHECK(sig_transient(w) == 0xffffabcd01234567);
}

static void every_field(void)
{
	/* A value goes in and comes out, and no other field sees it. */
	for (int f = 0; f < BSF_FIELDS; f++) {
		uint8_t bsf[BSF_BYTES] = {0};

		bsf_set(bsf, (enum bsf_field)f, UINT32_MAX);
		for (int g = 0; g < BSF_FIELDS; g++) {
			bool shared = (f == BSF_COPY_MASK && g == BSF_WIRE_BLOCK) ||
				      (g == BSF_COPY_MASK && f == BSF_WIRE_BLOCK);

			CHECK(!bsf_get(bsf, (enum bsf_field)g) == (f != g && !shared));
		}
		bsf_set(bsf, (enum bsf_field)f, 0);
		for (size_t i = 0; i < BSF_BYTES; i++)
			CHECK(!bsf[i]);
	}
	for (int f = 0; f < 2 * BSF_DOMAIN_FIELDS; f++) {
		uint8_t bsf[BSF_BYTES] = {0};

		bsf_domain_set(bsf, f & 1, (enum bsf_domain_field)(f / 2), UINT32_MAX);
		for (int g = 0; g < 2 * BSF_DOMAIN_FIELDS; g++)
			CHECK(!bsf_domain_get(bsf, g & 1, (enum bsf_domain_field)(g / 2)) ==
			      (f != g));
	}
}

static const struct {
	uint32_t selector;
	uint32_t bytes;
} blocks[] = {
	{BSF_BLOCK_512, 512},	{BSF_BLOCK_520, 520},	 {BSF_BLOCK_4096, 4096},
	{BSF_BLOCK_4160, 4160}, {BSF_BLOCK_1M, 1048576}, {BSF_BLOCK_4048, 4048},
};

/* A number below kinds() to a domain's part of a BSF, and what it must become. */
enum { KINDS = 1 + 3 * 2 + 2 * 2 * 2 * 4 };

static void encode_domain(uint8_t *bsf, enum bsf_domain at, unsigned kind, struct sig_domain *d)
{
	static const uint32_t formats[] = {BSF_FORMAT_CRC32, BSF_FORMAT_CRC32C,
					   BSF_FORMAT_CRC64_XP10};
	uint32_t escapes;

	memset(d, 0, sizeof(*d));
	if (!kind--)
		return;
	d->psv = at == BSF_WIRE ? 0xabcdef : 0x123456;
	bsf_domain_set(bsf, at, BSF_PSV, d->psv);
	if (kind < 6) {
		d->type = (enum sig_type)(SIG_CRC32 + kind / 2);
		d->seed_ones = kind % 2;
		bsf_domain_set(bsf, at, BSF_FORMAT,
			       formats[kind / 2] | BSF_FORMAT_REPEAT |
				       (d->seed_ones ? 0 : BSF_FORMAT_SEED_ZERO));
		return;
	}
	kind -= 6;
	d->type = kind & 1 ? SIG_T10DIF_CRC : SIG_T10DIF_CSUM;
	d->seed_ones = kind >> 1 & 1;
	d->ref_increment = kind >> 2 & 1;
	escapes = kind >> 3;
	d->escape = escapes & 2 ? SIG_ESCAPE_APP_REF : escapes & 1 ? SIG_ESCAPE_APP : 0;
	d->app_tag = (uint16_t)(0x1234 + at);
	d->ref_tag = 0xfedcba98 + at;
	d->app_mask = (uint16_t)(0xf00f - at);
	bsf_domain_set(bsf, at, BSF_INL_VALID, 1);
	bsf_domain_set(bsf, at, BSF_INL_REPEAT, 1);
	bsf_domain_set(bsf, at, BSF_INL_GUARD, kind & 1 ? BSF_GUARD_CRC : BSF_GUARD_CSUM);
	bsf_domain_set(bsf, at, BSF_INL_SEED_ONES, d->seed_ones);
	bsf_domain_set(bsf, at, BSF_INL_REF_INCREMENT, d->ref_increment);
	bsf_domain_set(bsf, at, BSF_INL_APP_ESCAPE, escapes & 1);
	bsf_domain_set(bsf, at, BSF_INL_APP_REF_ESCAPE, escapes >> 1);
	bsf_domain_set(bsf, at, BSF_INL_APP_TAG, d->app_tag);
	bsf_domain_set(bsf, at, BSF_INL_REF_TAG, d->ref_tag);
	bsf_domain_set(bsf, at, BSF_INL_APP_MASK, d->app_mask);
}

static bool same_domain(const struct sig_domain *a, const struct sig_domain *b)
{
	return a->type == b->type && a->block == b->block && a->seed_ones == b->seed_ones &&
	       a->ref_increment == b->ref_increment && a->escape == b->escape &&
	       a->app_tag == b->app_tag && a->app_mask == b->app_mask && a->ref_tag == b->ref_tag &&
	       a->psv == b->psv;
}

static bool types_alike(enum sig_type a, enum sig_type b)
{
	bool t10dif_a = a == SIG_T10DIF_CRC || a == SIG_T10DIF_CSUM;
	bool t10dif_b = b == SIG_T10DIF_CRC || b == SIG_T10DIF_CSUM;

	return a != SIG_NONE && (a == b || (t10dif_a && t10dif_b));
}

static void all_pairs(void)
{
	for (unsigned kinds = 0; kinds < KINDS * KINDS; kinds++)
		for (size_t b = 0; b < array_size(blocks) * array_size(blocks); b++) {
			uint8_t bsf[BSF_BYTES] = {0};
			struct sig_domain m;
			struct sig_domain w;
			struct sig_config c;

			bsf_set(bsf, BSF_SIZE, BSF_SIZE_INLINE);
			bsf_set(bsf, BSF_CHECK_MASK, 0x5a);
			bsf_set(bsf, BSF_RAW_DATA_BYTES, 77);
			encode_domain(bsf, BSF_MEMORY, kinds / KINDS, &m);
			encode_domain(bsf, BSF_WIRE, kinds % KINDS, &w);
			if (m.type)
				m.block = blocks[b / array_size(blocks)].bytes;
			if (w.type)
				w.block = blocks[b % array_size(blocks)].bytes;
			bsf_set(bsf, BSF_MEMORY_BLOCK,
				m.type ? blocks[b / array_size(blocks)].selector : 0);
			bsf_set(bsf, BSF_WIRE_BLOCK,
				w.type ? blocks[b % array_size(blocks)].selector : 0);
			CHECK(sig_config_decode(bsf, BSF_BYTES, &c) == SIG_ACCEPTED);
			CHECK(same_domain(&c.side[SIG_MEMORY], &m));
			CHECK(same_domain(&c.side[SIG_WIRE], &w));
			CHECK(c.check_mask == 0x5a && c.data_bytes == 77);
			CHECK(!c.same_structure && !c.copy_mask);

			/* The wire's size is the memory's then, and its place is the mask. */
			bsf_set(bsf, BSF_SAME_STRUCTURE, 1);
			bsf_set(bsf, BSF_COPY_MASK, 0xcf);
			if (!types_alike(m.type, w.type)) {
				CHECK(sig_config_decode(bsf, BSF_BYTES, &c) ==
				      SIG_REFUSED_STRUCTURE);
				continue;
			}
			w.block = m.block;
			CHECK(sig_config_decode(bsf, BSF_BYTES, &c) == SIG_ACCEPTED);
			CHECK(same_domain(&c.side[SIG_WIRE], &w));
			CHECK(c.same_structure && c.copy_mask == 0xcf);
		}
}

static enum sig_refusal config_with(enum bsf_field f, uint32_t value)
{
	uint8_t bsf[BSF_BYTES];
	struct sig_config c;

	memcpy(bsf, wire_t10dif, sizeof(bsf));
	bsf_set(bsf, f, value);
	return sig_config_decode(bsf, BSF_BYTES, &c);
}

static enum sig_refusal with_domain(enum bsf_domain d, enum bsf_domain_field f, uint32_t value)
{
	uint8_t bsf[BSF_BYTES];
	struct sig_config c;

	memcpy(bsf, wire_t10dif, sizeof(bsf));
	bsf_domain_set(bsf, d, f, value);
	return sig_config_decode(bsf, BSF_BYTES, &c);
}

static void test_refusals(void)
{
	struct sig_config c;
	uint8_t bsf[BSF_BYTES] = {0};

	for (size_t n = 0; n < BSF_BYTES; n++)
		CHECK(sig_config_decode(wire_t10dif, n, &c) == SIG_REFUSED_TRUNCATED);
	CHECK(config_with(BSF_TYPE, BSF_TYPE_CRYPTO) == SIG_REFUSED_CRYPTO);
	CHECK(config_with(BSF_SIZE, BSF_SIZE_WITH_CRYPTO) == SIG_REFUSED_CRYPTO);
	CHECK(config_with(BSF_WIRE_BLOCK, 0) == SIG_REFUSED_BLOCK_SIZE);
	CHECK(config_with(BSF_WIRE_BLOCK, 7) == SIG_REFUSED_BLOCK_SIZE);
	CHECK(config_with(BSF_WIRE_BLOCK, 255) == SIG_REFUSED_BLOCK_SIZE);
	CHECK(config_with(BSF_MEMORY_BLOCK, BSF_BLOCK_512) == SIG_REFUSED_BLOCK_SIZE);
	CHECK(config_with(BSF_SAME_STRUCTURE, 1) == SIG_REFUSED_STRUCTURE);
	CHECK(with_domain(BSF_WIRE, BSF_INL_GUARD, 0) == SIG_REFUSED_GUARD);
	CHECK(with_domain(BSF_WIRE, BSF_INL_GUARD, 3) == SIG_REFUSED_GUARD);
	CHECK(with_domain(BSF_WIRE, BSF_INL_REPEAT, 0) == SIG_REFUSED_ONCE);
	CHECK(with_domain(BSF_WIRE, BSF_INL_INVERT, 2) == SIG_REFUSED_INVERTED);
	CHECK(with_domain(BSF_WIRE, BSF_FORMAT, 0x22) == SIG_REFUSED_AMBIGUOUS);
	CHECK(with_domain(BSF_WIRE, BSF_INL_VALID, 0) == SIG_REFUSED_BLOCK_SIZE);
	CHECK(with_domain(BSF_MEMORY, BSF_FORMAT, 0x22) == SIG_REFUSED_BLOCK_SIZE);
	CHECK(with_domain(BSF_MEMORY, BSF_FORMAT, 0x20) == SIG_REFUSED_ONCE);
	CHECK(with_domain(BSF_MEMORY, BSF_FORMAT, 0x32) == SIG_REFUSED_FORMAT);
	CHECK(with_domain(BSF_MEMORY, BSF_FORMAT, 0xff) == SIG_REFUSED_FORMAT);
	/* Without the refresh bit, as not everybody sets it. */
	CHECK(with_domain(BSF_WIRE, BSF_INL_REFRESH, 0) == SIG_ACCEPTED);

	/* A CRC needs the basic part alone; the rest is then not looked at. */
	bsf_set(bsf, BSF_SIZE, BSF_SIZE_BASIC);
	bsf_set(bsf, BSF_MEMORY_BLOCK, BSF_BLOCK_4096);
	bsf_domain_set(bsf, BSF_MEMORY, BSF_FORMAT, 0x42);
	CHECK(sig_config_decode(bsf, 16, &c) == SIG_ACCEPTED);
	CHECK(c.side[SIG_MEMORY].type == SIG_CRC32C && c.side[SIG_MEMORY].seed_ones);
	CHECK(sig_config_decode(bsf, 15, &c) == SIG_REFUSED_TRUNCATED);

	for (int r = 0; r < SIG_REFUSALS; r++)
		CHECK(sig_refusal_name((enum sig_refusal)r)[0] != '?');
	CHECK(sig_refusal_name(SIG_REFUSALS)[0] == '?');
}

/* As SPDK writes it: a CRC32C over 77 bytes, of which the wire's stream ends in the signature. */
static void transaction_bsf(uint8_t *bsf, enum bsf_domain at)
{
	memset(bsf, 0, BSF_BYTES);
	bsf_set(bsf, BSF_SIZE, BSF_SIZE_EXTENDED);
	bsf_set(bsf, BSF_CHECK_MASK, 0xff);
	bsf_set(bsf, BSF_RAW_DATA_BYTES, 77);
	bsf_domain_set(bsf, at, BSF_TRANSACTION_INIT, 1);
	bsf_domain_set(bsf, at, BSF_TRANSACTION_CHECK_GEN, 1);
	bsf_domain_set(bsf, at, BSF_TRANSACTION_FORMAT, 0x40);
	bsf_domain_set(bsf, at, BSF_TRANSACTION_PSV, 0x123456);
}

static void test_transaction(void)
{
	uint8_t bsf[BSF_BYTES];
	struct sig_config c;

	transaction_bsf(bsf, BSF_WIRE);
	/* where SPDK's constants are */
	CHECK(bsf[0] == 0x40 && bsf[16] == 0x30 && bsf[24] == 0x40 && bsf[25] == 0x12);
	transaction_bsf(bsf, BSF_MEMORY);
	CHECK(bsf[16] == 0x03 && !bsf[24] && bsf[28] == 0x40 && bsf[31] == 0x56);

	for (unsigned i = 0; i < 16; i++) {
		enum bsf_domain at = i & 1 ? BSF_MEMORY : BSF_WIRE;
		const struct sig_domain *d = &c.side[i & 1 ? SIG_MEMORY : SIG_WIRE];

		transaction_bsf(bsf, at);
		bsf_domain_set(bsf, at, BSF_TRANSACTION_INIT, !!(i & 2));
		bsf_domain_set(bsf, at, BSF_TRANSACTION_CHECK_GEN, !!(i & 4));
		bsf_domain_set(bsf, at, BSF_TRANSACTION_FORMAT, i & 8 ? 0x41 : 0x40);
		CHECK(sig_config_decode(bsf, 32, &c) == SIG_ACCEPTED);
		CHECK(d->type == SIG_CRC32C && d->block == 77 && d->psv == 0x123456);
		CHECK(d->transaction && d->first == !!(i & 2) && d->last == !!(i & 4));
		CHECK(d->seed_ones == !(i & 8) && c.check_mask == 0xff);
		CHECK(c.side[i & 1 ? SIG_WIRE : SIG_MEMORY].type == SIG_NONE);
	}
}

static enum sig_refusal transaction_with(enum bsf_field f, uint32_t value)
{
	uint8_t bsf[BSF_BYTES];
	struct sig_config c;

	transaction_bsf(bsf, BSF_WIRE);
	bsf_set(bsf, f, value);
	return sig_config_decode(bsf, 32, &c);
}

static enum sig_refusal transaction_with_domain(enum bsf_domain d, enum bsf_domain_field f,
						uint32_t value)
{
	uint8_t bsf[BSF_BYTES];
	struct sig_config c;

	transaction_bsf(bsf, BSF_WIRE);
	bsf_domain_set(bsf, d, f, value);
	return sig_config_decode(bsf, 32, &c);
}

static void test_transaction_refusals(void)
{
	static const uint32_t formats[] = {0, 1, 0x20, 0x42, 0x43, 0x44, 0x50, 0xc0, 0xff};
	uint8_t bsf[BSF_BYTES];
	struct sig_config c;

	transaction_bsf(bsf, BSF_WIRE);
	CHECK(sig_config_decode(bsf, 31, &c) == SIG_REFUSED_TRUNCATED);
	for (size_t i = 0; i < array_size(formats); i++)
		CHECK(transaction_with_domain(BSF_WIRE, BSF_TRANSACTION_FORMAT, formats[i]) ==
		      SIG_REFUSED_TRANSACTION);
	/* the other domain has bits of a signature and no format */
	CHECK(transaction_with_domain(BSF_MEMORY, BSF_TRANSACTION_INIT, 1) ==
	      SIG_REFUSED_TRANSACTION);
	CHECK(transaction_with_domain(BSF_MEMORY, BSF_TRANSACTION_CHECK_GEN, 1) ==
	      SIG_REFUSED_TRANSACTION);
	CHECK(transaction_with_domain(BSF_MEMORY, BSF_TRANSACTION_PSV, 1) ==
	      SIG_REFUSED_TRANSACTION);
	CHECK(transaction_with_domain(BSF_MEMORY, BSF_TRANSACTION_FORMAT, 0x41) == SIG_ACCEPTED);
	CHECK(transaction_with(BSF_EXT_FLAGS, 0x30000001) == SIG_REFUSED_PROLOGUE);
	CHECK(transaction_with(BSF_EXT_FLAGS, 0xb0000000) == SIG_REFUSED_PROLOGUE);
	CHECK(transaction_with(BSF_EXT_EPILOGUE, 4) == SIG_REFUSED_PROLOGUE);
	CHECK(transaction_with(BSF_RAW_DATA_BYTES, 0) == SIG_REFUSED_NO_DATA);
	CHECK(transaction_with(BSF_SAME_STRUCTURE, 1) == SIG_REFUSED_STRUCTURE);
	CHECK(transaction_with(BSF_WIRE_BLOCK, BSF_BLOCK_512) == SIG_REFUSED_BLOCK_SIZE);

	/* block signatures on either side */
	for (unsigned i = 0; i < 2; i++) {
		enum bsf_domain at = i ? BSF_MEMORY : BSF_WIRE;

		transaction_bsf(bsf, BSF_WIRE);
		bsf_domain_set(bsf, at, BSF_FORMAT, BSF_FORMAT_CRC32C | BSF_FORMAT_REPEAT);
		bsf_set(bsf, i ? BSF_MEMORY_BLOCK : BSF_WIRE_BLOCK, BSF_BLOCK_512);
		CHECK(sig_config_decode(bsf, 32, &c) == SIG_REFUSED_MIXED);
	}
	/* what no BSF can say */
	c = (struct sig_config){
		.side[SIG_WIRE] = {.type = SIG_CRC32, .block = 8, .transaction = true}};
	CHECK(sig_config_check(&c) == SIG_REFUSED_TRANSACTION);
}

static void made_by_hand(void)
{
	struct sig_config c = {.side[SIG_WIRE] = {.type = SIG_T10DIF_CRC, .block = 12}};

	CHECK(sig_config_check(&c) == SIG_REFUSED_BLOCK_ALIGN);
	c.side[SIG_WIRE].block = 0;
	CHECK(sig_config_check(&c) == SIG_REFUSED_BLOCK_SIZE);
	c.side[SIG_WIRE].block = SIG_BLOCK_MAX + 8;
	CHECK(sig_config_check(&c) == SIG_REFUSED_BLOCK_SIZE);
	c.side[SIG_WIRE].block = 16;
	CHECK(sig_config_check(&c) == SIG_ACCEPTED);
	c.copy_mask = 1;
	CHECK(sig_config_check(&c) == SIG_REFUSED_STRUCTURE);
	c.same_structure = true;
	CHECK(sig_config_check(&c) == SIG_REFUSED_STRUCTURE);
	c.side[SIG_MEMORY] = c.side[SIG_WIRE];
	CHECK(sig_config_check(&c) == SIG_ACCEPTED);
	c.side[SIG_MEMORY].type = SIG_TYPES;
	CHECK(sig_config_check(&c) == SIG_REFUSED_FORMAT);
}

/* Whatever is accepted can be planned and used; nothing crashes. */
static void test_noise(void)
{
	struct rng r = {0x6e6f697365};
	uint32_t accepted[2] = {0};

	for (int i = 0; i < 300000; i++) {
		uint8_t bsf[BSF_BYTES];
		struct sig_config c;

		memcpy(bsf, wire_t10dif, sizeof(bsf));
		if (i & 1)
			transaction_bsf(bsf, i & 2 ? BSF_MEMORY : BSF_WIRE);
		for (uint64_t n = rng_below(&r, 6); n; n--)
			bsf[rng_below(&r, BSF_BYTES)] ^= (uint8_t)(1 << rng_below(&r, 8));
		if (sig_config_decode(bsf, BSF_BYTES, &c) != SIG_ACCEPTED)
			continue;
		accepted[i & 1]++;
		CHECK(sig_config_check(&c) == SIG_ACCEPTED);
		for (int d = SIG_GATHER; d <= SIG_SCATTER; d++) {
			struct sig_plan p;
			struct sig_stream s;

			sig_plan_make(&p, &c, (enum sig_direction)d);
			sig_stream_begin(&s, &p, rng_next(&r) >> rng_below(&r, 64));
			CHECK(sig_stream_lead(&s) <=
			      (p.transaction ? UINT32_MAX + 4ull : 2 * (SIG_BLOCK_MAX + 8ull)));
			CHECK(sig_place(&p, 0) == 0);
		}
	}
	CHECK(accepted[0] > 10000 && accepted[1] > 10000);
}

/* Offsets up to the end of the world, as a peer may name them. */
static void largest_offsets(void)
{
	static const uint64_t offsets[] = {UINT64_MAX, UINT64_MAX - 1, 1ull << 63, UINT64_MAX / 2,
					   UINT64_MAX - 520};
	struct sig_config c;

	for (unsigned kinds = 0; kinds < KINDS * KINDS; kinds++) {
		memset(&c, 0, sizeof(c));
		for (int i = 0; i < SIG_SIDES; i++) {
			uint8_t scratch[BSF_BYTES] = {0};

			encode_domain(scratch, BSF_WIRE, i ? kinds / KINDS : kinds % KINDS,
				      &c.side[i]);
			c.side[i].block = c.side[i].type ? 512 : 0;
		}
		for (size_t i = 0; i < 2 * array_size(offsets); i++) {
			uint8_t byte = 0;
			struct run run = {&byte, 1};
			struct sig_cursor from = sig_cursor(&run, 1);
			struct sig_cursor to = sig_cursor(&run, 1);
			struct sig_plan p;
			struct sig_stream s;
			uint64_t offset = offsets[i / 2];

			sig_plan_make(&p, &c, (enum sig_direction)(i % 2));
			/* Memory with more signatures than the wire ends before the wire does. */
			CHECK(sig_place(&p, offset) >= offset / 530 * 512);
			sig_stream_begin(&s, &p, offset);
			(void)sig_stream_lead(&s);
			sig_stream_feed(&s, &from, &to);
			(void)sig_stream_finish(&s);
		}
	}
}

int main(void)
{
	bytes_of_libmlx5();
	every_field();
	all_pairs();
	test_refusals();
	test_transaction();
	test_transaction_refusals();
	made_by_hand();
	test_noise();
	largest_offsets();
	return 0;
}
