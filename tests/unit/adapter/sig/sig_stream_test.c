// SPDX-License-Identifier: BSD-2-Clause
/*
 * The transformer on cases with a name: the examples of mlx5dv_wr_set_mkey_sig_block(3), values
 * that devices are known to report, and damage that has to be found where it was done, whatever the
 * cut.
 */
#include <string.h>

#include "check.h"
#include "sig_model.h"

enum { T10_GUARD = 0xc0, T10_APP = 0x30, T10_REF = 0x0f, CRC32_ALL = 0xf0, ALL = 0xff };

static const struct sig_domain nothing;

static struct sig_domain crc_domain(enum sig_type t, uint32_t block, bool seed_ones)
{
	return (struct sig_domain){.type = t, .block = block, .seed_ones = seed_ones};
}

static struct sig_domain t10dif_domain(enum sig_type t, uint32_t block)
{
	return (struct sig_domain){.type = t,
				   .block = block,
				   .seed_ones = true,
				   .app_tag = 0x5678,
				   .app_mask = 0xffff,
				   .ref_tag = 0xf0debc9a};
}

static struct sig_config config_between(struct sig_domain memory, struct sig_domain wire,
					uint8_t check)
{
	return (struct sig_config){.side = {[SIG_MEMORY] = memory, [SIG_WIRE] = wire},
				   .check_mask = check};
}

static struct sig_config config_same(struct sig_domain memory, struct sig_domain wire,
				     uint8_t check, uint8_t copy)
{
	struct sig_config c = config_between(memory, wire, check);

	c.same_structure = true;
	c.copy_mask = copy;
	return c;
}

/* One transfer from offset 0, all at once.  Both sides end together. */
static struct sig_stream move_bytes(const struct sig_config *c, enum sig_direction d, uint64_t wire,
				    void *in, void *out)
{
	static struct sig_plan p;
	struct sig_stream s;
	struct run from = {in, wire};
	struct run to = {out, wire};
	struct sig_cursor f;
	struct sig_cursor t;

	CHECK(sig_config_check(c) == SIG_ACCEPTED);
	sig_plan_make(&p, c, d);
	(d == SIG_GATHER ? &from : &to)->len = sig_place(&p, wire);
	f = sig_cursor(&from, 1);
	t = sig_cursor(&to, 1);
	sig_stream_begin(&s, &p, 0);
	sig_stream_feed(&s, &f, &t);
	CHECK(f.moved == from.len && t.moved == to.len);
	return s;
}

/* Of the error: kind, and what the two styles say. */
static void expect_error(const struct sig_stream *s, enum sig_error_kind kind, uint64_t found,
			 uint64_t computed, uint64_t last_byte)
{
	const struct sig_error *e = sig_stream_finish(s);
	struct sig_report hardware;
	struct sig_report manual;

	CHECK(e && e->kind == kind);
	hardware = sig_error_report(e, SIG_REPORT_HARDWARE);
	manual = sig_error_report(e, SIG_REPORT_MANUAL);
	CHECK(sig_report_part(e, hardware.actual) == found);
	CHECK(sig_report_part(e, hardware.expected) == computed);
	CHECK(hardware.offset == last_byte);
	CHECK(manual.actual == hardware.expected && manual.expected == hardware.actual);
	CHECK(manual.offset % e->unit == 0 && manual.offset + e->unit - 1 == last_byte);
}

static void sign_unit(const struct sig_domain *d, uint8_t *unit, uint64_t block)
{
	uint8_t field[8];
	uint32_t n = model_signature(d, block, unit, d->block, field);

	memcpy(unit + d->block, field, n);
}

