// SPDX-License-Identifier: BSD-2-Clause
/*
 * Signature pipelining: a queue pair made with MLX5DV_QP_CREATE_SIG_PIPELINING stops behind a
 * transfer with a signature error and before the next fenced request.
 */
#include <errno.h>
#include <string.h>

#include "conform.h"
#include "pipeline.h"

/* Nothing is wrong: nothing stops. */
static void good_flow(const struct test *t)
{
	struct request q[2];
	struct connected_pair s;

	(void)t;
	pipeline_open(&s, true, 1);
	for (uint64_t i = 0; i < 40; i++) {
		q[0] = pipeline_write(&s, 0, i, 0);
		q[1] = pipeline_response(&s, i, FENCED);
		pipeline_expect_receive(&s, i);
		post_all(&s.local, 2, q);
		SAME(success(&s.local, SENDS).wr_id, i);
		SAME(success(&s.remote, RECEIVES).wr_id, i);
		expect_no_error(&s.local, 0);
	}
	expect_no_event(&s.local);
	SAME(state_of(&s.local), IBV_QPS_RTS);
	pair_close(&s);
}

/* The sequence that the manual page prescribes. */
static void bad_flow(const struct test *t)
{
	struct request q[2];
	struct ibv_wc wc[4];
	struct connected_pair s;

	(void)t;
	pipeline_open(&s, true, 1);
	pipeline_fill(&s, 0, false);
	q[0] = pipeline_write(&s, 0, 1, IBV_SEND_SIGNALED);
	q[1] = pipeline_response(&s, 2, FENCED);
	pipeline_expect_receive(&s, 1);
	post_all(&s.local, 2, q);

	SAME(pipeline_drained(&s, wc, 4), 1);
	SAME(wc[0].wr_id, 1);
	SAME(wc[0].status, IBV_WC_SUCCESS);
	SAME(check(&s.local, 0).err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD);
	expect_no_error(&s.local, 0);
	/* The transfer went on, the response did not. */
	EXPECT(!memcmp(s.remote.memory + REMOTE_AT, s.local.memory + LOCAL_AT, PIPELINE_BLOCK));
	SAME(completions(&s.remote, RECEIVES, wc, 1, PROXY_A_WHILE_MS), 0);

	SAME(cancel(&s.local, 2), 1);
	/* Posted while it stands still. */
	q[0] = pipeline_response(&s, 3, IBV_SEND_SIGNALED);
	post(&s.local, q);
	SAME(completions(&s.local, SENDS, wc, 1, PROXY_A_WHILE_MS), 0);
	pipeline_resume(&s);
	for (uint64_t id = 2; id <= 3; id++) {
		wc[0] = success(&s.local, SENDS);
		SAME(wc[0].wr_id, id);
		SAME(wc[0].opcode, IBV_WC_SEND);
	}
	SAME(success(&s.remote, RECEIVES).wr_id, 1);
	SAME(state_of(&s.local), IBV_QPS_RTS);
	expect_no_completion(&s.remote, RECEIVES);
	expect_no_event(&s.local);
	/* And all works as before. */
	pipeline_fill(&s, 0, true);
	pipeline_arm(&s, 0);
	q[0] = pipeline_write(&s, 0, 5, IBV_SEND_SIGNALED);
	post(&s.local, q);
	SAME(success(&s.local, SENDS).wr_id, 5);
	expect_no_error(&s.local, 0);
	pair_close(&s);
}

