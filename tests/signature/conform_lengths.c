// SPDX-License-Identifier: BSD-2-Clause
/*
 * How much crosses the wire and how much memory that is: parts of blocks, accesses in pieces,
 * packets that end anywhere, accesses past the end.
 */
#include <poll.h>
#include <string.h>

#include "conform.h"

static const struct domain crc32_512 = {CRC32, MLX5DV_BLOCK_SIZE_512, true, 0, 0, 0};
static const struct domain dif_512 = {DIF_CRC,	  MLX5DV_BLOCK_SIZE_512,	   true, 0xabcd,
				      0x01234567, MLX5DV_SIG_T10DIF_FLAG_REF_REMAP};
static const struct domain dif_4096 = {DIF_CRC,	   MLX5DV_BLOCK_SIZE_4096,	    true, 0xabcd,
				       0x01234567, MLX5DV_SIG_T10DIF_FLAG_REF_REMAP};

static uint8_t data[ROOM];
static uint8_t framed[ROOM];

static void open_with_data(struct connected_pair *s, const struct setup *setup)
{
	pair_open_signed(s, setup);
	fill_random(data, sizeof(data), options.seed);
}

/* So much data, not a number of whole blocks, in each way; a part of a block has no signature. */
static void some_bytes(struct connected_pair *s, const struct domain *mem,
		       const struct domain *wire, uint32_t bytes)
{
	static const struct domain none = {NO_SIGNATURE, MLX5DV_BLOCK_SIZE_512, false, 0, 0, 0};

	mem = mem ? mem : &none;
	wire = wire ? wire : &none;
	for (enum route r = 0; r < ROUTES; r++) {
		bool gathers = route_gathers(r);
		uint32_t in_memory = (uint32_t)reference_length(mem, bytes);
		uint32_t on_wire = (uint32_t)reference_length(wire, bytes);
		struct key_conf c = signature_conf(mem, wire, in_memory, 0xff);

		fill_canary(&s->local);
		fill_canary(&s->remote);
		configure(&s->local, 0, &c);
		reference_stream(gathers ? mem : wire, data, bytes,
				 gathers ? s->local.memory + LOCAL_AT
					 : s->remote.memory + REMOTE_AT);
		reference_stream(gathers ? wire : mem, data, bytes, framed);
		transfer(s, r, 0, on_wire);
		expect_no_error(&s->local, 0);
		expect_only(gathers ? &s->remote : &s->local, gathers ? REMOTE_AT : LOCAL_AT,
			    framed, gathers ? on_wire : in_memory);
	}
}

static void parts_of_blocks(const struct test *t)
{
	static const uint32_t lengths[] = {1, 8, 511, 513, 1000, 4095, 4100, 8192 + 8};
	struct connected_pair s;

	(void)t;
	open_with_data(&s, NULL);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		some_bytes(&s, &crc32_512, NULL, lengths[i]);
		some_bytes(&s, NULL, &dif_512, lengths[i]);
		some_bytes(&s, &crc32_512, &dif_4096, lengths[i]);
		some_bytes(&s, &dif_512, &dif_512, lengths[i]);
	}
	pair_close(&s);
}

/* Units that end nowhere near the ends of packets. */
static void test_packets(const struct test *t)
{
	static const enum ibv_mtu mtus[] = {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_4096};
	static const struct domain odd = {CRC64, MLX5DV_BLOCK_SIZE_4048, false, 0, 0, 0};

	(void)t;
	for (int i = 0; i < 4; i++) {
		struct connected_pair s;

		open_with_data(&s, &(struct setup){.mtu = mtus[i]});
		some_bytes(&s, &dif_512, NULL, 60 * 512);
		some_bytes(&s, NULL, &dif_512, 60 * 512);
		some_bytes(&s, &dif_512, &odd, 60 * 512);
		some_bytes(&s, &odd, &crc32_512, 15 * 4048);
		pair_close(&s);
	}
}