/* SB example 1: memory with CRC32, the wire without. */
static void check_and_strip(void)
{
	struct sig_config c = config_between(crc_domain(SIG_CRC32, 512, true), nothing, CRC32_ALL);
	uint8_t memory[2 * 516];
	uint8_t wire[1024];
	uint8_t back[2 * 516];
	struct sig_stream s;

	for (int k = 0; k < 2; k++) {
		memset(memory + 516 * k, 'a' + k, 512);
		sign_unit(&c.side[SIG_MEMORY], memory + 516 * k, (uint64_t)k);
	}
	s = move_bytes(&c, SIG_GATHER, 1024, memory, wire);
	CHECK(!sig_stream_finish(&s));
	for (int i = 0; i < 1024; i++)
		CHECK(wire[i] == 'a' + i / 512);
	/* 1.1: on the way back they are made. */
	s = move_bytes(&c, SIG_SCATTER, 1024, wire, back);
	CHECK(!sig_stream_finish(&s) && !memcmp(back, memory, sizeof(back)));
}

/* SB example 2: the wire with T10-DIF, memory without. */
static void make_on_the_wire(void)
{
	struct sig_config c = config_between(nothing, t10dif_domain(SIG_T10DIF_CRC, 4096), ALL);
	static uint8_t memory[8 * 4096];
	static uint8_t wire[8 * 4104];
	static uint8_t back[8 * 4096];
	struct sig_stream s;

	c.side[SIG_WIRE].ref_increment = true;
	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 7 + i / 4096);
	s = move_bytes(&c, SIG_GATHER, sizeof(wire), memory, wire);
	CHECK(!sig_stream_finish(&s));
	for (unsigned k = 0; k < 8; k++) {
		uint8_t field[8];

		model_signature(&c.side[SIG_WIRE], k, memory + 4096 * k, 4096, field);
		CHECK(!memcmp(wire + 4104 * k + 4096, field, 8));
		CHECK(wire[4104 * k + 4103] == 0x9a + k);
	}
	s = move_bytes(&c, SIG_SCATTER, sizeof(wire), wire, back);
	CHECK(!sig_stream_finish(&s) && !memcmp(back, memory, sizeof(back)));
	wire[3 * 4104 + 100] ^= 1;
	s = move_bytes(&c, SIG_SCATTER, sizeof(wire), wire, back);
	CHECK(sig_stream_finish(&s)->kind == SIG_BAD_GUARD && s.errors == 1);
	CHECK(s.error.block == 3 && s.error.side == SIG_WIRE);
	CHECK(back[3 * 4096 + 100] != memory[3 * 4096 + 100]); /* delivered all the same */
}