/* rdma-core's own test: data and CRC all zero, one number for both requests, as devices pass it. */
static void same_number_for_both(const struct test *t)
{
	struct request q[2];
	struct ibv_wc wc[4];
	struct connected_pair s;

	(void)t;
	pipeline_open(&s, true, 1);
	memset(s.local.memory + LOCAL_AT, 0, PIPELINE_UNIT);
	q[0] = pipeline_write(&s, 0, 1, 0);
	q[1] = pipeline_response(&s, 1, FENCED);
	pipeline_expect_receive(&s, 1);
	post(&s.local, &q[0]);
	post(&s.local, &q[1]);
	SAME(pipeline_drained(&s, wc, 4), 0);
	expect_no_completion(&s.remote, RECEIVES);
	expect_error(&s.local, 0,
		     (struct expected_error){.type = MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
					     .calculated = 0xffffffff,
					     .found = 0,
					     .unit = PIPELINE_UNIT});
	/* The transfer has been executed: it cannot be cancelled. */
	SAME(cancel(&s.local, 1), 1);
	post(&s.local, &q[1]);
	pipeline_resume(&s);
	success(&s.local, SENDS);
	success(&s.local, SENDS);
	SAME(success(&s.remote, RECEIVES).wr_id, 1);
	pair_close(&s);
}

/* Until the whole story is told: events, errors and the responses that came through. */
static uint32_t bad_keys(struct connected_pair *s, int keys)
{
	uint32_t bad = 0;

	for (int k = 0; k < keys; k++)
		if (check(&s->local, k).err_type != MLX5DV_MKEY_NO_ERR)
			bad |= 1u << k;
	return bad;
}

/* Several transfers before the fence, some of them bad: the response waits for all of them. */
static void several_failures(const struct test *t)
{
	struct request q[5];
	struct ibv_wc wc[8];
	uint32_t bad = 0;
	unsigned stops = 0;
	struct connected_pair s;

	(void)t;
	pipeline_open(&s, true, 4);
	for (int k = 0; k < 4; k++) {
		pipeline_fill(&s, k, k == 1);
		q[k] = pipeline_write(&s, k, (uint64_t)k, 0);
	}
	q[4] = pipeline_response(&s, 9, FENCED);
	pipeline_expect_receive(&s, 1);
	post_all(&s.local, 5, q);
	while (bad != 0xd) {
		SAME(pipeline_drained(&s, wc, 8), 0);
		EXPECT(++stops <= 3);
		bad |= bad_keys(&s, 4);
		SAME(bad & 2, 0);
		SAME(completions(&s.remote, RECEIVES, wc, 1, PROXY_A_WHILE_MS), 0);
		if (bad == 0xd)
			SAME(cancel(&s.local, 9), 1);
		pipeline_resume(&s);
	}
	SAME(success(&s.local, SENDS).wr_id, 9);
	expect_no_event(&s.local);
	expect_no_completion(&s.remote, RECEIVES);
	pair_close(&s);
}

/* Many open transactions, one of them bad: the others are answered. */
static void one_of_many(const struct test *t)
{
	enum { TASKS = 7 };
	struct ibv_wc wc[2 * TASKS];
	unsigned done = 0;
	struct connected_pair s;

	(void)t;
	pipeline_open(&s, true, TASKS);
	for (int bad = 0; bad < TASKS; bad++) {
		for (int k = 0; k < TASKS; k++) {
			struct request q[2] = {
				pipeline_write(&s, k, 100 + (uint64_t)k, 0),
				pipeline_response(&s, 200 + (uint64_t)k, FENCED),
			};

			pipeline_fill(&s, k, k != bad);
			pipeline_arm(&s, k);
			pipeline_expect_receive(&s, (uint64_t)k);
			post_all(&s.local, 2, q);
		}
		done = pipeline_drained(&s, wc, TASKS);
		SAME(done, (unsigned)bad);
		SAME(bad_keys(&s, TASKS), 1u << bad);
		SAME(cancel(&s.local, 200 + (uint64_t)bad), 1);
		pipeline_resume(&s);
		for (; done < TASKS; done++)
			wc[done] = success(&s.local, SENDS);
		for (unsigned i = 0; i < TASKS; i++)
			SAME(wc[i].wr_id, 200 + i);
		for (int i = 0; i < TASKS - 1; i++)
			success(&s.remote, RECEIVES);
		SAME(completions(&s.remote, RECEIVES, wc, 1, 1), 0);
		/* The receive of the cancelled response is still there. */
		post(&s.local, &(struct request){.opcode = IBV_WR_SEND,
						 .flags = IBV_SEND_SIGNALED,
						 .slices = 1,
						 .slice = {{ORDER_WHOLE, 64, 16}}});
		success(&s.local, SENDS);
		success(&s.remote, RECEIVES);
	}
	pair_close(&s);
}

