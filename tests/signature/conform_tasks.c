// SPDX-License-Identifier: BSD-2-Clause
/*
 * Random transactions on a pipelining queue pair, as a storage target would have them: some of the
 * data is bad, some requests are signaled, they come in batches of any size.  Whatever the queue
 * does on the way, in the end each good transaction has been answered and no bad one, and the
 * signaled requests have completed in order.
 */
#include <string.h>

#include "conform.h"
#include "pipeline.h"

enum { TASKS = 6, ROUNDS = 150 };

struct task {
	bool bad;
	bool read; /* data comes from the peer instead of going there */
	bool found;
};

struct round {
	struct connected_pair s;
	uint64_t random;
	struct task task[TASKS];
	uint64_t expected[2 * TASKS + 1]; /* numbers of the signaled requests */
	unsigned signaled;
	unsigned completed;
};

static uint32_t random_below(struct round *r, uint32_t n)
{
	r->random = r->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(r->random >> 33) % n;
}

static const struct domain dif = {DIF_CRC, MLX5DV_BLOCK_SIZE_512, true, 7, 8, 0};

/* Remote memory of a task: where it writes to, or a unit with T10-DIF that it reads. */
static uint32_t remote_at(int k)
{
	return REMOTE_AT + 1024u * (uint32_t)k;
}

static void prepare_task(struct round *r, int k)
{
	struct connected_pair *s = &r->s;
	struct key_conf c = signature_conf(NULL, &dif, PIPELINE_BLOCK, 0xff);
	uint8_t *unit = s->remote.memory + remote_at(k);

	r->task[k] = (struct task){.bad = random_below(r, 3) == 0, .read = random_below(r, 3) == 0};
	if (!r->task[k].read) {
		pipeline_fill(s, k, !r->task[k].bad);
		pipeline_arm(s, k);
		return;
	}
	fill_random(unit, PIPELINE_BLOCK, r->random);
	reference_signature(&dif, 0, unit, unit + PIPELINE_BLOCK);
	unit[PIPELINE_BLOCK + 3] ^= r->task[k].bad;
	c.piece[0].at = LOCAL_AT + (uint32_t)k * PIPELINE_UNIT;
	c.unsignaled = true;
	SAME(try_configure(&s->local, k, &c), 0);
}

static unsigned flags_of(struct round *r, uint64_t id, bool always)
{
	if (!always && random_below(r, 2))
		return 0;
	r->expected[r->signaled++] = id;
	return IBV_SEND_SIGNALED;
}

static void post_round(struct round *r)
{
	struct request q[2 * TASKS];
	unsigned n = 0;

	for (int k = 0; k < TASKS; k++) {
		uint64_t id = (uint64_t)k;
		struct request *w = &q[n++];

		*w = pipeline_write(&r->s, k, id, flags_of(r, id, false));
		w->raddr = r->s.remote.address.base + remote_at(k);
		if (r->task[k].read) {
			w->opcode = IBV_WR_RDMA_READ;
			w->slice[0].bytes = 520;
		}
		q[n++] = pipeline_response(&r->s, 100 + id,
					   IBV_SEND_FENCE | flags_of(r, 100 + id, k == TASKS - 1));
		pipeline_expect_receive(&r->s, id);
	}
	for (unsigned at = 0; at < n;) {
		unsigned batch = 1 + random_below(r, ORDER_WRS);

		if (batch > n - at)
			batch = n - at;
		post_all(&r->s.local, batch, q + at);
		at += batch;
	}
}

static void take_tasks(struct round *r, unsigned limit_ms)
{
	struct ibv_wc wc[ORDER_WCS];
	unsigned n = completions(&r->s.local, SENDS, wc, r->signaled - r->completed, limit_ms);

	for (unsigned i = 0; i < n; i++) {
		SAME(wc[i].status, IBV_WC_SUCCESS);
		SAME(wc[i].wr_id, r->expected[r->completed]);
		r->completed++;
	}
}

/* It stands still: the responses of those that are found bad are withdrawn. */
static void handle_stop(struct round *r)
{
	unsigned found = 0;

	expect_drained(&r->s.local);
	SAME(state_of(&r->s.local), IBV_QPS_SQD);
	if (r->completed < r->signaled)
		take_tasks(r, 0);
	for (int k = 0; k < TASKS; k++) {
		if (check(&r->s.local, k).err_type == MLX5DV_MKEY_NO_ERR)
			continue;
		EXPECT(r->task[k].bad && !r->task[k].found);
		r->task[k].found = true;
		found++;
		SAME(cancel(&r->s.local, 100 + (uint64_t)k), 1);
	}
	EXPECT(found > 0);
	pipeline_resume(&r->s);
}

static void one_round(struct round *r)
{
	unsigned bad = 0;
	unsigned found = 0;

	r->signaled = r->completed = 0;
	for (int k = 0; k < TASKS; k++) {
		prepare_task(r, k);
		bad += r->task[k].bad;
	}
	post_round(r);
	while (found < bad) {
		handle_stop(r);
		found = 0;
		for (int k = 0; k < TASKS; k++)
			found += r->task[k].found;
	}
	while (r->completed < r->signaled) {
		unsigned before = r->completed;

		take_tasks(r, PROXY_PATIENCE_MS);
		EXPECT(r->completed > before);
	}
	for (unsigned i = bad; i < TASKS; i++)
		success(&r->s.remote, RECEIVES);
	expect_no_completion(&r->s.remote, RECEIVES);
	expect_no_completion(&r->s.local, SENDS);
	/* The receives that are left over are of no use to the next round. */
	for (unsigned i = 0; i < bad; i++) {
		struct request q = pipeline_response(&r->s, 1, IBV_SEND_SIGNALED);

		post(&r->s.local, &q);
		success(&r->s.local, SENDS);
		success(&r->s.remote, RECEIVES);
	}
}

static void random_transactions(const struct test *t)
{
	static struct round r;

	(void)t;
	pipeline_open(&r.s, true, TASKS);
	r.random = options.seed;
	for (int i = 0; i < ROUNDS; i++)
		one_round(&r);
	SAME(state_of(&r.s.local), IBV_QPS_RTS);
	expect_no_event(&r.s.local);
	pair_close(&r.s);
}

const struct test task_tests[] = {
	{"random-transactions", random_transactions, {65, 66, 68, 69, 72, 74, 75, 79}},
	{0},
};