static void known_reports(void)
{
	struct sig_config dif = config_between(t10dif_domain(SIG_T10DIF_CRC, 512), nothing, ALL);
	struct sig_config crc32 =
		config_between(crc_domain(SIG_CRC32, 512, false), nothing, CRC32_ALL);
	uint8_t unit[520];
	uint8_t out[520];
	struct sig_stream s;

	memset(unit, 0xa5, 512);
	sign_unit(&dif.side[SIG_MEMORY], unit, 0);
	unit[0] = 0x5a;
	s = move_bytes(&dif, SIG_GATHER, 512, unit, out);
	expect_error(&s, SIG_BAD_GUARD, 0xec7d, 0x9916, 519);
	/* All of the signature is there for the CQE. */
	CHECK(sig_error_report(&s.error, SIG_REPORT_HARDWARE).actual == 0xec7d5678f0debc9a);
	CHECK(sig_error_report(&s.error, SIG_REPORT_HARDWARE).expected == 0x99165678f0debc9a);
	unit[0] = 0xa5;
	unit[514] ^= 0xff;
	s = move_bytes(&dif, SIG_GATHER, 512, unit, out);
	expect_error(&s, SIG_BAD_APP_TAG, 0xa978, 0x5678, 519);
	unit[514] ^= 0xff;
	unit[515] ^= 0xff;
	s = move_bytes(&dif, SIG_GATHER, 512, unit, out);
	expect_error(&s, SIG_BAD_APP_TAG, 0x5687, 0x5678, 519);
	unit[515] ^= 0xff;
	unit[516] ^= 0xff;
	s = move_bytes(&dif, SIG_GATHER, 512, unit, out);
	expect_error(&s, SIG_BAD_REF_TAG, 0x0fdebc9a, 0xf0debc9a, 519);
	/* The order: guard, application tag, reference tag. */
	unit[515] ^= 0xff;
	s = move_bytes(&dif, SIG_GATHER, 512, unit, out);
	CHECK(s.error.kind == SIG_BAD_APP_TAG);
	unit[512] ^= 0xff;
	s = move_bytes(&dif, SIG_GATHER, 512, unit, out);
	CHECK(s.error.kind == SIG_BAD_GUARD && s.errors == 1);
	/* A mask that leaves parts out. */
	dif.check_mask = T10_REF;
	s = move_bytes(&dif, SIG_GATHER, 512, unit, out);
	CHECK(s.error.kind == SIG_BAD_REF_TAG);
	dif.check_mask = T10_APP & 0x20;
	s = move_bytes(&dif, SIG_GATHER, 512, unit, out);
	CHECK(!sig_stream_finish(&s));

	memset(unit, 0xa5, 512);
	sign_unit(&crc32.side[SIG_MEMORY], unit, 0);
	unit[0] = 0x5a;
	s = move_bytes(&crc32, SIG_GATHER, 512, unit, out);
	expect_error(&s, SIG_BAD_GUARD, 0x699aca21, 0xe33cb35a, 515);
	unit[0] = 0xa5;
	unit[512] ^= 0xff;
	s = move_bytes(&crc32, SIG_GATHER, 512, unit, out);
	expect_error(&s, SIG_BAD_GUARD, 0x969aca21, 0x699aca21, 515);
	/* Little-endian types report the number, not the bytes. */
	crc32.side[SIG_MEMORY] = crc_domain(SIG_CRC32C, 512, false);
	memset(unit, 0xa5, 512);
	memcpy(unit + 512, "\x42\x07\xe6\x00", 4);
	s = move_bytes(&crc32, SIG_GATHER, 512, unit, out);
	expect_error(&s, SIG_BAD_GUARD, 0x00e60742, 0xb4e60742, 515);
	crc32.side[SIG_MEMORY] = crc_domain(SIG_CRC64_XP10, 512, false);
	crc32.check_mask = ALL;
	memcpy(unit + 512, "\x8c\x8a\xdb\x45\x0c\xce\x85\x00", 8);
	s = move_bytes(&crc32, SIG_GATHER, 512, unit, out);
	expect_error(&s, SIG_BAD_GUARD, 0x0085ce0c45db8a8c, 0xaa85ce0c45db8a8c, 519);
}

/* Those of rdma-core's tests whose numbers follow from the data. */
static void stock_tests(void)
{
	struct sig_config c = config_between(crc_domain(SIG_CRC32, 512, true), nothing, CRC32_ALL);
	uint8_t memory[1024];
	uint8_t wire[1024];
	struct sig_stream s;

	/* test_mkey_sig_err */
	memset(memory, 'c', sizeof(memory));
	s = move_bytes(&c, SIG_GATHER, 512, memory, wire);
	expect_error(&s, SIG_BAD_GUARD, 0x63636363, 0x6c8d4607, 515);
	/* test_mkey_sig_pipelining_bad, and _good */
	c.side[SIG_MEMORY].seed_ones = false;
	memset(memory, 0, sizeof(memory));
	s = move_bytes(&c, SIG_GATHER, 512, memory, wire);
	expect_error(&s, SIG_BAD_GUARD, 0, 0xffffffff, 515);
	c.check_mask = 0;
	s = move_bytes(&c, SIG_GATHER, 512, memory, wire);
	CHECK(!sig_stream_finish(&s));
	/* test_mkey_sig_t10dif: a unit that never crosses the wire as a whole. */
	c = config_between(nothing, t10dif_domain(SIG_T10DIF_CRC, 512), ALL);
	memset(memory, 'c', sizeof(memory));
	s = move_bytes(&c, SIG_GATHER, 512, memory, wire);
	CHECK(!sig_stream_finish(&s) && !memcmp(memory, wire, 512));
	memset(memory, 's', sizeof(memory));
	s = move_bytes(&c, SIG_SCATTER, 512, wire, memory);
	CHECK(!sig_stream_finish(&s) && !memcmp(memory, wire, 512) && memory[512] == 's');
}

