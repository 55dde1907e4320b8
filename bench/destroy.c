// SPDX-License-Identifier: BSD-2-Clause
/*
 * What it costs to destroy an object while other threads of the process send: they use other
 * objects, so it should cost what it does when nobody sends.
 *
 * destroy DEVICE: prints "name value unit" lines, the median of each.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "pair.h"

#define SENDERS 4u
#define BYTES	65536u
#define SAMPLES 1001u
#define DEPTH	16u

static const char *device;
static _Atomic(bool) over;
static _Atomic(unsigned) sending;

static void *send_main(void *arg)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;

	pair_open(&p, device, DEPTH, BYTES);
	pair_build(&p, IBV_WR_RDMA_WRITE, &wr, &sge, 1);
	atomic_fetch_add(&sending, 1);
	while (!atomic_load(&over)) {
		pair_post(&p, &wr);
		while (!pair_reap(&p))
			;
	}
	pair_close(&p);
	return arg;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void destroy_region(struct pair *p, uint64_t *ns)
{
	struct ibv_mr *mr = ibv_reg_mr(p->pd, p->source, 4096, IBV_ACCESS_LOCAL_WRITE);
	uint64_t start;

	if (!mr)
		device_die("ibv_reg_mr: %m");
	start = device_now_ns();
	if (ibv_dereg_mr(mr))
		device_die("ibv_dereg_mr: %m");
	*ns = device_now_ns() - start;
}

static void destroy_qp(struct pair *p, uint64_t *ns)
{
	struct ibv_qp *qp = pair_qp_create(p, DEPTH);
	uint64_t start = device_now_ns();

	if (ibv_destroy_qp(qp))
		device_die("ibv_destroy_qp: %m");
	*ns = device_now_ns() - start;
}

static void measure(struct pair *p, const char *name, const char *when,
		    void (*destroy)(struct pair *, uint64_t *))
{
	static uint64_t ns[SAMPLES];
	uint64_t middle;

	for (unsigned i = 0; i < SAMPLES; i++)
		destroy(p, &ns[i]);
	qsort(ns, SAMPLES, sizeof(ns[0]), by_value);
	middle = ns[SAMPLES / 2];
	printf("%s_%s %.2f us\n", name, when, (double)middle / 1e3);
}

static void measure_all(struct pair *p, const char *when)
{
	measure(p, "region", when, destroy_region);
	measure(p, "qp", when, destroy_qp);
}

int main(int argc, char **argv)
{
	pthread_t thread[SENDERS];
	struct pair p;

	if (argc != 2) {
		fputs("Usage: destroy DEVICE\n", stderr);
		return 2;
	}
	device = argv[1];
	pair_open(&p, device, DEPTH, BYTES);
	measure_all(&p, "alone");
	for (unsigned i = 0; i < SENDERS; i++)
		if (pthread_create(&thread[i], NULL, send_main, NULL))
			device_die("pthread_create");
	while (atomic_load(&sending) < SENDERS)
		;
	measure_all(&p, "beside");
	atomic_store(&over, true);
	for (unsigned i = 0; i < SENDERS; i++)
		pthread_join(thread[i], NULL);
	pair_close(&p);
	return 0;
}