/* Much at once, and the last block of it is bad. */
static void test_large(const struct test *t)
{
	enum { BLOCKS = 57 };
	struct key_conf c = signature_conf(&dif_4096, NULL, BLOCKS * 4104, 0xff);
	uint64_t guard;
	struct connected_pair s;

	(void)t;
	open_with_data(&s, &(struct setup){.mtu = IBV_MTU_4096});
	some_bytes(&s, &dif_4096, NULL, BLOCKS * 4096);
	some_bytes(&s, NULL, &crc32_512, BLOCKS * 4096);
	some_bytes(&s, &dif_4096, &crc32_512, BLOCKS * 4096);
	some_bytes(&s, &dif_4096, &dif_4096, BLOCKS * 4096);
	guard = reference_number(DIF_CRC, true, data + (BLOCKS - 1) * 4096, 4096);
	for (enum route r = ROUTE_SEND; r <= ROUTE_READ_BY; r++) {
		configure(&s.local, 0, &c);
		reference_stream(&dif_4096, data, BLOCKS * 4096, s.local.memory + LOCAL_AT);
		s.local.memory[LOCAL_AT + BLOCKS * 4104 - 8] ^= 0x01;
		transfer(&s, r, 0, BLOCKS * 4096);
		expect_error(&s.local, 0,
			     (struct expected_error){
				     .type = MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
				     .calculated = guard,
				     .found = guard ^ 0x100,
				     .block = BLOCKS - 1,
				     .unit = 4104,
			     });
	}
	pair_close(&s);
}

/* Keys with signatures on both sides: the wire has one form, each memory its own. */
static void both_sides(const struct test *t)
{
	static const struct {
		struct domain local;
		struct domain wire;
		struct domain remote;
	} chains[] = {
		{{CRC32, 0, false, 0, 0, 0}, {0}, {CRC32C, 0, false, 0, 0, 0}},
		{{CRC32, 0, true, 0, 0, 0}, {0}, {CRC64, 0, true, 0, 0, 0}},
		{{DIF_CRC, 0, false, 1, 2, 0},
		 {DIF_CRC, 0, true, 1, 2, 0},
		 {DIF_CRC, 0, true, 1, 2, 0}},
		{{DIF_CRC, 0, true, 1, 2, 1},
		 {DIF_CSUM, 0, true, 1, 2, 1},
		 {DIF_CRC, 0, true, 1, 2, 1}},
		{{0}, {CRC32C, 0, true, 0, 0, 0}, {0}},
		{{DIF_CRC, MLX5DV_BLOCK_SIZE_4096, true, 7, 9, 1},
		 {CRC64, 0, true, 0, 0, 0},
		 {DIF_CSUM, MLX5DV_BLOCK_SIZE_520, true, 8, 10, 1}},
	};
	enum { BYTES = 8 * 4096 };
	struct connected_pair s;

	(void)t;
	open_with_data(&s, NULL);
	key_create(&s.remote, 0,
		   MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
			   MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
		   4);
	for (size_t i = 0; i < sizeof(chains) / sizeof(*chains); i++) {
		uint32_t local = (uint32_t)reference_length(&chains[i].local, BYTES);
		uint32_t wire = (uint32_t)reference_length(&chains[i].wire, BYTES);
		uint32_t remote = (uint32_t)reference_length(&chains[i].remote, BYTES);
		struct key_conf from =
			signature_conf(&chains[i].local, &chains[i].wire, local, 0xff);
		struct key_conf to =
			signature_conf(&chains[i].remote, &chains[i].wire, remote, 0xff);
		struct request q = {
			.opcode = IBV_WR_SEND,
			.flags = IBV_SEND_SIGNALED,
			.slices = 1,
			.slice = {{0, 0, wire}},
		};

		to.piece[0].at = REMOTE_AT;
		configure(&s.local, 0, &from);
		configure(&s.remote, 0, &to);
		fill_canary(&s.remote);
		reference_stream(&chains[i].local, data, BYTES, s.local.memory + LOCAL_AT);
		receive(&s.remote, 1, (struct slice){0, 0, wire});
		post(&s.local, &q);
		success(&s.local, SENDS);
		SAME(success(&s.remote, RECEIVES).byte_len, wire);
		expect_no_error(&s.local, 0);
		expect_no_error(&s.remote, 0);
		reference_stream(&chains[i].remote, data, BYTES, framed);
		expect_only(&s.remote, REMOTE_AT, framed, remote);
	}
	pair_close(&s);
}

