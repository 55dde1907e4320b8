// SPDX-License-Identifier: BSD-2-Clause
/* mlx5dv_mkey_check(3): which error is kept, what it says, when it can be seen. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "conform.h"

#define BLOCK 512u
#define UNIT  520u

static const struct domain dif = {DIF_CRC, MLX5DV_BLOCK_SIZE_512, true, 0x1234, 77, 0};

/* Blocks of local memory with good signatures, and a key that checks them. */
static void open_with_blocks(struct connected_pair *s, const struct setup *setup, uint32_t blocks)
{
	struct key_conf c = signature_conf(&dif, NULL, blocks * UNIT, 0xff);

	pair_open_signed(s, setup);
	configure(&s->local, 0, &c);
	for (uint32_t i = 0; i < blocks; i++) {
		uint8_t *unit = s->local.memory + LOCAL_AT + i * UNIT;

		fill_random(unit, BLOCK, i + 1);
		reference_signature(&dif, i, unit, unit + BLOCK);
	}
}

static uint8_t *signature_field(struct connected_pair *s, uint32_t block)
{
	return s->local.memory + LOCAL_AT + block * UNIT + BLOCK;
}

static void rearm_key(struct connected_pair *s, uint32_t blocks)
{
	struct key_conf c = signature_conf(&dif, NULL, blocks * UNIT, 0xff);

	configure(&s->local, 0, &c);
}

static struct expected_error bad_app(uint16_t found, uint32_t block)
{
	return (struct expected_error){MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG, dif.app, found, block,
				       UNIT};
}

static struct expected_error bad_ref(uint32_t found, uint32_t block)
{
	return (struct expected_error){MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG, dif.ref, found, block,
				       UNIT};
}

/* The transfer completes with success and delivers the data; all blocks are bad. */
static void transfer_succeeds(const struct test *t)
{
	struct connected_pair s;

	(void)t;
	open_with_blocks(&s, NULL, 4);
	for (uint32_t i = 0; i < 4; i++)
		signature_field(&s, i)[0] ^= 1;
	transfer(&s, ROUTE_SEND, 0, 4 * BLOCK);
	for (uint32_t i = 0; i < 4; i++)
		EXPECT(!memcmp(s.remote.memory + REMOTE_AT + i * BLOCK,
			       s.local.memory + LOCAL_AT + i * UNIT, BLOCK));
	SAME(state_of(&s.local), IBV_QPS_RTS);
	SAME(check(&s.local, 0).err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD);
	/* And the queue pair goes on. */
	transfer(&s, ROUTE_WRITE, 0, 4 * BLOCK);
	expect_no_event(&s.local);
	pair_close(&s);
}

/* In one transfer and in several: the first is kept, and only until it is asked for. */
static void first_error(const struct test *t)
{
	struct connected_pair s;

	(void)t;
	open_with_blocks(&s, NULL, 4);
	signature_field(&s, 1)[3] = 0x35;
	signature_field(&s, 2)[7] = 1;
	signature_field(&s, 3)[0] ^= 1;
	transfer(&s, ROUTE_SEND, 0, 4 * BLOCK);
	/* Another transfer, another error: still the first. */
	signature_field(&s, 0)[7] = 99;
	transfer(&s, ROUTE_WRITE, 0, BLOCK);
	expect_error(&s.local, 0, bad_app(0x1235, 1));
	expect_no_error(&s.local, 0);
	/* Armed again, it finds what comes first now. */
	rearm_key(&s, 4);
	transfer(&s, ROUTE_WRITE, 0, 4 * BLOCK);
	expect_error(&s.local, 0, bad_ref(99, 0));
	pair_close(&s);
}

/* What a reconfiguration does not clear: an error that nobody has asked for. */
static void kept_over_configuration(const struct test *t)
{
	struct connected_pair s;

	(void)t;
	open_with_blocks(&s, NULL, 2);
	signature_field(&s, 0)[3] = 0x36;
	transfer(&s, ROUTE_SEND, 0, 2 * BLOCK);
	rearm_key(&s, 2);
	expect_error(&s.local, 0, bad_app(0x1236, 0));
	expect_no_error(&s.local, 0);
	pair_close(&s);
}

