// SPDX-License-Identifier: BSD-2-Clause
/*
 * objects DEVICE: many queue pairs and memory regions, made and destroyed; the time for one must
 * not grow with their number.  Compares the medians of the first and the last tenth, so that a
 * moment without the CPU does not count.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pair.h"

#define QPS   1000u
#define MRS   10000u
#define TENTH 10u

/* Times of single calls differ by their nature (a chunk of numbers, a fresh page). */
#define GROWTH_MAX 4.0

static uint64_t times[MRS];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double median_us(uint64_t *t, uint32_t n)
{
	uint32_t middle = n / 2;

	qsort(t, n, sizeof(*t), by_size);
	return (double)t[middle] / 1000;
}

/* True if it grew. */
static bool cost_grew(const char *what, uint32_t n)
{
	uint32_t part = n / TENTH;
	double first = median_us(times, part);
	double last = median_us(times + n - part, part);
	bool bad = last > first * GROWTH_MAX && last - first > 20;

	printf("%s%s: %.1f us, after %u of them %.1f us\n", bad ? "wrong: " : "", what, first, n,
	       last);
	return bad;
}

#define MEASURE(n, ...)                      \
	for (uint32_t i = 0; i < (n); i++) { \
		uint64_t start = now_ns();   \
		__VA_ARGS__;                 \
		times[i] = now_ns() - start; \
	}

int main(int argc, char **argv)
{
	static struct ibv_qp *qps[QPS];
	static struct ibv_mr *mrs[MRS];
	static uint8_t memory[4096];
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct device_port port;
	struct ibv_pd *pd;
	bool bad = false;

	if (argc != 2)
		device_die("usage: objects DEVICE");
	device_port_open(&port, argv[1], -1);
	pd = ibv_alloc_pd(port.ctx);
	attr.send_cq = attr.recv_cq = ibv_create_cq(port.ctx, 16, NULL, NULL, 0);
	if (!pd || !attr.send_cq)
		device_die("no PD or CQ: %m");
	for (unsigned round = 0; round < 2; round++) {
		MEASURE(QPS, qps[i] = ibv_create_qp(pd, &attr);
			if (!qps[i]) device_die("QP %u: %m", i));
		bad |= cost_grew("creating a QP", QPS);
		MEASURE(QPS, if (ibv_destroy_qp(qps[i])) device_die("destroying QP %u: %m", i));
		bad |= cost_grew("destroying a QP", QPS);
		MEASURE(MRS,
			mrs[i] = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
			if (!mrs[i]) device_die("MR %u: %m", i));
		bad |= cost_grew("registering memory", MRS);
		MEASURE(MRS, if (ibv_dereg_mr(mrs[i])) device_die("MR %u: %m", i));
		bad |= cost_grew("deregistering memory", MRS);
	}
	if (ibv_destroy_cq(attr.send_cq) || ibv_dealloc_pd(pd))
		device_die("something is left: %m");
	device_port_close(&port);
	return bad;
}
