// SPDX-License-Identifier: BSD-2-Clause
/*
 * The examples of the manual page.
 */
#include <string.h>

#include "conform.h"

static const struct domain crc32_512 = {CRC32, MLX5DV_BLOCK_SIZE_512, true, 0, 0, 0};
static const struct domain dif_4096 = {DIF_CRC,	   MLX5DV_BLOCK_SIZE_4096,	    true, 0xabcd,
				       0x01234567, MLX5DV_SIG_T10DIF_FLAG_REF_REMAP};

static uint8_t data[ROOM];
static uint8_t framed[ROOM];

static void open_with_data(struct connected_pair *s, const struct setup *setup)
{
	pair_open_signed(s, setup);
	fill_random(data, sizeof(data), options.seed);
}

/* Examples 1 and 1.1: CRC32 in memory, nothing on the wire. */
static void example_1(const struct test *t)
{
	struct key_conf c = signature_conf(&crc32_512, NULL, 8 * 516, MLX5DV_SIG_MASK_CRC32);
	struct connected_pair s;

	(void)t;
	open_with_data(&s, NULL);
	configure(&s.local, 0, &c);
	reference_stream(&crc32_512, data, 8 * 512, framed);
	memcpy(s.local.memory + LOCAL_AT, framed, 8 * 516);
	transfer(&s, ROUTE_SEND, 0, 8 * 512);
	expect_only(&s.remote, REMOTE_AT, data, 8 * 512);
	expect_no_error(&s.local, 0);
	/* Each of the eight is checked. */
	for (uint32_t i = 0; i < 8; i++) {
		uint32_t at = i * 516 + i * 60; /* anywhere in its block */
		uint64_t found = reference_number(CRC32, true, data + i * 512, 512);

		s.local.memory[LOCAL_AT + at] ^= 0x01;
		configure(&s.local, 0, &c);
		transfer(&s, ROUTE_SEND, 0, 8 * 512);
		expect_error(&s.local, 0,
			     (struct expected_error){
				     .type = MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
				     .calculated = reference_number(
					     CRC32, true, s.local.memory + LOCAL_AT + i * 516, 512),
				     .found = found,
				     .block = i,
				     .unit = 516,
			     });
		s.local.memory[LOCAL_AT + at] ^= 0x01;
	}
	pair_close(&s);
}

static void example_1_1(const struct test *t)
{
	struct key_conf c = signature_conf(&crc32_512, NULL, 8 * 516, MLX5DV_SIG_MASK_CRC32);
	struct connected_pair s;

	(void)t;
	open_with_data(&s, NULL);
	configure(&s.local, 0, &c);
	memcpy(s.remote.memory + REMOTE_AT, data, 8 * 512);
	transfer(&s, ROUTE_RECEIVE, 0, 8 * 512);
	reference_stream(&crc32_512, data, 8 * 512, framed);
	expect_only(&s.local, LOCAL_AT, framed, 8 * 516);
	expect_no_error(&s.local, 0);
	pair_close(&s);
}

/* Examples 2 and 2.1: nothing in memory, T10-DIF on the wire, used by the peer. */
static void example_2(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, &dif_4096, 8 * 4096, 0xff);
	struct connected_pair s;

	(void)t;
	open_with_data(&s, NULL);
	configure(&s.local, 0, &c);
	memcpy(s.local.memory + LOCAL_AT, data, 8 * 4096);
	transfer(&s, ROUTE_READ_BY, 0, 8 * 4104);
	reference_stream(&dif_4096, data, 8 * 4096, framed);
	expect_only(&s.remote, REMOTE_AT, framed, 8 * 4104);
	expect_no_error(&s.local, 0);
	pair_close(&s);
}

static void example_2_1(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, &dif_4096, 8 * 4096, 0xff);
	struct connected_pair s;

	(void)t;
	open_with_data(&s, NULL);
	configure(&s.local, 0, &c);
	reference_stream(&dif_4096, data, 8 * 4096, framed);
	memcpy(s.remote.memory + REMOTE_AT, framed, 8 * 4104);
	transfer(&s, ROUTE_WRITTEN, 0, 8 * 4104);
	expect_only(&s.local, LOCAL_AT, data, 8 * 4096);
	expect_no_error(&s.local, 0);
	for (uint32_t i = 0; i < 8; i++) {
		uint64_t good = reference_number(DIF_CRC, true, data + i * 4096, 4096);

		configure(&s.local, 0, &c);
		s.remote.memory[REMOTE_AT + i * 4104 + 4097] ^= 0x20;
		transfer(&s, ROUTE_WRITTEN, 0, 8 * 4104);
		expect_error(&s.local, 0,
			     (struct expected_error){
				     .type = MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
				     .calculated = good,
				     .found = good ^ 0x20,
				     .block = i,
				     .unit = 4104,
			     });
		s.remote.memory[REMOTE_AT + i * 4104 + 4097] ^= 0x20;
		expect_only(&s.local, LOCAL_AT, data, 8 * 4096);
	}
	pair_close(&s);
}

const struct test example_tests[] = {
	{"example-1-SEND-checks-and-strips-CRC32", example_1, {2, 3, 11}},
	{"example-1.1-RECEIVE-adds-CRC32", example_1_1, {4, 11}},
	{"example-2-READ-of-the-peer-adds-T10-DIF", example_2, {5, 10}},
	{"example-2.1-WRITE-of-the-peer-checks-and-strips", example_2_1, {6, 7, 10}},
	{0},
};