/* Guard, then application tag, then reference tag. */
static void test_order(const struct test *t)
{
	struct connected_pair s;
	uint64_t guard;

	(void)t;
	open_with_blocks(&s, NULL, 1);
	guard = reference_number(DIF_CRC, true, s.local.memory + LOCAL_AT, BLOCK);
	signature_field(&s, 0)[1] ^= 1;
	signature_field(&s, 0)[3] = 0x35;
	signature_field(&s, 0)[7] = 78;
	transfer(&s, ROUTE_SEND, 0, BLOCK);
	expect_error(&s.local, 0,
		     (struct expected_error){.type = MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
					     .calculated = guard,
					     .found = guard ^ 1,
					     .unit = UNIT});
	signature_field(&s, 0)[1] ^= 1;
	rearm_key(&s, 1);
	transfer(&s, ROUTE_SEND, 0, BLOCK);
	expect_error(&s.local, 0, bad_app(0x1235, 0));
	signature_field(&s, 0)[3] = 0x34;
	rearm_key(&s, 1);
	transfer(&s, ROUTE_SEND, 0, BLOCK);
	expect_error(&s.local, 0, bad_ref(78, 0));
	signature_field(&s, 0)[7] = 77;
	rearm_key(&s, 1);
	transfer(&s, ROUTE_SEND, 0, BLOCK);
	expect_no_error(&s.local, 0);
	pair_close(&s);
}

static void test_offsets(const struct test *t)
{
	enum { BLOCKS = 24 };
	struct connected_pair s;

	(void)t;
	open_with_blocks(&s, NULL, BLOCKS);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		signature_field(&s, i)[7]++;
		rearm_key(&s, BLOCKS);
		transfer(&s, i % 2 ? ROUTE_SEND : ROUTE_READ_BY, 0, BLOCKS * BLOCK);
		expect_error(&s.local, 0, bad_ref(78, i));
		signature_field(&s, i)[7]--;
	}
	pair_close(&s);
}

/* Values of errno, as such; a key without signatures has nothing to check. */
static void return_values(const struct test *t)
{
	struct mlx5dv_mkey_err e;
	struct connected_pair s;

	(void)t;
	open_with_blocks(&s, NULL, 1);
	SAME(try_check(&s.local, 0, &e), 0);
	SAME(e.err_type, MLX5DV_MKEY_NO_ERR);
	key_create(&s.local, 1, MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, 4);
	SAME(try_check(&s.local, 1, &e), EINVAL);
	signature_field(&s, 0)[7]++;
	transfer(&s, ROUTE_SEND, 0, BLOCK);
	SAME(try_check(&s.local, 0, &e), 0);
	SAME(e.err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG);
	pair_close(&s);
}

/* With the one completion of the transfer the error is there: no other poll is needed. */
static void seen_with_the_completion(const struct test *t)
{
	enum route r = (enum route)t->arg;
	struct setup setup = {.own_cqs = true};
	bool gathers = route_gathers(r);
	struct connected_pair s;

	open_with_blocks(&s, &setup, 1);
	if (gathers) {
		signature_field(&s, 0)[7] = 1;
	} else {
		struct key_conf c = signature_conf(NULL, &dif, BLOCK, 0xff);

		signature_field(&s, 0)[7] = 1;
		memcpy(s.remote.memory + REMOTE_AT, s.local.memory + LOCAL_AT, UNIT);
		configure(&s.local, 0, &c);
	}
	for (int i = 0; i < 20; i++) {
		transfer(&s, r, 0, gathers ? BLOCK : UNIT);
		expect_error(&s.local, 0, bad_ref(1, 0));
		if (gathers) {
			rearm_key(&s, 1);
		} else {
			struct key_conf c = signature_conf(NULL, &dif, BLOCK, 0xff);

			configure(&s.local, 0, &c);
		}
	}
	pair_close(&s);
}

/* Each key has its own. */
static void errors_of_two_keys(const struct test *t)
{
	struct key_conf c = signature_conf(&dif, NULL, UNIT, 0xff);
	struct connected_pair s;

	(void)t;
	open_with_blocks(&s, NULL, 2);
	signature_key(&s, 1);
	c.piece[0].at += UNIT;
	configure(&s.local, 1, &c);
	signature_field(&s, 0)[7] = 1;
	signature_field(&s, 1)[3] = 1;
	transfer(&s, ROUTE_WRITE, 0, BLOCK);
	transfer(&s, ROUTE_WRITE, 1, BLOCK);
	expect_error(&s.local, 1, bad_app(0x1201, 0));
	expect_error(&s.local, 0, bad_ref(1, 0));
	expect_no_error(&s.local, 0);
	expect_no_error(&s.local, 1);
	pair_close(&s);
}