static void test_escapes(void)
{
	struct sig_config c = config_between(t10dif_domain(SIG_T10DIF_CRC, 512), nothing, ALL);
	uint8_t unit[520];
	uint8_t out[512];
	struct sig_stream s;

	memset(unit, 0xa5, 512);
	for (int escape = SIG_ESCAPE_NONE; escape <= SIG_ESCAPE_APP_REF; escape++)
		for (int ones = 0; ones < 4; ones++) {
			bool off = escape == SIG_ESCAPE_APP	  ? ones & 1
				   : escape == SIG_ESCAPE_APP_REF ? ones == 3
								  : false;

			c.side[SIG_MEMORY].escape = (enum sig_escape)escape;
			sign_unit(&c.side[SIG_MEMORY], unit, 0);
			unit[512] ^= 0xff;
			if (ones & 1)
				memset(unit + 514, 0xff, 2);
			if (ones & 2)
				memset(unit + 516, 0xff, 4);
			s = move_bytes(&c, SIG_GATHER, 512, unit, out);
			CHECK(!sig_stream_finish(&s) == off);
		}
}

/* Signatures that change on the way. */
static void test_conversions(void)
{
	static const struct {
		enum sig_type from;
		bool from_ones;
		enum sig_type to;
		bool to_ones;
	} pairs[] = {
		{SIG_T10DIF_CRC, false, SIG_T10DIF_CRC, true},
		{SIG_T10DIF_CRC, true, SIG_T10DIF_CSUM, true},
		{SIG_T10DIF_CSUM, true, SIG_T10DIF_CRC, true},
		{SIG_CRC32, true, SIG_CRC32C, false},
		{SIG_CRC32C, true, SIG_CRC64_XP10, true},
		{SIG_CRC64_XP10, true, SIG_T10DIF_CRC, false},
		{SIG_CRC32, false, SIG_CRC32, true},
	};
	static const uint32_t sizes[] = {512, 520, 4048, 4096, 4160, 1 << 20};
	enum { DATA = 2 * (1 << 20) };
	uint8_t *in = malloc(2 * DATA);
	uint8_t *out = malloc(2 * DATA);
	uint8_t *want = malloc(2 * DATA);
	struct model_result r;

	CHECK(in && out && want);
	for (size_t i = 0; i < array_size(pairs); i++)
		for (size_t k = 0; k < array_size(sizes) * array_size(sizes); k++) {
			uint32_t size = sizes[k / array_size(sizes)];
			struct sig_domain from =
				crc_domain(pairs[i].from, size, pairs[i].from_ones);
			struct sig_domain to = crc_domain(pairs[i].to, sizes[k % array_size(sizes)],
							  pairs[i].to_ones);
			struct sig_config c = config_between(from, to, ALL);
			/* Some units of the larger, and a piece. */
			uint64_t wire =
				size > 1 << 15 || to.block > 1 << 15 ? (1 << 20) + 5000 : 13000;
			uint64_t units = wire / size + 1;
			struct sig_stream s;

			/* The model is slow on large ones. */
			if (wire > 1 << 20 && i)
				continue;
			for (uint64_t u = 0; u < units; u++) {
				uint64_t unit = size + sig_bytes(from.type);

				for (uint32_t b = 0; b < size; b++)
					in[u * unit + b] = (uint8_t)(b * 31 + u * 17 + (b >> 8));
				sign_unit(&from, in + u * unit, u);
			}
			model_transfer(&c, SIG_GATHER, wire, in, want, &r);
			s = move_bytes(&c, SIG_GATHER, wire, in, out);
			CHECK(!r.errors && !sig_stream_finish(&s));
			CHECK(!memcmp(out, want, wire));
		}
	free(in);
	free(out);
	free(want);
}

