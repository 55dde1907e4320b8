// SPDX-License-Identifier: BSD-2-Clause
/*
 * The limits that a device reports can be reached, and no more is granted.  One row per case:
 * outcome, name, reason.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QKEY	 0x11111111u
#define FLUSHERS 3u

static int failed;

#define EXPECT(what)                                                                 \
	do {                                                                         \
		if (!(what)) {                                                       \
			printf("FAIL\t%s\tline %d: %s: %s\n", name, __LINE__, #what, \
			       strerror(errno));                                     \
			failed++;                                                    \
			return;                                                      \
		}                                                                    \
	} while (0)

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_device_attr attr;

static struct ibv_qp *create_qp(enum ibv_qp_type type, struct ibv_cq *cq, struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr init = {.qp_type = type, .send_cq = cq, .recv_cq = cq, .cap = cap};

	return ibv_create_qp(pd, &init);
}

static int to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

	return ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
}

static void case_cq(const char *name)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 1 << 20, NULL, NULL, 0);

	EXPECT(cq && cq->cqe >= 1 << 20);
	EXPECT(!ibv_resize_cq(cq, attr.max_cqe) && cq->cqe == attr.max_cqe);
	EXPECT(!ibv_destroy_cq(cq));
	EXPECT(!ibv_create_cq(ctx, attr.max_cqe + 1, NULL, NULL, 0) && errno == EINVAL);
	printf("PASS\t%s\t\n", name);
}

static void case_recv(const char *name)
{
	struct ibv_qp_cap cap = {.max_recv_wr = (uint32_t)attr.max_qp_wr, .max_recv_sge = 1};
	struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	struct ibv_qp *qp = create_qp(IBV_QPT_UD, cq, cap);

	EXPECT(cq && qp && !ibv_destroy_qp(qp));
	cap.max_recv_wr = 1;
	cap.max_recv_sge = (uint32_t)attr.max_sge;
	EXPECT((qp = create_qp(IBV_QPT_RC, cq, cap)) && !ibv_destroy_qp(qp));
	cap.max_send_wr = 1;
	cap.max_send_sge = (uint32_t)attr.max_sge;
	EXPECT((qp = create_qp(IBV_QPT_RC, cq, cap)) && !ibv_destroy_qp(qp));
	cap.max_recv_sge = (uint32_t)attr.max_sge + 3;
	EXPECT(!create_qp(IBV_QPT_RC, cq, cap));
	EXPECT(!ibv_destroy_cq(cq));
	printf("PASS\t%s\t\n", name);
}

static void case_srq(const char *name)
{
	struct ibv_srq_init_attr init = {
		.attr = {.max_wr = (uint32_t)attr.max_srq_wr, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &init);

	EXPECT(srq && !ibv_destroy_srq(srq));
	init.attr = (struct ibv_srq_attr){.max_wr = 1, .max_sge = (uint32_t)attr.max_srq_sge};
	EXPECT((srq = ibv_create_srq(pd, &init)) && !ibv_destroy_srq(srq));
	init.attr.max_wr = (uint32_t)attr.max_srq_wr + 1;
	init.attr.max_sge = 1;
	EXPECT(!ibv_create_srq(pd, &init));
	printf("PASS\t%s\t\n", name);
}

/* Completions of several full receive queues stand in one CQ until somebody polls. */
static void case_fill(const char *name)
{
	const uint32_t n = (uint32_t)attr.max_qp_wr;
	struct ibv_qp_cap cap = {.max_recv_wr = n, .max_recv_sge = 1};
	struct ibv_cq *cq = ibv_create_cq(ctx, (int)(FLUSHERS * n), NULL, NULL, 0);
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp *qp[FLUSHERS];
	struct ibv_wc wc;

	EXPECT(cq);
	for (uint32_t q = 0; q < FLUSHERS; q++) {
		EXPECT((qp[q] = create_qp(IBV_QPT_UD, cq, cap)) && !to_init(qp[q]));
		for (uint32_t i = 0; i < n; i++) {
			struct ibv_recv_wr wr = {.wr_id = (uint64_t)q * n + i}, *bad;

			EXPECT(!ibv_post_recv(qp[q], &wr, &bad));
		}
	}
	for (uint32_t q = 0; q < FLUSHERS; q++)
		EXPECT(!ibv_modify_qp(qp[q], &error, IBV_QP_STATE));
	for (uint32_t i = 0; i < FLUSHERS * n; i++) {
		int polled = 0;

		for (int tries = 0; tries < 10000000 && !polled; tries++)
			polled = ibv_poll_cq(cq, 1, &wc);
		EXPECT(polled == 1 && wc.wr_id == i && wc.status == IBV_WC_WR_FLUSH_ERR);
	}
	EXPECT(!ibv_poll_cq(cq, 1, &wc));
	for (uint32_t q = 0; q < FLUSHERS; q++)
		EXPECT(!ibv_destroy_qp(qp[q]));
	EXPECT(!ibv_destroy_cq(cq));
	printf("PASS\t%s\t\n", name);
}

static void case_multicast(const char *name)
{
	const union ibv_gid group = {.raw = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = 0x77}};
	struct ibv_qp_cap cap = {.max_recv_wr = 1, .max_recv_sge = 1};
	struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	unsigned n = (unsigned)attr.max_mcast_qp_attach;
	/* not lost when a row fails */
	static struct ibv_qp **qp;

	qp = calloc(n + 1, sizeof(struct ibv_qp *));
	EXPECT(cq && qp);
	for (unsigned i = 0; i <= n; i++) {
		EXPECT((qp[i] = create_qp(IBV_QPT_UD, cq, cap)) && !to_init(qp[i]));
		EXPECT(!ibv_attach_mcast(qp[i], &group, 0xc077) == (i < n));
	}
	for (unsigned i = 0; i <= n; i++) {
		if (i < n)
			EXPECT(!ibv_detach_mcast(qp[i], &group, 0xc077));
		EXPECT(!ibv_destroy_qp(qp[i]));
	}
	free(qp);
	EXPECT(!ibv_destroy_cq(cq));
	printf("PASS\t%s\t\n", name);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const char *name);
	} cases[] = {
		{"a CQ of max_cqe entries", case_cq},
		{"a receive queue of max_qp_wr entries, max_sge", case_recv},
		{"an SRQ of max_srq_wr entries, max_srq_sge", case_srq},
		{"a CQ that is filled", case_fill},
		{"a group of max_mcast_qp_attach queue pairs", case_multicast},
	};
	struct ibv_device **list = ibv_get_device_list(NULL);

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; list && list[i] && argc > 1 && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), argv[1]))
			ctx = ibv_open_device(list[i]);
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	if (!pd || ibv_query_device(ctx, &attr)) {
		fprintf(stderr, "no device\n");
		return 2;
	}
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cases[i].run(cases[i].name);
	ibv_dealloc_pd(pd);
	ibv_close_device(ctx);
	ibv_free_device_list(list);
	return failed ? 1 : 0;
}