/* Pieces of one access, one after the other, are as good as the whole. */
static void test_pieces(const struct test *t)
{
	static const uint32_t sizes[] = {520, 1040, 512, 1000, 777, 8, 4096};
	uint32_t total = 16 * 520;
	struct key_conf c = signature_conf(NULL, &dif_512, 16 * 512, 0xff);
	struct connected_pair s;

	(void)t;
	open_with_data(&s, NULL);
	reference_stream(&dif_512, data, 16 * 512, framed);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (enum route r = ROUTE_READ_BY; r <= ROUTE_WRITTEN;
		     r += ROUTE_WRITTEN - ROUTE_READ_BY) {
			bool gathers = route_gathers(r);

			if (sizes[i] < 512)
				total = 2 * 520; /* else it takes too long */
			configure(&s.local, 0, &c);
			fill_canary(&s.local);
			fill_canary(&s.remote);
			if (gathers)
				memcpy(s.local.memory + LOCAL_AT, data, 16 * 512);
			for (uint32_t at = 0; at < total; at += sizes[i]) {
				uint32_t n = total - at < sizes[i] ? total - at : sizes[i];

				if (gathers) {
					transfer_at(&s, r, 0, at, n);
					EXPECT(!memcmp(s.remote.memory + REMOTE_AT, framed + at,
						       n));
				} else {
					memcpy(s.remote.memory + REMOTE_AT, framed + at, n);
					transfer_at(&s, r, 0, at, n);
				}
			}
			expect_no_error(&s.local, 0);
			if (!gathers)
				expect_only(&s.local, LOCAL_AT, data, total / 520 * 512);
			total = 16 * 520;
		}
	}
	pair_close(&s);
}

/* The same key again and again, from offset 0: each time the first block. */
static void test_again(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, &dif_512, 4 * 512, 0xff);
	struct connected_pair s;

	(void)t;
	open_with_data(&s, NULL);
	configure(&s.local, 0, &c);
	reference_stream(&dif_512, data, 4 * 512, framed);
	for (int i = 0; i < 10; i++) {
		fill_canary(&s.local);
		fill_canary(&s.remote);
		memcpy(s.local.memory + LOCAL_AT, data, 4 * 512);
		transfer(&s, ROUTE_SEND, 0, 4 * 520);
		expect_only(&s.remote, REMOTE_AT, framed, 4 * 520);
		fill_canary(&s.local);
		transfer(&s, ROUTE_RECEIVE, 0, 4 * 520);
		expect_only(&s.local, LOCAL_AT, data, 4 * 512);
	}
	expect_no_error(&s.local, 0);
	pair_close(&s);
}

/* From the second block on: position and reference tag follow from the offset. */
static void from_an_offset(const struct test *t)
{
	struct key_conf c = signature_conf(&dif_512, &dif_512, 8 * 520, 0xff);
	struct connected_pair s;

	(void)t;
	open_with_data(&s, NULL);
	reference_stream(&dif_512, data, 8 * 512, framed);
	for (enum route r = 0; r < ROUTES; r++) {
		bool gathers = route_gathers(r);

		configure(&s.local, 0, &c);
		fill_canary(&s.local);
		fill_canary(&s.remote);
		memcpy(gathers ? s.local.memory + LOCAL_AT + 3 * 520 : s.remote.memory + REMOTE_AT,
		       framed + 3 * 520, 2 * 520);
		transfer_at(&s, r, 0, 3 * 520, 2 * 520);
		expect_no_error(&s.local, 0);
		expect_only(gathers ? &s.remote : &s.local,
			    gathers ? REMOTE_AT : LOCAL_AT + 3 * 520, framed + 3 * 520, 2 * 520);
	}
	pair_close(&s);
}

/* One byte more than the key's memory is worth on the wire. */
static void past_the_end(const struct test *t)
{
	static const struct {
		const struct domain *mem;
		const struct domain *wire;
		uint32_t memory;
		uint32_t most; /* on the wire */
	} cases[] = {
		{NULL, &dif_512, 512, 520},
		{&crc32_512, NULL, 516, 512},
		{&dif_512, &dif_512, 1040, 1040},
	};

	(void)t;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct key_conf c = signature_conf(cases[i].mem, cases[i].wire, cases[i].memory, 0);
		struct request q = {
			.opcode = IBV_WR_RDMA_WRITE,
			.flags = IBV_SEND_SIGNALED,
			.slices = 1,
			.slice = {{0, 0, cases[i].most + 1}},
		};
		struct connected_pair s;

		/* Its own request. */
		open_with_data(&s, NULL);
		configure(&s.local, 0, &c);
		transfer(&s, ROUTE_WRITE, 0, cases[i].most);
		fill_canary(&s.remote);
		q.rkey = s.remote.address.rkey;
		q.raddr = s.remote.address.base + REMOTE_AT;
		post(&s.local, &q);
		SAME(completion(&s.local, SENDS).status, IBV_WC_LOC_PROT_ERR);
		pair_close(&s);

		/* The peer's: nothing beyond the key is written. */
		open_with_data(&s, NULL);
		configure(&s.local, 0, &c);
		q.slice[0] = (struct slice){ORDER_WHOLE, REMOTE_AT, cases[i].most + 1};
		q.rkey = s.local.key[0].rkey;
		q.raddr = 0;
		memset(s.local.memory + LOCAL_AT, CANARY, cases[i].memory);
		post(&s.remote, &q);
		SAME(completion(&s.remote, SENDS).status, IBV_WC_REM_ACCESS_ERR);
		memset(s.local.memory + LOCAL_AT, CANARY, cases[i].memory);
		expect_only(&s.local, 0, NULL, 0);
		pair_close(&s);
	}
}