static void test_copying(void)
{
	struct sig_domain memory = t10dif_domain(SIG_T10DIF_CRC, 512);
	struct sig_domain wire = memory;
	struct sig_config c;
	uint8_t unit[520];
	uint8_t out[520];
	struct sig_stream s;

	/* Half of the application tag is copied, the other half set. */
	memory.app_tag = 0x5600;
	wire.app_tag = 0x0078;
	c = config_same(memory, wire, ALL, 0x20 | T10_GUARD | T10_REF);
	memset(unit, 0xa5, 512);
	sign_unit(&memory, unit, 0);
	s = move_bytes(&c, SIG_GATHER, 520, unit, out);
	CHECK(!sig_stream_finish(&s) && out[514] == 0x56 && out[515] == 0x78);
	CHECK(!memcmp(out, unit, 514) && !memcmp(out + 516, unit + 516, 4));
	/* Reference tags that change, guard and application tag that do not. */
	wire.app_tag = memory.app_tag;
	wire.ref_tag = 0xffffffff;
	wire.ref_increment = true;
	c = config_same(memory, wire, ALL, T10_GUARD | T10_APP);
	s = move_bytes(&c, SIG_GATHER, 520, unit, out);
	CHECK(!sig_stream_finish(&s) && !memcmp(out, unit, 516));
	CHECK(!memcmp(out + 516, "\xff\xff\xff\xff", 4));
	/* A bad guard is reported; copied it stays bad, made anew it is good. */
	unit[512] ^= 0x10;
	s = move_bytes(&c, SIG_GATHER, 520, unit, out);
	CHECK(s.error.kind == SIG_BAD_GUARD && out[512] == unit[512]);
	c = config_same(memory, wire, ALL, T10_APP);
	s = move_bytes(&c, SIG_GATHER, 520, unit, out);
	CHECK(s.error.kind == SIG_BAD_GUARD && out[512] == (unit[512] ^ 0x10));
	/* Neither checked nor known, but preserved. */
	memcpy(unit + 512, "whatever", 8);
	c = config_same(memory, wire, 0, ALL);
	s = move_bytes(&c, SIG_GATHER, 520, unit, out);
	CHECK(!sig_stream_finish(&s) && !memcmp(out, unit, 520));
}

/* Tags count blocks and wrap. */
static void reference_tags(void)
{
	struct sig_config c = config_between(nothing, t10dif_domain(SIG_T10DIF_CSUM, 8), ALL);
	uint8_t memory[4 * 8] = {0};
	uint8_t wire[4 * 16];
	static const uint32_t tags[] = {0xfffffffe, 0xffffffff, 0, 1};

	c.side[SIG_WIRE].ref_tag = tags[0];
	for (int increment = 0; increment < 2; increment++) {
		c.side[SIG_WIRE].ref_increment = increment;
		move_bytes(&c, SIG_GATHER, sizeof(wire), memory, wire);
		for (int k = 0; k < 4; k++)
			for (int i = 0; i < 4; i++)
				CHECK(wire[16 * k + 12 + i] ==
				      (uint8_t)(tags[increment ? k : 0] >> (24 - 8 * i)));
	}
}

/* Where to do damage, and what must come of it. */
struct damage {
	uint32_t at; /* in the unit */
	enum sig_error_kind kind;
};

