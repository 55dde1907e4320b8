// SPDX-License-Identifier: BSD-2-Clause
/* mlx5dv_qp_cancel_posted_send_wrs(3): which requests, when, and what completes. */
#include <errno.h>
#include <string.h>

#include "conform.h"
#include "pipeline.h"

/* A drained queue pair with these requests behind the failed transfer. */
static void drained_with(struct connected_pair *s, unsigned count, const struct request *r)
{
	struct ibv_wc wc[4];
	struct request w;

	pipeline_open(s, true, 2);
	pipeline_fill(s, 0, false);
	w = pipeline_write(s, 0, 1, 0);
	post(&s->local, &w);
	SAME(pipeline_drained(s, wc, 4), 0);
	SAME(check(&s->local, 0).err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD);
	for (unsigned i = 0; i < count; i++)
		pipeline_expect_receive(s, i);
	if (count)
		post_all(&s->local, count, r);
}

static void not_drained(const struct test *t)
{
	struct connected_pair s;

	(void)t;
	pipeline_open(&s, true, 1);
	SAME(cancel(&s.local, 1), (uint64_t)(int64_t)-EINVAL);
	pair_close(&s);
}

static void after_resuming(const struct test *t)
{
	struct request r = pipeline_response(NULL, 5, FENCED);
	struct connected_pair s;

	(void)t;
	drained_with(&s, 1, &r);
	SAME(cancel(&s.local, 6), 0);
	pipeline_resume(&s);
	SAME(success(&s.local, SENDS).wr_id, 5);
	success(&s.remote, RECEIVES);
	SAME(cancel(&s.local, 5), (uint64_t)(int64_t)-EINVAL);
	pair_close(&s);
}

/* Signalled ones complete with success and as what they were; others do not. */
static void test_signaling(const struct test *t)
{
	struct request r[] = {
		pipeline_response(NULL, 5, IBV_SEND_FENCE),
		pipeline_response(NULL, 6, FENCED),
		pipeline_response(NULL, 7, IBV_SEND_FENCE),
		pipeline_response(NULL, 8, FENCED),
	};
	struct ibv_wc wc;
	struct connected_pair s;

	(void)t;
	drained_with(&s, 4, r);
	for (uint64_t id = 5; id <= 7; id++)
		SAME(cancel(&s.local, id), 1);
	pipeline_resume(&s);
	wc = success(&s.local, SENDS);
	SAME(wc.wr_id, 6);
	SAME(wc.opcode, IBV_WC_SEND);
	SAME(success(&s.local, SENDS).wr_id, 8);
	expect_no_completion(&s.local, SENDS);
	SAME(success(&s.remote, RECEIVES).wr_id, 0);
	expect_no_completion(&s.remote, RECEIVES);
	pair_close(&s);
}

/* Each kind of request keeps its opcode in the completion, and does nothing. */
static void every_opcode(const struct test *t)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		enum ibv_wc_opcode completes_as;
	} kinds[] = {
		{IBV_WR_SEND, IBV_WC_SEND},
		{IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
		{IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE},
		{IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD},
		{IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP},
	};
	enum { KINDS = sizeof(kinds) / sizeof(*kinds) };
	struct connected_pair s;

	(void)t;
	pipeline_open_stopped(&s);
	fill_canary(&s.local);
	fill_canary(&s.remote);
	for (uint64_t i = 0; i < KINDS; i++) {
		struct request r = {
			.opcode = kinds[i].opcode,
			.flags = i ? IBV_SEND_SIGNALED : FENCED,
			.id = 50,
			.slices = 1,
			.slice = {{ORDER_WHOLE, 64, 8}},
			.rkey = s.remote.address.rkey,
			.raddr = s.remote.address.base + REMOTE_AT,
			.operand = {1, 2},
		};

		s.local.memory[64 + i] = (uint8_t)i;
		post(&s.local, &r);
	}
	pipeline_expect_receive(&s, 1);
	SAME(cancel(&s.local, 50), KINDS);
	pipeline_resume(&s);
	for (int i = 0; i < KINDS; i++) {
		struct ibv_wc got = success(&s.local, SENDS);

		SAME(got.wr_id, 50);
		SAME(got.opcode, kinds[i].completes_as);
	}
	expect_no_completion(&s.remote, RECEIVES);
	expect_only(&s.remote, 0, NULL, 0);
	pair_close(&s);
}

/* All of a number, wherever they stand, and no other. */
static void all_of_a_number(const struct test *t)
{
	struct request r[7];
	struct connected_pair s;

	(void)t;
	for (uint64_t i = 0; i < 7; i++)
		r[i] = pipeline_response(NULL, i % 2 ? 7 : 10 + i, FENCED);
	drained_with(&s, 7, r);
	SAME(cancel(&s.local, 7), 3);
	/* Once more: they still stand there, as what they are now. */
	SAME(cancel(&s.local, 99), 0);
	pipeline_resume(&s);
	for (uint64_t i = 0; i < 7; i++)
		SAME(success(&s.local, SENDS).wr_id, i % 2 ? 7 : 10 + i);
	for (int i = 0; i < 4; i++)
		success(&s.remote, RECEIVES);
	expect_no_completion(&s.remote, RECEIVES);
	pair_close(&s);
}

