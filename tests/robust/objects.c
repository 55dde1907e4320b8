// SPDX-License-Identifier: BSD-2-Clause
/*
 * objects DEVICE [KIND]: many objects of each kind, made, and destroyed both in the order of their making and in the other one.
 * The time for one must not grow with their number.  Compares the medians of the first and the last tenth, so that a moment
 * without the CPU does not count.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/mlx5dv.h>

#include "verbs_device.h"

#define MAX   20000u
#define TENTH 10u

/* Times of single calls differ by their nature: a chunk of numbers, a fresh page, memory given back. */
#define GROWTH_MAX 4.0
#define GROWTH_US  100

static struct device_port port;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_xrcd *xrcd;
static struct ibv_qp *group_qp, *flow_qp;
static uint8_t memory[4096];

/* ---- kinds ---- */

static void *make_pd(uint32_t i)
{
	(void)i;
	return ibv_alloc_pd(port.ctx);
}

static int unmake_pd(void *o)
{
	return ibv_dealloc_pd(o);
}

static void *make_mr(uint32_t i)
{
	(void)i;
	return ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
}

static int unmake_mr(void *o)
{
	return ibv_dereg_mr(o);
}

static void *make_mw(uint32_t i)
{
	return ibv_alloc_mw(pd, i % 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
}

static int unmake_mw(void *o)
{
	return ibv_dealloc_mw(o);
}

static void *make_cq(uint32_t i)
{
	(void)i;
	return ibv_create_cq(port.ctx, 1, NULL, NULL, 0);
}

static int unmake_cq(void *o)
{
	return ibv_destroy_cq(o);
}

static void *make_xrcd(uint32_t i)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	(void)i;
	return ibv_open_xrcd(port.ctx, &attr);
}

static int unmake_xrcd(void *o)
{
	return ibv_close_xrcd(o);
}

static void *make_srq(uint32_t i)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};

	(void)i;
	return ibv_create_srq(pd, &attr);
}

static int unmake_srq(void *o)
{
	return ibv_destroy_srq(o);
}

static void *make_ah(uint32_t i)
{
	struct device_address self = {.gid = port.gid, .lid = port.attr.lid};
	struct ibv_ah_attr attr = device_ah_attr(&port, &self);

	(void)i;
	return ibv_create_ah(pd, &attr);
}

static int unmake_ah(void *o)
{
	return ibv_destroy_ah(o);
}

static void *make_qp(enum ibv_qp_type type, enum mlx5dv_dc_type dc)
{
	bool target = type == IBV_QPT_XRC_RECV, dct = dc == MLX5DV_DCTYPE_DCT;
	bool receives = type == IBV_QPT_RC || type == IBV_QPT_UD;
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type,
		.comp_mask = target ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
		.pd = pd,
		.xrcd = xrcd,
		.send_cq = target ? NULL : cq,
		.recv_cq = receives || dc ? cq : NULL,
		.srq = dct ? srq : NULL,
		.cap = {!target && !dct, receives, !target && !dct, receives, 0},
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = {.dc_type = dc, .dct_access_key = 1},
	};

	return dc ? mlx5dv_create_qp(port.ctx, &attr, &dv) : ibv_create_qp_ex(port.ctx, &attr);
}

static void *make_rc(uint32_t i)
{
	(void)i;
	return make_qp(IBV_QPT_RC, 0);
}

static void *make_ud(uint32_t i)
{
	(void)i;
	return make_qp(IBV_QPT_UD, 0);
}

static void *make_xrc_target(uint32_t i)
{
	(void)i;
	return make_qp(IBV_QPT_XRC_RECV, 0);
}

static void *make_dci(uint32_t i)
{
	(void)i;
	return make_qp(IBV_QPT_DRIVER, MLX5DV_DCTYPE_DCI);
}

static void *make_dct(uint32_t i)
{
	(void)i;
	return make_qp(IBV_QPT_DRIVER, MLX5DV_DCTYPE_DCT);
}

static int unmake_qp(void *o)
{
	return ibv_destroy_qp(o);
}

static void *make_wq(uint32_t i)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd, .cq = cq};

	(void)i;
	return ibv_create_wq(port.ctx, &attr);
}

static int unmake_wq(void *o)
{
	return ibv_destroy_wq(o);
}

static void *make_counters(uint32_t i)
{
	struct ibv_counters_init_attr attr = {0};

	(void)i;
	return ibv_create_counters(port.ctx, &attr);
}

static int unmake_counters(void *o)
{
	return ibv_destroy_counters(o);
}

/* Groups of one queue pair; the object is the group's number. */
static union ibv_gid group(uintptr_t number)
{
	return (union ibv_gid){.raw = {0xff, 0x0e, [10] = 0xff, 0xff, 239, (uint8_t)(number >> 16),
				       (uint8_t)(number >> 8), (uint8_t)number}};
}

static void *make_group(uint32_t i)
{
	union ibv_gid gid = group(i + 1);

	return ibv_attach_mcast(group_qp, &gid, port.ethernet ? 0 : 0xc003)
		       ? NULL
		       : (void *)(uintptr_t)(i + 1);
}

