// SPDX-License-Identifier: BSD-2-Clause
/*
 * Known values: check values of the CRC catalogues, and what public tests of real devices assert
 * (512 bytes of A5 and the like).
 */
#include <string.h>

#include "conform.h"

enum pattern { ZEROS, ONES, LETTERS_C, A5, A5_WITH_5A, COUNTING, ZEROS_4096, PATTERNS };

/* By type, seed zero and seed of ones. */
struct vector {
	uint64_t value[SIGNATURES][2];
};

static const struct vector vectors[PATTERNS] = {
	[ZEROS] = {{{0},
		    {0x0000, 0x72bb},
		    {0xffff, 0x0000},
		    {0xffffffff, 0x1eae554d},
		    {0xffffffff, 0x30fcedc0},
		    {0xffffffffffffffff, 0x1de60e2868a782e9}}},
	[ONES] = {{{0},
		   {0x0688, 0x7433},
		   {0xfefe, 0xfefe},
		   {0x15d286f7, 0xf4832c45},
		   {0x3038a38a, 0xff3bb1b5},
		   {0xdd45b64f67c1b8d2, 0x3f5c4798f099c5c4}}},
	[LETTERS_C] = {{{0},
			{0xf32f, 0x8194},
			{0x9c9c, 0x9c9c},
			{0x8ddcecb5, 0x6c8d4607},
			{0x3a537a3b, 0xf5506804},
			{0x209ef29fa1915df7, 0xc287034836c920e1}}},
	[A5] = {{{0},
		 {0x9ec6, 0xec7d},
		 {0x5a5a, 0x5a5a},
		 {0x699aca21, 0x88cb6093},
		 {0xb4e60742, 0x7be5157d},
		 {0xaa85ce0c45db8a8c, 0x489c3fdbd283f79a}}},
	[A5_WITH_5A] = {{{0},
			 {0xebad, 0x9916},
			 {0xa55a, 0xa55a},
			 {0xe33cb35a, 0x026d19e8},
			 {0x189417e0, 0xd79705df},
			 {0x2b8975cb2f9aef3a, 0xc990841cb8c2922c}}},
	[COUNTING] = {{{0},
		       {0x4f10, 0x3dab},
		       {0x7f80, 0x7f80},
		       {0xce232f94, 0x2f728526},
		       {0x6113fc65, 0xae10ee5a},
		       {0x87ed77e59e126611, 0x65f48632094a1b07}}},
	[ZEROS_4096] = {{{0},
			 {0x0000, 0xe7e2},
			 {0xffff, 0x0000},
			 {0xffffffff, 0x880038e3},
			 {0xffffffff, 0x98f94189},
			 {0xffffffffffffffff, 0x6482d367eb22b64e}}},
};

static uint32_t make_pattern(enum pattern p, uint8_t *data)
{
	static const uint8_t constant[PATTERNS] = {
		[ONES] = 1, [LETTERS_C] = 'c', [A5] = 0xa5, [A5_WITH_5A] = 0xa5};
	uint32_t bytes = p == ZEROS_4096 ? 4096 : 512;

	memset(data, constant[p], bytes);
	if (p == A5_WITH_5A)
		data[0] = 0x5a;
	for (uint32_t i = 0; p == COUNTING && i < bytes; i++)
		data[i] = (uint8_t)i;
	return bytes;
}

/* The number as the stream has it: CRC32C and CRC64 with their lowest byte first. */
static uint32_t in_stream(enum signature type, uint64_t value, uint8_t *out)
{
	uint32_t bytes = reference_is_dif(type) ? 2 : reference_bytes(type);
	bool little = type == CRC32C || type == CRC64;

	for (uint32_t i = 0; i < bytes; i++)
		out[i] = (uint8_t)(value >> 8 * (little ? i : bytes - 1 - i));
	return bytes;
}

/* The reference is right about the published check values. */
static void test_reference(const struct test *t)
{
	static const uint64_t nine[SIGNATURES][2] = {
		[DIF_CRC] = {0xd0db, 0x8e3c},
		[CRC32] = {0x765e7680, 0xfc891918},
		[CRC32C] = {0xa71c05df, 0xe3069283},
		[CRC64] = {0x87ff3f9b2b57c87b, 0xae8b14860a799888},
	};
	uint8_t data[4096];

	(void)t;
	for (enum signature type = DIF_CRC; type < SIGNATURES; type++) {
		for (int ones = 0; ones < 2; ones++) {
			if (type != DIF_CSUM)
				SAME(reference_number(type, ones, (const uint8_t *)"123456789", 9),
				     nine[type][ones]);
			for (enum pattern p = 0; p < PATTERNS; p++)
				SAME(reference_number(type, ones, data, make_pattern(p, data)),
				     vectors[p].value[type][ones]);
		}
	}
}

static struct domain domain_of(enum signature type, bool ones, uint32_t block)
{
	return (struct domain){
		.type = type,
		.size = block == 512 ? MLX5DV_BLOCK_SIZE_512 : MLX5DV_BLOCK_SIZE_4096,
		.ones = ones,
		.app = 0x5678,
		.ref = 0xf0debc9a,
	};
}

/* What the device makes of these bytes, and that it takes the same for good. */
static void made_and_accepted(struct connected_pair *s, enum signature type, bool ones,
			      enum pattern p)
{
	static const uint8_t tags[6] = {0x56, 0x78, 0xf0, 0xde, 0xbc, 0x9a};
	uint8_t want[4096 + 8];
	uint32_t block = make_pattern(p, want);
	struct domain d = domain_of(type, ones, block);
	struct key_conf c = signature_conf(NULL, &d, block, 0xff);
	uint32_t n = block;