/* An inbound write: after the first error the key is silent until it is configured again. */
static void one_report(const struct test *t)
{
	static const struct domain wire = {CRC32C, MLX5DV_BLOCK_SIZE_512, false, 0, 0, 0};
	struct key_conf c = signature_conf(NULL, &wire, BLOCK, 0xff);
	struct connected_pair s;

	(void)t;
	pair_open_signed(&s, NULL);
	configure(&s.local, 0, &c);
	fill_random(s.remote.memory + REMOTE_AT, 516, 6);
	transfer(&s, ROUTE_WRITTEN, 0, 516);
	SAME(check(&s.local, 0).err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD);
	/* Silent until armed again. */
	transfer(&s, ROUTE_WRITTEN, 0, 516);
	expect_no_error(&s.local, 0);
	pair_close(&s);
}

/* The completion of the write's immediate data is the peer's message. */
static void seen_with_immediate(const struct test *t)
{
	struct key_conf c = signature_conf(NULL, &dif, BLOCK, 0xff);
	struct request q = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.flags = IBV_SEND_SIGNALED,
		.slices = 1,
		.slice = {{ORDER_WHOLE, REMOTE_AT, UNIT}},
	};
	struct connected_pair s;

	(void)t;
	open_with_blocks(&s, &(struct setup){.own_cqs = true}, 1);
	signature_field(&s, 0)[7] = 1;
	memcpy(s.remote.memory + REMOTE_AT, s.local.memory + LOCAL_AT, UNIT);
	q.rkey = s.local.key[0].rkey;
	for (int i = 0; i < 20; i++) {
		configure(&s.local, 0, &c);
		receive(&s.local, 1, (struct slice){ORDER_WHOLE, 0, 0});
		post(&s.remote, &q);
		SAME(success(&s.local, RECEIVES).opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		expect_error(&s.local, 0, bad_ref(1, 0));
		success(&s.remote, SENDS);
	}
	pair_close(&s);
}

/* A queue that has nothing but the error: polling says that it is empty, and the error is known. */
static void seen_by_polling(const struct test *t)
{
	struct setup setup = {.own_cqs = true, .cqe_bytes = 64};
	struct request q = {.opcode = IBV_WR_RDMA_WRITE, .slices = 1, .slice = {{0, 0, BLOCK}}};
	struct ibv_poll_cq_attr attr = {0};
	struct connected_pair s;

	open_with_blocks(&s, &setup, 1);
	signature_field(&s, 0)[7] = 1;
	q.rkey = s.remote.address.rkey;
	q.raddr = s.remote.address.base + REMOTE_AT;
	post(&s.local, &q);
	/* Of the transfer itself there is no completion; a moment later it is over. */
	for (int i = 0; i < 1000 && s.remote.memory[REMOTE_AT + BLOCK - 1] == CANARY; i++)
		poll(NULL, 0, 1);
	poll(NULL, 0, (int)PROXY_A_WHILE_MS);
	expect_no_error(&s.local, 0);
	if (t->arg)
		SAME(ibv_start_poll(s.local.endpoint->send_cq_ex, &attr), ENOENT);
	else
		expect_no_completion(&s.local, SENDS);
	expect_error(&s.local, 0, bad_ref(1, 0));
	pair_close(&s);
}

const struct test error_tests[] = {
	{"transfer-succeeds-in-spite-of-errors", transfer_succeeds, {51}},
	{"first-error-kept", first_error, {52, 53, 55}},
	{"error-kept-over-a-configuration", kept_over_configuration, {52}},
	{"guard-before-tags", test_order, {54, 55}},
	{"offset-of-each-block", test_offsets, {59, 58}},
	{"results-of-the-check", return_values, {60, 55}},
	{"seen-with-the-completion-of-a-SEND", seen_with_the_completion, {62}, ROUTE_SEND},
	{"seen-with-the-completion-of-a-WRITE", seen_with_the_completion, {62}, ROUTE_WRITE},
	{"seen-with-the-completion-of-a-READ", seen_with_the_completion, {62}, ROUTE_READ},
	{"seen-with-the-completion-of-a-RECEIVE", seen_with_the_completion, {62}, ROUTE_RECEIVE},
	{"seen-with-the-message-after-a-WRITE", seen_with_the_completion, {63}, ROUTE_WRITTEN},
	{"seen-with-the-message-after-a-READ", seen_with_the_completion, {63}, ROUTE_READ_BY},
	{"seen-with-immediate-data", seen_with_immediate, {63}},
	{"seen-by-ibv_poll_cq-of-nothing", seen_by_polling, {62, 70}, 0},
	{"seen-by-ibv_start_poll-of-nothing", seen_by_polling, {62, 70}, 1},
	{"errors-of-two-keys", errors_of_two_keys, {53, 57}},
	{"one-report-until-armed", one_report, {52, 63}},
	{0},
};