/* Nothing is moved, nothing checked. */
static void no_bytes(const struct test *t)
{
	struct key_conf c = signature_conf(&dif_512, NULL, 520, 0xff);
	struct connected_pair s;

	(void)t;
	open_with_data(&s, NULL);
	configure(&s.local, 0, &c);
	for (enum route r = 0; r < ROUTES; r++) {
		transfer(&s, r, 0, 0);
		expect_no_error(&s.local, 0);
		expect_only(&s.local, 0, NULL, 0);
		expect_only(&s.remote, 0, NULL, 0);
	}
	pair_close(&s);
}

/* Plain memory, a key with signatures and plain memory in one message, which odd lengths part. */
static void mixed_lists(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, &dif_512, 3 * 512, 0xff);
	struct request q = {
		.opcode = IBV_WR_SEND,
		.flags = IBV_SEND_SIGNALED,
		.slices = 3,
		.slice = {{ORDER_WHOLE, 64, 13}, {0, 0, 3 * 520}, {ORDER_WHOLE, 128, 21}},
	};
	uint8_t want[13 + 3 * 520 + 21];
	struct connected_pair s;

	(void)t;
	open_with_data(&s, &(struct setup){.mtu = IBV_MTU_256});
	configure(&s.local, 0, &c);
	memcpy(s.local.memory + LOCAL_AT, data, 3 * 512);
	memset(s.local.memory + 64, 'x', 13);
	memset(s.local.memory + 128, 'y', 21);
	memset(want, 'x', 13);
	reference_stream(&dif_512, data, 3 * 512, want + 13);
	memset(want + 13 + 3 * 520, 'y', 21);
	receive(&s.remote, 1, (struct slice){ORDER_WHOLE, REMOTE_AT, sizeof(want)});
	post(&s.local, &q);
	success(&s.local, SENDS);
	SAME(success(&s.remote, RECEIVES).byte_len, sizeof(want));
	expect_only(&s.remote, REMOTE_AT, want, sizeof(want));
	pair_close(&s);
}

/* The same into such a list, by a message and by a read. */
static void mixed_scatter(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, &dif_512, 3 * 512, 0xff);
	struct slice list[] = {{ORDER_WHOLE, 64, 13}, {0, 0, 3 * 520}, {ORDER_WHOLE, 128, 21}};
	enum { BYTES = 13 + 3 * 520 + 21 };
	struct request q = {
		.opcode = t->arg ? IBV_WR_RDMA_READ : IBV_WR_SEND,
		.flags = IBV_SEND_SIGNALED,
		.slices = 1,
		.slice = {{ORDER_WHOLE, REMOTE_AT, BYTES}},
	};
	struct connected_pair s;

	open_with_data(&s, &(struct setup){.mtu = IBV_MTU_256});
	configure(&s.local, 0, &c);
	memset(s.remote.memory + REMOTE_AT, 'x', 13);
	reference_stream(&dif_512, data, 3 * 512, s.remote.memory + REMOTE_AT + 13);
	memset(s.remote.memory + REMOTE_AT + 13 + 3 * 520, 'y', 21);
	if (t->arg) {
		q.slices = 3;
		memcpy(q.slice, list, sizeof(list));
		q.rkey = s.remote.address.rkey;
		q.raddr = s.remote.address.base + REMOTE_AT;
		post(&s.local, &q);
		success(&s.local, SENDS);
	} else {
		SAME(endpoint_receive(s.local.endpoint, 1, 3, list), 0);
		post(&s.remote, &q);
		success(&s.remote, SENDS);
		SAME(success(&s.local, RECEIVES).byte_len, BYTES);
	}
	expect_no_error(&s.local, 0);
	for (int i = 0; i < 13; i++)
		SAME(s.local.memory[64 + i], 'x');
	for (int i = 0; i < 21; i++)
		SAME(s.local.memory[128 + i], 'y');
	memset(s.local.memory + 64, CANARY, 13);
	memset(s.local.memory + 128, CANARY, 21);
	expect_only(&s.local, LOCAL_AT, data, 3 * 512);
	pair_close(&s);
}