static int unmake_group(void *o)
{
	union ibv_gid gid = group((uintptr_t)o);

	return ibv_detach_mcast(group_qp, &gid, port.ethernet ? 0 : 0xc003);
}

static void *make_flow(uint32_t i)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} flow = {
		.attr = {.type = IBV_FLOW_ATTR_NORMAL,
			 .size = sizeof(flow),
			 .num_of_specs = 1,
			 .port = 1},
		.eth = {.type = IBV_FLOW_SPEC_ETH,
			.size = sizeof(flow.eth),
			.val = {.dst_mac = {2, 0, 0, (uint8_t)(i >> 16), (uint8_t)(i >> 8),
					    (uint8_t)i}},
			.mask = {.dst_mac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}},
	};

	return ibv_create_flow(flow_qp, &flow.attr);
}

static int unmake_flow(void *o)
{
	return ibv_destroy_flow(o);
}

static const struct kind {
	const char *name;
	void *(*make)(uint32_t i);
	int (*unmake)(void *o);
	uint32_t n;
	bool ethernet; /* only there */
} kinds[] = {
	{"PD", make_pd, unmake_pd, 20000, false},
	{"MR", make_mr, unmake_mr, 10000, false},
	{"MW", make_mw, unmake_mw, 20000, false},
	{"CQ", make_cq, unmake_cq, 10000, false},
	{"SRQ", make_srq, unmake_srq, 10000, false},
	{"AH", make_ah, unmake_ah, 20000, false},
	{"RC QP", make_rc, unmake_qp, 5000, false},
	{"UD QP", make_ud, unmake_qp, 5000, false},
	{"XRC domain", make_xrcd, unmake_xrcd, 20000, false},
	{"XRC target", make_xrc_target, unmake_qp, 10000, false},
	{"DCI", make_dci, unmake_qp, 5000, false},
	{"DCT", make_dct, unmake_qp, 5000, false},
	{"multicast group", make_group, unmake_group, 2000, false},
	{"WQ", make_wq, unmake_wq, 10000, true},
	{"counters", make_counters, unmake_counters, 10000, true},
	{"flow", make_flow, unmake_flow, 4000, true},
};

/* ---- measuring ---- */

static uint64_t times[MAX];
static void *objects[MAX];

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

/* True if the time grew, or with 'many' first, if it was larger while there were many. */
static bool cost_grew(const char *what, const char *name, uint32_t n, bool many)
{
	uint32_t part = n / TENTH;
	double first = median_us(times, part);
	double last = median_us(times + n - part, part);
	double few = many ? last : first, lots = many ? first : last;
	bool bad = lots > few * GROWTH_MAX && lots - few > GROWTH_US;

	printf("%s%s %s: %.1f us, after %u of them %.1f us\n", bad ? "wrong: " : "", what, name,
	       first, n, last);
	return bad;
}

static bool try_kind(const struct kind *k)
{
	bool bad = false;

	/* The first pass only makes the heap as large as the others need it. */
	for (unsigned pass = 0; pass < 3; pass++) {
		for (uint32_t i = 0; i < k->n; i++) {
			uint64_t start = now_ns();

			objects[i] = k->make(i);
			times[i] = now_ns() - start;
			if (!objects[i])
				device_die("%s %u: %m", k->name, i);
		}
		if (pass)
			bad |= cost_grew("making a", k->name, k->n, false);
		for (uint32_t i = 0; i < k->n; i++) {
			uint64_t start = now_ns();
			int ret = k->unmake(objects[pass == 2 ? k->n - 1 - i : i]);

			times[i] = now_ns() - start;
			if (ret)
				device_die("destroying %s %u: %s", k->name, i, strerror(ret));
		}
		if (pass)
			bad |= cost_grew("destroying a", k->name, k->n, true);
	}
	return bad;
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr raw = {.qp_type = IBV_QPT_RAW_PACKET, .cap = {0, 1, 0, 1, 0}};
	bool bad = false;

	if (argc != 2 && argc != 3)
		device_die("usage: objects DEVICE [KIND]");
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	setvbuf(stdout, NULL, _IOLBF, 0);
	device_port_open(&port, argv[1], -1);
	pd = ibv_alloc_pd(port.ctx);
	cq = ibv_create_cq(port.ctx, 16, NULL, NULL, 0);
	xrcd = make_xrcd(0);
	srq = make_srq(0);
	if (!pd || !cq || !srq || !xrcd)
		device_die("what objects need: %m");
	group_qp = make_ud(0);
	raw.send_cq = raw.recv_cq = cq;
	flow_qp = port.ethernet ? ibv_create_qp(pd, &raw) : NULL;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct kind *k = &kinds[i];

		if (argc == 3 && strcmp(argv[2], k->name) != 0)
			continue;
		/* raw packets need a right that not everybody has */
		if (k->ethernet && !flow_qp)
			continue;
		bad |= try_kind(k);
	}
	return bad;
}