	n += in_stream(type, vectors[p].value[type][ones], want + n);
	if (reference_is_dif(type)) {
		memcpy(want + n, tags, 6);
		n += 6;
	}
	configure(&s->local, 0, &c);
	make_pattern(p, s->local.memory + LOCAL_AT);
	transfer(s, ROUTE_SEND, 0, n);
	expect_only(&s->remote, REMOTE_AT, want, n);
	/* And back again. */
	transfer(s, ROUTE_RECEIVE, 0, n);
	expect_no_error(&s->local, 0);
	expect_only(&s->local, LOCAL_AT, want, block);
	fill_canary(&s->local);
	fill_canary(&s->remote);
}

static void known_values(const struct test *t)
{
	struct connected_pair s;

	pair_open_signed(&s, NULL);
	for (enum pattern p = 0; p < PATTERNS; p++)
		for (int ones = 0; ones < 2; ones++)
			made_and_accepted(&s, (enum signature)t->arg, ones, p);
	pair_close(&s);
}

/* Equal blocks have equal guards: nothing of a block enters the next one. */
static void each_block_anew(const struct test *t)
{
	struct connected_pair s;

	(void)t;
	pair_open_signed(&s, NULL);
	for (enum signature type = DIF_CRC; type < SIGNATURES; type++) {
		for (int ones = 0; ones < 2; ones++) {
			struct domain d = domain_of(type, ones, 512);
			uint32_t unit = reference_unit(&d);
			struct key_conf c = signature_conf(NULL, &d, 4 * 512, 0xff);
			uint8_t want[8];

			in_stream(type, vectors[A5].value[type][ones], want);
			configure(&s.local, 0, &c);
			for (int i = 0; i < 4; i++)
				make_pattern(A5, s.local.memory + LOCAL_AT + 512 * i);
			transfer(&s, ROUTE_SEND, 0, 4 * unit);
			for (int i = 0; i < 4; i++)
				EXPECT(!memcmp(s.remote.memory + REMOTE_AT + i * unit + 512, want,
					       reference_is_dif(type) ? 2 : unit - 512));
		}
	}
	pair_close(&s);
}

/* A unit of 512 bytes that public tests of devices damage, and what they then report. */
struct damage {
	enum signature type;
	bool ones;
	uint32_t at; /* in the unit */
	uint8_t mask;
	enum mlx5dv_mkey_err_type kind;
	uint64_t found;
	uint64_t calculated;
};

static const struct damage damages[] = {
	{DIF_CRC, true, 0, 0xff, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD, 0xec7d, 0x9916},
	{CRC32, false, 0, 0xff, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD, 0x699aca21, 0xe33cb35a},
	{CRC32, false, 512, 0xff, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD, 0x969aca21, 0x699aca21},
	{DIF_CRC, true, 514, 0xff, MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG, 0xa978, 0x5678},
	{DIF_CRC, true, 515, 0xff, MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG, 0x5687, 0x5678},
	{DIF_CRC, true, 516, 0xff, MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG, 0x0fdebc9a, 0xf0debc9a},
	{CRC32C, false, 0, 0xff, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD, 0xb4e60742, 0x189417e0},
	{CRC64, false, 0, 0xff, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD, 0xaa85ce0c45db8a8c,
	 0x2b8975cb2f9aef3a},
};

static void known_damage(const struct test *t)
{
	enum route r = (enum route)t->arg % ROUTES;
	struct setup setup = {.cqe_bytes = t->arg >= ROUTES ? 128 : 0};
	struct connected_pair s;

	pair_open_signed(&s, &setup);
	for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
		const struct damage *h = &damages[i];
		struct domain d = domain_of(h->type, h->ones, 512);
		uint32_t unit = reference_unit(&d);
		bool gathers = route_gathers(r);
		uint8_t *in = gathers ? s.local.memory + LOCAL_AT : s.remote.memory + REMOTE_AT;
		struct key_conf c = signature_conf(gathers ? &d : NULL, gathers ? NULL : &d,
						   gathers ? unit : 512, 0xff);

		configure(&s.local, 0, &c);
		make_pattern(A5, in);
		reference_signature(&d, 0, in, in + 512);
		/* 0xa5 becomes 0x5a; a tag's byte 0x56 becomes 0xa9 or its 0x78 becomes 0x87. */
		in[h->at] ^= h->mask;
		transfer(&s, r, 0, gathers ? 512 : unit);
		expect_error(&s.local, 0,
			     (struct expected_error){.type = h->kind,
						     .calculated = h->calculated,
						     .found = h->found,
						     .unit = unit});
	}
	pair_close(&s);
}

const struct test vector_tests[] = {
	{"reference-agrees-with-published-values", test_reference, {29, 30, 31, 38, 39}},
	{"known-T10-DIF-CRCs", known_values, {38, 40}, DIF_CRC},
	{"known-T10-DIF-checksums", known_values, {39, 40}, DIF_CSUM},
	{"known-CRC32s", known_values, {29, 34}, CRC32},
	{"known-CRC32Cs", known_values, {30, 34}, CRC32C},
	{"known-CRC64s", known_values, {31, 35}, CRC64},
	{"each-block-begins-with-the-seed", each_block_anew, {32}},
	{"known-damage-of-a-SEND", known_damage, {53, 56, 58, 59}, ROUTE_SEND},
	{"known-damage-of-a-RECEIVE", known_damage, {53, 56, 58, 59}, ROUTE_RECEIVE},
	{"known-damage-in-CQEs-of-128-bytes", known_damage, {53, 58}, ROUTES + ROUTE_SEND},
	{"known-damage-of-a-WRITE-by-the-peer", known_damage, {53, 58, 59, 63}, ROUTE_WRITTEN},
	{0},
};
