/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs in one process, 8-byte RDMA WRITEs from one to the other: the time from the post
 * to the completion, and the rate with 1 and with 32 requests to a doorbell.  Stock libibverbs
 * alone.  Prints "name value unit" lines.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rig.h"

#define BYTES  8u
#define DEPTH  256u
#define LIST   32u
#define SAMPLE 20000u

struct pair {
	struct rig_port port;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	struct ibv_mr *mr;
	uint8_t *memory; /* source page, target page */
};

static void pair_open(struct pair *p, const char *device)
{
	struct rig_address address[2];

	rig_port_open(&p->port, device, -1);
	p->pd = ibv_alloc_pd(p->port.ctx);
	p->cq = ibv_create_cq(p->port.ctx, 2 * DEPTH, NULL, NULL, 0);
	p->memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!p->pd || !p->cq || p->memory == MAP_FAILED)
		rig_die("set-up: %m");
	p->mr = ibv_reg_mr(p->pd, p->memory, 8192,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!p->mr)
		rig_die("ibv_reg_mr: %m");
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = p->cq,
			.recv_cq = p->cq,
			.cap = {.max_send_wr = DEPTH,
				.max_recv_wr = 1,
				.max_send_sge = 1,
				.max_recv_sge = 1},
			.qp_type = IBV_QPT_RC,
		};

		p->qp[i] = ibv_create_qp(p->pd, &init);
		if (!p->qp[i])
			rig_die("ibv_create_qp: %m");
		address[i] = rig_address(&p->port, p->qp[i], 0);
	}
	for (int i = 0; i < 2; i++) {
		rig_qp_init(p->qp[i], &rig_default_connection);
		rig_qp_connect(&p->port, p->qp[i], &rig_default_connection, &address[!i], 0);
	}
}

static void pair_close(struct pair *p)
{
	if (ibv_destroy_qp(p->qp[0]) || ibv_destroy_qp(p->qp[1]) || ibv_dereg_mr(p->mr) ||
	    ibv_destroy_cq(p->cq) || ibv_dealloc_pd(p->pd))
		rig_die("clean-up: %m");
	munmap(p->memory, 8192);
	rig_port_close(&p->port);
}

/* Requests that follow each other; only the last asks for a completion. */
static void build(const struct pair *p, struct ibv_send_wr *wrs, struct ibv_sge *sge, unsigned n)
{
	*sge = (struct ibv_sge){(uintptr_t)p->memory, BYTES, p->mr->lkey};
	for (unsigned i = 0; i < n; i++) {
		wrs[i] = (struct ibv_send_wr){
			.next = i + 1 < n ? &wrs[i + 1] : NULL,
			.sg_list = sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = i + 1 < n ? 0 : IBV_SEND_SIGNALED,
			.wr.rdma.remote_addr = (uintptr_t)p->memory + 4096,
			.wr.rdma.rkey = p->mr->rkey,
		};
	}
}

static void post(const struct pair *p, struct ibv_send_wr *wrs)
{
	struct ibv_send_wr *rejected;
	int err = ibv_post_send(p->qp[0], wrs, &rejected);

	if (err)
		rig_die("ibv_post_send: %s", strerror(err));
}

static unsigned reap(const struct pair *p)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(p->cq, 16, wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			rig_die("completion: %s", ibv_wc_status_str(wc[i].status));
	}
	if (n < 0)
		rig_die("ibv_poll_cq: %d", n);
	return (unsigned)n;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a;
	uint64_t y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void latency(const struct pair *p)
{
	static uint64_t ns[SAMPLE];
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	build(p, &wr, &sge, 1);
	for (unsigned i = 0; i < SAMPLE + 1000; i++) {
		uint64_t start = rig_now_ns();

		post(p, &wr);
		while (!reap(p))
			;
		if (i >= 1000) /* the first ones warm caches up */
			ns[i - 1000] = rig_now_ns() - start;
	}
	qsort(ns, SAMPLE, sizeof(ns[0]), by_value);
	printf("latency_p50 %lu ns\nlatency_p99 %lu ns\n", ns[SAMPLE / 2], ns[SAMPLE * 99 / 100]);
}

static void rate(const struct pair *p, unsigned list, const char *name)
{
	struct ibv_send_wr wrs[LIST];
	struct ibv_sge sge;
	uint64_t total = 0;
	unsigned in_flight = 0;
	uint64_t start = rig_now_ns();
	uint64_t now = start;

	build(p, wrs, &sge, list);
	while (now - start < 200000000u) {
		while (in_flight + list <= DEPTH) {
			post(p, wrs);
			in_flight += list;
		}
		for (unsigned n = reap(p); n; n--) {
			in_flight -= list;
			total += list;
		}
		now = rig_now_ns();
	}
	while (in_flight)
		in_flight -= list * reap(p);
	printf("%s %.3f Mmsg/s\n", name, (double)total * 1e3 / (double)(now - start));
}

int main(int argc, char **argv)
{
	struct pair p;

	pair_open(&p, argc > 1 ? argv[1] : NULL);
	latency(&p);
	rate(&p, 1, "rate_1");
	rate(&p, LIST, "rate_32");
	pair_close(&p);
	return 0;
}
