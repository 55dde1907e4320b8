/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs in one process, 8-byte RDMA WRITEs from one to the other: the time from the post
 * to the completion, and the rate with 1 and with 32 requests to a doorbell; with 1 also when only
 * every 16th is signaled, as perftest and most programs that send many do.  And for comparison what
 * of that is the library's own: the rate at which it posts to a queue that executes nothing.  Stock
 * libibverbs alone.  Prints "name value unit" lines.
 */
#include <stdio.h>
#include <string.h>

#include "pair.h"

#define BYTES	  8u
#define DEPTH	  256u
#define BATCH_MAX 32u
#define SAMPLE	  20000u

static void latency(const struct pair *p)
{
	static uint64_t ns[SAMPLE];

	pair_latency(p, ns, SAMPLE);
	printf("latency_p50 %lu ns\nlatency_p99 %lu ns\n", ns[SAMPLE / 2], ns[SAMPLE * 99 / 100]);
}

/* A completion for every batch of requests, posted with so many to a doorbell. */
static void rate(const struct pair *p, unsigned batch, unsigned list, const char *name)
{
	struct ibv_send_wr wrs[BATCH_MAX];
	struct ibv_sge sge;
	uint64_t total = 0;
	unsigned in_flight = 0;
	uint64_t start = device_now_ns();
	uint64_t now = start;

	pair_build(p, IBV_WR_RDMA_WRITE, wrs, &sge, batch);
	for (unsigned i = list - 1; i < batch; i += list)
		wrs[i].next = NULL;
	while (now - start < 200000000u) {
		while (in_flight + batch <= DEPTH) {
			for (unsigned i = 0; i < batch; i += list)
				pair_post(p, &wrs[i]);
			in_flight += batch;
		}
		for (unsigned n = pair_reap(p); n; n--) {
			in_flight -= batch;
			total += batch;
		}
		now = device_now_ns();
	}
	while (in_flight)
		in_flight -= batch * pair_reap(p);
	printf("%s %.3f Mmsg/s\n", name, (double)total * 1e3 / (double)(now - start));
}

static void set_state(const struct pair *p, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int err = ibv_modify_qp(p->qp[0], &attr, IBV_QP_STATE);

	if (err)
		device_die("ibv_modify_qp: %s", strerror(err));
}

/* In SQD requests may be posted, and wait. */
static void posting(const struct pair *p, const char *name)
{
	struct ibv_send_wr wrs[DEPTH];
	struct ibv_sge sge;
	uint64_t spent = 0, total = 0;

	pair_build(p, IBV_WR_RDMA_WRITE, wrs, &sge, DEPTH);
	for (unsigned i = 0; i < DEPTH; i++)
		wrs[i].next = NULL;
	while (spent < 100000000u) {
		uint64_t start;

		set_state(p, IBV_QPS_SQD);
		start = device_now_ns();
		for (unsigned i = 0; i < DEPTH; i++)
			pair_post(p, &wrs[i]);
		spent += device_now_ns() - start;
		total += DEPTH;
		set_state(p, IBV_QPS_RTS);
		while (!pair_reap(p))
			;
	}
	printf("%s %.3f Mmsg/s\n", name, (double)total * 1e3 / (double)spent);
}

int main(int argc, char **argv)
{
	struct pair p;

	pair_open(&p, argc > 1 ? argv[1] : NULL, DEPTH, BYTES);
	latency(&p);
	rate(&p, 1, 1, "rate_1");
	posting(&p, "posting");
	rate(&p, 16, 1, "rate_16th");
	rate(&p, 32, 32, "rate_32");
	pair_close(&p);
	return 0;
}