/* The receiver is not ready: what is sent again is checked and made as if it were the first
 * time. */
static void sent_again(const struct test *t)
{
	struct key_conf c = signature_conf(&crc32_512, &dif_512, 8 * 516, 0xff);
	struct request q = {
		.opcode = IBV_WR_SEND,
		.flags = IBV_SEND_SIGNALED,
		.slices = 1,
		.slice = {{0, 0, 8 * 520}},
	};
	uint64_t found = 0;
	struct connected_pair s;
	uint8_t *bad;

	(void)t;
	open_with_data(&s, &(struct setup){.mtu = IBV_MTU_256});
	for (int i = 0; i < 10; i++) {
		configure(&s.local, 0, &c);
		fill_canary(&s.remote);
		reference_stream(&crc32_512, data, 8 * 512, s.local.memory + LOCAL_AT);
		bad = s.local.memory + LOCAL_AT + 6 * 516 + 512;
		bad[3] ^= 1;
		found = (uint64_t)bad[0] << 24 | bad[1] << 16 | bad[2] << 8 | bad[3];
		post(&s.local, &q);
		poll(NULL, 0, i % 4);
		receive(&s.remote, 1, (struct slice){ORDER_WHOLE, REMOTE_AT, 8 * 520});
		success(&s.local, SENDS);
		SAME(success(&s.remote, RECEIVES).byte_len, 8 * 520);
		reference_stream(&dif_512, data, 8 * 512, framed);
		expect_only(&s.remote, REMOTE_AT, framed, 8 * 520);
		expect_error(&s.local, 0,
			     (struct expected_error){
				     .type = MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
				     .calculated = found ^ 1,
				     .found = found,
				     .block = 6,
				     .unit = 516,
			     });
		expect_no_error(&s.local, 0);
	}
	pair_close(&s);
}

/* A receive with less room than the message has on the wire. */
static void short_receive(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, &dif_512, 4 * 512, 0xff);
	struct request q = {
		.opcode = IBV_WR_SEND,
		.flags = IBV_SEND_SIGNALED,
		.slices = 1,
		.slice = {{ORDER_WHOLE, REMOTE_AT, 2 * 520}},
	};
	struct connected_pair s;

	(void)t;
	open_with_data(&s, &(struct setup){.own_cqs = true});
	configure(&s.local, 0, &c);
	receive(&s.local, 1, (struct slice){0, 0, 2 * 520 - 1});
	post(&s.remote, &q);
	SAME(completion(&s.local, RECEIVES).status, IBV_WC_LOC_LEN_ERR);
	SAME(completion(&s.remote, SENDS).status, IBV_WC_REM_INV_REQ_ERR);
	memset(s.local.memory + LOCAL_AT, CANARY, 2 * 512);
	expect_only(&s.local, 0, NULL, 0);
	pair_close(&s);
}

const struct test length_tests[] = {
	{"parts-of-blocks", parts_of_blocks, {1}},
	{"units-across-packets", test_packets, {1, 32, 43}},
	{"large-transfers", test_large, {1, 59}},
	{"keys-with-signatures-on-both-sides", both_sides, {1}},
	{"access-in-pieces", test_pieces, {1, 95}},
	{"the-same-key-ten-times", test_again, {1, 37}},
	{"access-from-an-offset", from_an_offset, {37, 95}},
	{"access-past-the-end", past_the_end, {1}},
	{"access-of-nothing", no_bytes, {1}},
	{"plain-and-signed-slices-in-one-message", mixed_lists, {1}},
	{"message-into-plain-and-signed-slices", mixed_scatter, {1}, 0},
	{"read-into-plain-and-signed-slices", mixed_scatter, {1}, 1},
	{"sent-again-to-a-late-receiver", sent_again, {1, 52}},
	{"receive-with-too-little-room", short_receive, {1}},
	{0},
};