/* A cancelled configuration of a key configures nothing. */
static void test_configuration(const struct test *t)
{
	static const struct domain wire = {CRC64, MLX5DV_BLOCK_SIZE_512, false, 0, 0, 0};
	struct key_conf c = signature_conf(NULL, &wire, 512, 0xff);
	struct request r = pipeline_response(NULL, 5, FENCED);
	struct connected_pair s;
	int n;

	(void)t;
	drained_with(&s, 1, &r);
	c.wr_id = 60;
	c.unsignaled = true;
	SAME(try_configure(&s.local, 1, &c), 0);
	n = cancel(&s.local, 60);
	EXPECT(n >= 1);
	pipeline_resume(&s);
	SAME(success(&s.local, SENDS).wr_id, 5);
	/* The key is what it was. */
	pipeline_fill(&s, 1, true);
	memset(s.remote.memory + REMOTE_AT, CANARY, 1024);
	transfer(&s, ROUTE_WRITE, 1, PIPELINE_BLOCK);
	EXPECT(!memcmp(s.remote.memory + REMOTE_AT, s.local.memory + LOCAL_AT + PIPELINE_UNIT,
		       PIPELINE_BLOCK));
	SAME(s.remote.memory[REMOTE_AT + PIPELINE_BLOCK], CANARY);
	pair_close(&s);
}

/* To the error state instead of back: all is flushed, cancelled or not. */
static void test_flushed(const struct test *t)
{
	struct request r[] = {
		pipeline_response(NULL, 5, FENCED),
		pipeline_response(NULL, 6, FENCED),
	};
	struct connected_pair s;

	(void)t;
	drained_with(&s, 2, r);
	SAME(cancel(&s.local, 5), 1);
	SAME(change_state(&s.local, IBV_QPS_ERR, false), 0);
	for (uint64_t id = 5; id <= 6; id++) {
		struct ibv_wc wc = completion(&s.local, SENDS);

		SAME(wc.wr_id, id);
		SAME(wc.status, IBV_WC_WR_FLUSH_ERR);
	}
	SAME(state_of(&s.local), IBV_QPS_ERR);
	expect_no_completion(&s.remote, RECEIVES);
	pair_close(&s);
}

/* Nothing is pending: nothing is cancelled. */
static void nothing_pending(const struct test *t)
{
	struct connected_pair s;

	(void)t;
	drained_with(&s, 0, NULL);
	SAME(cancel(&s.local, 1), 0);
	SAME(cancel(&s.local, 2), 0);
	pipeline_resume(&s);
	transfer(&s, ROUTE_WRITE, 1, PIPELINE_BLOCK);
	expect_no_error(&s.local, 1);
	pair_close(&s);
}

/* Whoever brought the queue pair into SQD: the program itself may. */
static void drained_by_program(const struct test *t)
{
	struct request r = pipeline_response(NULL, 5, FENCED);
	struct connected_pair s;

	(void)t;
	pipeline_open(&s, true, 1);
	SAME(change_state(&s.local, IBV_QPS_SQD, false), 0);
	SAME(state_of(&s.local), IBV_QPS_SQD);
	pipeline_expect_receive(&s, 1);
	post(&s.local, &r);
	SAME(cancel(&s.local, 5), 1);
	pipeline_resume(&s);
	SAME(success(&s.local, SENDS).wr_id, 5);
	expect_no_completion(&s.remote, RECEIVES);
	transfer(&s, ROUTE_WRITE, 0, PIPELINE_BLOCK);
	expect_no_error(&s.local, 0);
	pair_close(&s);
}

/* A drained queue can be torn down and set up again. */
static void reset_while_drained(const struct test *t)
{
	struct request r = pipeline_response(NULL, 5, FENCED);
	struct connected_pair s;

	(void)t;
	drained_with(&s, 1, &r);
	SAME(change_state(&s.local, IBV_QPS_RESET, false), 0);
	SAME(state_of(&s.local), IBV_QPS_RESET);
	expect_no_completion(&s.local, SENDS);
	pair_close(&s);
}

const struct test cancel_tests[] = {
	{"EINVAL-unless-drained", not_drained, {73, 77}},
	{"EINVAL-after-resuming", after_resuming, {73, 77}},
	{"signaled-and-unsignaled", test_signaling, {74, 75}},
	{"every-opcode", every_opcode, {72, 74}},
	{"all-of-a-number", all_of_a_number, {77, 78}},
	{"a-configuration", test_configuration, {72, 78}},
	{"flushed-by-the-error-state", test_flushed, {76}, 0},
	{"drained-by-the-program", drained_by_program, {73, 77, 79}},
	{"nothing-pending", nothing_pending, {77}},
	{"reset-while-drained", reset_while_drained, {65}},
	{0},
};