/* In pieces of so many bytes on both sides. */
static struct sig_stream in_pieces(const struct sig_plan *p, uint8_t *in, uint64_t in_bytes,
				   uint8_t *out, uint64_t out_bytes, uint64_t piece, uint64_t other)
{
	struct sig_stream s;
	struct run from = {in, 0};
	struct run to = {out, 0};
	struct sig_cursor f = sig_cursor(&from, 1);
	struct sig_cursor t = sig_cursor(&to, 1);

	sig_stream_begin(&s, p, 0);
	while (f.moved < in_bytes || t.moved < out_bytes) {
		if (!sig_cursor_left(&f) && f.moved < in_bytes) {
			from = (struct run){in + f.moved, min_u64(piece, in_bytes - f.moved)};
			f = (struct sig_cursor){&from, 1, 0, f.moved};
		}
		if (!sig_cursor_left(&t) && t.moved < out_bytes) {
			to = (struct run){out + t.moved, min_u64(other, out_bytes - t.moved)};
			t = (struct sig_cursor){&to, 1, 0, t.moved};
		}
		sig_stream_feed(&s, &f, &t);
	}
	return s;
}

static void locate_in(const struct sig_config *c, enum sig_direction d, const struct sig_domain *in)
{
	enum { BLOCKS = 4, LONGEST = BLOCKS * (4160 + 8) };
	static const uint64_t pieces[] = {LONGEST, 4096, 1024, 520, 512, 64, 8, 3, 1};
	static uint8_t good[LONGEST];
	static uint8_t out[LONGEST];
	uint32_t bytes = sig_bytes(in->type);
	uint32_t unit = in->block + bytes;
	bool tags = in->type == SIG_T10DIF_CRC || in->type == SIG_T10DIF_CSUM;
	const struct damage damages[] = {
		{0, SIG_BAD_GUARD},
		{in->block / 2, SIG_BAD_GUARD},
		{in->block - 1, SIG_BAD_GUARD},
		{in->block, SIG_BAD_GUARD},
		{in->block + 1, SIG_BAD_GUARD},
		{in->block + 2, tags ? SIG_BAD_APP_TAG : SIG_BAD_GUARD},
		{in->block + 3, tags ? SIG_BAD_APP_TAG : SIG_BAD_GUARD},
		{unit - 1, tags ? SIG_BAD_REF_TAG : SIG_BAD_GUARD},
	};
	struct sig_plan p;
	uint64_t in_bytes = (uint64_t)BLOCKS * unit;
	uint64_t wire = d == SIG_GATHER ? (uint64_t)BLOCKS * in->block : in_bytes;
	uint64_t out_bytes;

	sig_plan_make(&p, c, d);
	out_bytes = d == SIG_GATHER ? wire : sig_place(&p, wire);
	CHECK(out_bytes <= LONGEST && (d == SIG_SCATTER || sig_place(&p, wire) == in_bytes));
	for (uint32_t k = 0; k < BLOCKS; k++) {
		for (uint32_t i = 0; i < in->block; i++)
			good[k * unit + i] = (uint8_t)(i * 13 + k);
		sign_unit(in, good + k * unit, k);
	}
	for (size_t i = 0; i < array_size(damages) * BLOCKS; i++)
		for (size_t j = 0; j < array_size(pieces) * 3; j++) {
			const struct damage *dam = &damages[i / BLOCKS];
			uint64_t block = i % BLOCKS;
			uint8_t *at = good + block * unit + dam->at;
			struct sig_stream s;
			/* Either side in pieces, or both. */
			uint64_t piece = j % 3 == 0 ? LONGEST : pieces[j / 3];
			uint64_t other = j % 3 == 1 ? LONGEST : pieces[j / 3];

			/* Of the smallest a few are enough. */
			if (min_u64(piece, other) < 8 && i % 13)
				continue;
			*at ^= 0x20;
			s = in_pieces(&p, good, in_bytes, out, out_bytes, piece, other);
			*at ^= 0x20;
			CHECK(s.errors == 1 && s.error.kind == dam->kind);
			CHECK(s.error.block == block && s.error.side == p.in.side);
			CHECK(sig_error_report(&s.error, SIG_REPORT_HARDWARE).offset ==
			      (block + 1) * unit - 1);
			CHECK(sig_error_report(&s.error, SIG_REPORT_MANUAL).offset == block * unit);
		}
}

