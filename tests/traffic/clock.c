// SPDX-License-Identifier: BSD-2-Clause
/*
 * The device's clock ticks as fast as the device says, and time stamps of completions are of that
 * clock.  Exit status 0 if so.  Arguments: device, kHz.
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QKEY	 0x11111111u
#define GRH	 40
#define PAUSE_NS 50000000
#define SLACK_NS 20000000ull /* between two looks of a busy machine */

#define CHECK(what)                                                                    \
	do {                                                                           \
		if (!(what)) {                                                         \
			printf("line %d: %s: %s\n", __LINE__, #what, strerror(errno)); \
			return 1;                                                      \
		}                                                                      \
	} while (0)

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t device_ticks(struct ibv_context *ctx)
{
	struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};

	return ibv_query_rt_values_ex(ctx, &v) ? 0 : (uint64_t)v.raw_clock.tv_nsec;
}

/* A datagram of the queue pair to itself; returns the time stamp of its receive, or 0. */
static uint64_t stamped(struct ibv_context *ctx, struct ibv_pd *pd)
{
	static char memory[4096];
	struct ibv_cq_init_attr_ex wanted = {.cqe = 8,
					     .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &wanted);
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct ibv_sge in = {(uintptr_t)memory, GRH + 64, mr->lkey};
	struct ibv_sge out = {(uintptr_t)memory + 2048, 64, mr->lkey};
	struct ibv_recv_wr recv = {.wr_id = 1, .sg_list = &in, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_poll_cq_attr poll = {0};
	struct ibv_ah_attr to = {.port_num = 1, .is_global = 1};
	struct ibv_port_attr port;
	uint64_t stamp = 0;

	ibv_query_port(ctx, 1, &port);
	to.dlid = port.lid;
	ibv_query_gid(ctx, 1, 0, &to.grh.dgid);
	ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	send.wr.ud.ah = ibv_create_ah(pd, &to);
	send.wr.ud.remote_qpn = qp->qp_num;
	send.wr.ud.remote_qkey = QKEY;
	if (!send.wr.ud.ah || ibv_post_recv(qp, &recv, &bad_recv) || ibv_post_send(qp, &send, &bad))
		return 0;
	for (int tries = 0; tries < 10000000 && !stamp; tries++) {
		if (ibv_start_poll(cq, &poll))
			continue;
		if (cq->wr_id == 1)
			stamp = ibv_wc_read_completion_ts(cq);
		ibv_end_poll(cq);
	}
	return stamp;
}

int main(int argc, char **argv)
{
	uint32_t khz = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct mlx5dv_context dv = {.comp_mask = MLX5DV_CONTEXT_MASK_CLOCK_INFO_UPDATE};
	struct mlx5dv_clock_info info;
	struct ibv_device_attr_ex attr;
	struct ibv_context *ctx = NULL;
	struct ibv_pd *pd;
	uint64_t before, from, after, stamp, wall, then;

	for (int i = 0; list && list[i] && argc > 2 && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), argv[1]))
			ctx = ibv_open_device(list[i]);
	CHECK(ctx && !ibv_query_device_ex(ctx, NULL, &attr) && (pd = ibv_alloc_pd(ctx)));
	CHECK(attr.hca_core_clock == khz);
	CHECK(!mlx5dv_query_device(ctx, &dv));
	CHECK((before = device_ticks(ctx)));
	from = now_ns(CLOCK_MONOTONIC);
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
	CHECK((after = device_ticks(ctx)));
	then = (after - before) * 1000000u / khz; /* ns by the device */
	CHECK(then >= PAUSE_NS && then <= now_ns(CLOCK_MONOTONIC) - from + SLACK_NS);
	CHECK((stamp = stamped(ctx, pd)));
	CHECK(stamp >= after && stamp <= device_ticks(ctx));
	/* The library converts it into the time of day. */
	CHECK(!mlx5dv_get_clock_info(ctx, &info));
	wall = now_ns(CLOCK_REALTIME);
	then = mlx5dv_ts_to_ns(&info, stamp);
	CHECK(then <= wall && wall - then < 1000000000u);
	then = mlx5dv_ts_to_ns(&info, stamp + 10ull * khz * 1000); /* ten seconds later */
	CHECK(then - mlx5dv_ts_to_ns(&info, stamp) - 9999999000ull < 2000);
	return 0;
}