/* Bad transfers again and again, far more than the ring has room for. */
static void again_and_again(const struct test *t)
{
	struct ibv_wc wc[4];
	struct connected_pair s;

	(void)t;
	pipeline_open(&s, true, 1);
	for (uint64_t i = 0; i < 300; i++) {
		bool good = i % 3 == 1;
		struct request q[2] = {pipeline_write(&s, 0, i, 0),
				       pipeline_response(&s, i, FENCED)};

		pipeline_fill(&s, 0, good);
		pipeline_arm(&s, 0);
		pipeline_expect_receive(&s, i);
		post_all(&s.local, 2, q);
		if (!good) {
			SAME(pipeline_drained(&s, wc, 4), 0);
			SAME(check(&s.local, 0).err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD);
			SAME(cancel(&s.local, i), 1);
			post(&s.local, &(struct request){.opcode = IBV_WR_SEND,
							 .slices = 1,
							 .slice = {{ORDER_WHOLE, 64, 16}}});
			pipeline_resume(&s);
		}
		SAME(success(&s.local, SENDS).wr_id, i);
		SAME(success(&s.remote, RECEIVES).wr_id, i);
		expect_no_error(&s.local, 0);
	}
	pair_close(&s);
}

/* A queue pair without the flag learns of the error and goes on. */
static void without_pipelining(const struct test *t)
{
	struct request q[2];
	struct connected_pair s;

	(void)t;
	pipeline_open(&s, false, 1);
	pipeline_fill(&s, 0, false);
	q[0] = pipeline_write(&s, 0, 1, 0);
	q[1] = pipeline_response(&s, 2, FENCED);
	pipeline_expect_receive(&s, 1);
	post_all(&s.local, 2, q);
	SAME(success(&s.local, SENDS).wr_id, 2);
	SAME(success(&s.remote, RECEIVES).wr_id, 1);
	SAME(check(&s.local, 0).err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD);
	SAME(state_of(&s.local), IBV_QPS_RTS);
	expect_no_event(&s.local);
	pair_close(&s);
}

/* Data that the local side reads and that turns out bad stops the queue too. */
static void stopped_by_a_read(const struct test *t)
{
	static const struct domain wire = {DIF_CRC, MLX5DV_BLOCK_SIZE_512, true, 1, 2, 0};
	struct key_conf c = signature_conf(NULL, &wire, 4096, 0xff);
	struct request q[2];
	struct ibv_wc wc[4];
	uint64_t guard;
	struct connected_pair s;

	(void)t;
	pair_open_signed(&s, &(struct setup){.pipelining = true});
	configure(&s.local, 0, &c);
	fill_random(s.local.memory, 4096, 4);
	reference_stream(&wire, s.local.memory, 4096, s.remote.memory + REMOTE_AT);
	guard = reference_number(DIF_CRC, true, s.local.memory + 5 * 512, 512);
	s.remote.memory[REMOTE_AT + 5 * 520 + 512] ^= 0x11;
	q[0] = (struct request){
		.opcode = IBV_WR_RDMA_READ,
		.id = 1,
		.slices = 1,
		.slice = {{0, 0, 8 * 520}},
		.rkey = s.remote.address.rkey,
		.raddr = s.remote.address.base + REMOTE_AT,
	};
	q[1] = pipeline_response(&s, 2, FENCED);
	pipeline_expect_receive(&s, 1);
	post_all(&s.local, 2, q);
	SAME(pipeline_drained(&s, wc, 4), 0);
	expect_error(&s.local, 0,
		     (struct expected_error){.type = MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
					     .calculated = guard,
					     .found = guard ^ 0x1100,
					     .block = 5,
					     .unit = 520});
	SAME(completions(&s.remote, RECEIVES, wc, 1, PROXY_A_WHILE_MS), 0);
	SAME(cancel(&s.local, 2), 1);
	pipeline_resume(&s);
	SAME(success(&s.local, SENDS).wr_id, 2);
	expect_no_completion(&s.remote, RECEIVES);
	pair_close(&s);
}