static void test_locate(void)
{
	static const uint32_t sizes[] = {512, 520, 4048, 4096, 4160};

	for (enum sig_type t = SIG_T10DIF_CRC; t < SIG_TYPES; t++)
		for (size_t i = 0; i < array_size(sizes); i++) {
			struct sig_domain d = t10dif_domain(t, sizes[i]);
			struct sig_config c;

			d.ref_increment = true;
			if (t != SIG_T10DIF_CRC && t != SIG_T10DIF_CSUM)
				d = crc_domain(t, sizes[i], i % 2);
			c = config_between(d, nothing, ALL);
			locate_in(&c, SIG_GATHER, &d);
			c = config_between(nothing, d, ALL);
			locate_in(&c, SIG_SCATTER, &d);
			c = config_same(d, d, ALL, ALL);
			locate_in(&c, SIG_SCATTER, &d);
		}
}

/* Only the first error of a key is told, until somebody arms it again. */
static void first_error(void)
{
	struct sig_psv psv = {0};

	sig_psv_arm(&psv, 0xffffabcd01234567);
	CHECK(sig_psv_raise(&psv));
	CHECK(!sig_psv_raise(&psv) && !sig_psv_raise(&psv));
	sig_psv_arm(&psv, 0);
	CHECK(sig_psv_raise(&psv));
	CHECK(sig_error_name(SIG_BAD_REF_TAG)[0] == 'r');
}

/* A stream that is not primed does not complain about what it has not seen. */
static void test_unprimed(void)
{
	struct sig_config c = config_between(crc_domain(SIG_CRC32C, 512, true), nothing, CRC32_ALL);
	struct sig_plan p;
	struct sig_stream s;
	uint8_t memory[2 * 516] = {0};
	uint8_t wire[1024];
	struct run from = {memory + 10, 2 * 516 - 10};
	struct run to = {wire, 1024 - 10};
	struct sig_cursor f = sig_cursor(&from, 1);
	struct sig_cursor t = sig_cursor(&to, 1);
	struct sig_cursor empty = sig_cursor(NULL, 0);

	sig_plan_make(&p, &c, SIG_GATHER);
	sig_stream_begin(&s, &p, 10);
	CHECK(sig_stream_lead(&s) == 10 && !sig_stream_prime(&s, &empty));
	sig_stream_feed(&s, &f, &t);
	CHECK(s.errors == 1 && s.error.block == 1);
}

/* Behind the signature of a transaction is nothing, on whatever side it is. */
static void behind_transaction(void)
{
	uint8_t in[64] = {0}, out[64];
	struct run from_run = {in, sizeof(in)}, to_run = {out, sizeof(out)};

	for (unsigned i = 0; i < 16; i++) {
		struct sig_domain d = crc_domain(SIG_CRC32C, 100, true);
		uint64_t offset = i & 8 ? 105 : UINT64_MAX;
		struct sig_cursor from = sig_cursor(&from_run, 1), to = sig_cursor(&to_run, 1);
		struct sig_config c;
		struct sig_stream s;
		struct sig_plan p;

		d.transaction = d.first = true;
		d.last = i & 1;
		c = i & 2 ? config_between(nothing, d, CRC32_ALL)
			  : config_between(d, nothing, CRC32_ALL);
		CHECK(sig_config_check(&c) == SIG_ACCEPTED);
		sig_plan_make(&p, &c, i & 4 ? SIG_GATHER : SIG_SCATTER);
		CHECK(sig_place(&p, offset) == UINT64_MAX);
		sig_stream_begin(&s, &p, offset);
		sig_stream_feed(&s, &from, &to);
		CHECK(!from.moved && !to.moved && !sig_stream_finish(&s));
	}
}

int main(void)
{
	check_and_strip();
	make_on_the_wire();
	known_reports();
	stock_tests();
	test_escapes();
	test_conversions();
	test_copying();
	reference_tags();
	test_locate();
	first_error();
	test_unprimed();
	behind_transaction();
	return 0;
}