/* Again and again with short reads: the response that the fence holds back must never be faster
 * than the verdict about the data. */
static void stopped_by_short_reads(const struct test *t)
{
	static const struct domain wire = {CRC32C, MLX5DV_BLOCK_SIZE_512, true, 0, 0, 0};
	struct key_conf c = signature_conf(NULL, &wire, 512, 0xff);
	struct request q[2] = {
		{.opcode = IBV_WR_RDMA_READ, .id = 1, .slices = 1, .slice = {{0, 0, 516}}},
		pipeline_response(NULL, 2, FENCED),
	};
	struct ibv_wc wc[4];
	struct connected_pair s;

	(void)t;
	pair_open_signed(&s, &(struct setup){.pipelining = true, .own_cqs = true});
	fill_random(s.remote.memory + REMOTE_AT, 516, 4);
	q[0].rkey = s.remote.address.rkey;
	q[0].raddr = s.remote.address.base + REMOTE_AT;
	pipeline_expect_receive(&s, 1);
	for (int i = 0; i < 200; i++) {
		configure(&s.local, 0, &c);
		post_all(&s.local, 2, q);
		SAME(pipeline_drained(&s, wc, 4), 0);
		SAME(check(&s.local, 0).err_type, MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD);
		SAME(cancel(&s.local, 2), 1);
		pipeline_resume(&s);
		SAME(success(&s.local, SENDS).wr_id, 2);
		expect_no_completion(&s.remote, RECEIVES);
	}
	pair_close(&s);
}

/* What the peer does is not stopped by it. */
static void responder_goes_on(const struct test *t)
{
	struct request q = {
		.opcode = IBV_WR_RDMA_READ,
		.flags = IBV_SEND_SIGNALED,
		.slices = 1,
		.slice = {{ORDER_WHOLE, 100000, 64}},
	};
	struct connected_pair s;

	(void)t;
	pipeline_open_stopped(&s);
	q.rkey = s.local.address.rkey;
	q.raddr = s.local.address.base;
	post(&s.remote, &q);
	success(&s.remote, SENDS);
	receive(&s.local, 3, (struct slice){ORDER_WHOLE, 0, 64});
	q.opcode = IBV_WR_SEND;
	post(&s.remote, &q);
	success(&s.remote, SENDS);
	SAME(success(&s.local, RECEIVES).wr_id, 3);
	SAME(state_of(&s.local), IBV_QPS_SQD);
	pipeline_resume(&s);
	SAME(state_of(&s.local), IBV_QPS_RTS);
	pair_close(&s);
}

const struct test pipeline_tests[] = {
	{"good-data-stops-nothing", good_flow, {65}},
	{"bad-data-as-the-manual-page-says", bad_flow, {65, 66, 67, 68, 70, 71, 72, 79}},
	{"one-number-for-transfer-and-response", same_number_for_both, {66, 68, 72, 77}},
	{"several-failures-before-the-fence", several_failures, {68, 69, 70, 71}},
	{"one-bad-transaction-of-many", one_of_many, {69, 71, 72}},
	{"again-and-again", again_and_again, {66, 72, 79}},
	{"without-the-flag-nothing-stops", without_pipelining, {65}},
	{"stopped-by-a-READ", stopped_by_a_read, {65, 66, 68}},
	{"stopped-by-short-READs", stopped_by_short_reads, {66, 68}},
	{"responder-goes-on-while-drained", responder_goes_on, {65, 79}},
	{0},
};
