// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counters objects through stock libibverbs (ibv_create_counters(3)): a steering rule counts the
 * frames that another context sends.  One row per case: outcome, name, reason.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FRAME	 100u
#define FRAMES	 5u
#define PATIENCE 5 /* seconds */

static const uint8_t group[6] = {0x01, 0x50, 0x56, 0x19, 0x20, 0xa7};

#define NEED(what)                                                             \
	do {                                                                   \
		if (!(what)) {                                                 \
			fprintf(stderr, "line %d: %s: %m\n", __LINE__, #what); \
			exit(2);                                               \
		}                                                              \
	} while (0)

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t frame[2048];
};

static void to(struct end *e, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};

	NEED(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | mask));
}

static void open_end(struct end *e, const char *device)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RAW_PACKET,
	};

	NEED(list);
	for (unsigned i = 0; list[i] && !e->ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), device))
			e->ctx = ibv_open_device(list[i]);
	NEED(e->ctx);
	ibv_free_device_list(list);
	NEED((e->pd = ibv_alloc_pd(e->ctx)));
	NEED((e->mr = ibv_reg_mr(e->pd, e->frame, sizeof(e->frame), IBV_ACCESS_LOCAL_WRITE)));
	NEED((e->cq = ibv_create_cq(e->ctx, 32, NULL, NULL, 0)));
	init.send_cq = init.recv_cq = e->cq;
	NEED((e->qp = ibv_create_qp(e->pd, &init)));
	to(e, IBV_QPS_INIT, IBV_QP_PORT);
	to(e, IBV_QPS_RTR, 0);
	to(e, IBV_QPS_RTS, 0);
}

static void close_end(struct end *e)
{
	NEED(!ibv_destroy_qp(e->qp));
	NEED(!ibv_destroy_cq(e->cq));
	NEED(!ibv_dereg_mr(e->mr));
	NEED(!ibv_dealloc_pd(e->pd));
	NEED(!ibv_close_device(e->ctx));
}

static void completion(struct end *e)
{
	time_t end = time(NULL) + PATIENCE;
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(e->cq, 1, &wc);
	while (!n && time(NULL) < end);
	NEED(n == 1 && wc.status == IBV_WC_SUCCESS);
}

static void transfer(struct end *tx, struct end *rx)
{
	struct ibv_sge out = {(uintptr_t)tx->frame, FRAME, tx->mr->lkey};
	struct ibv_sge in = {(uintptr_t)rx->frame, sizeof(rx->frame), rx->mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &in, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &out,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad_send;

	NEED(!ibv_post_recv(rx->qp, &recv, &bad_recv));
	NEED(!ibv_post_send(tx->qp, &send, &bad_send));
	completion(tx);
	completion(rx);
}

static struct ibv_flow *rule(struct end *e, struct ibv_counters *counters)
{
	struct ibv_flow_spec_eth eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(eth)};
	struct ibv_flow_spec_counter_action count = {
		.type = IBV_FLOW_SPEC_ACTION_COUNT,
		.size = sizeof(count),
		.counters = counters,
	};
	struct ibv_flow_attr attr = {
		.type = IBV_FLOW_ATTR_NORMAL,
		.size = sizeof(attr) + sizeof(eth) + sizeof(count),
		.num_of_specs = 2,
		.port = 1,
	};
	/* one behind the other, without gaps: ibv_create_flow(3) */
	uint64_t list[32];
	uint8_t *at = (uint8_t *)list;

	memcpy(eth.val.dst_mac, group, sizeof(group));
	memset(eth.mask.dst_mac, 0xff, sizeof(group));
	memcpy(at, &attr, sizeof(attr));
	memcpy(at + sizeof(attr), &eth, sizeof(eth));
	memcpy(at + sizeof(attr) + sizeof(eth), &count, sizeof(count));
	return ibv_create_flow(e->qp, (struct ibv_flow_attr *)(void *)list);
}

static int failed;

static void row(const char *name, int good)
{
	printf("%s\t%s\t%s\n", good ? "PASS" : "FAIL", name, good ? "" : "not so");
	failed |= !good;
}

int main(int argc, char **argv)
{
	const char *device = argc > 1 ? argv[1] : "mlx5_1";
	struct ibv_counters_init_attr init = {0};
	struct ibv_counter_attach_attr attach[] = {
		{.counter_desc = IBV_COUNTER_PACKETS, .index = 2},
		{.counter_desc = IBV_COUNTER_BYTES, .index = 0},
	};
	static struct end tx, rx;
	struct ibv_counters *counters;
	struct ibv_flow *flow;
	uint64_t v[3] = {77, 77, 77};

	setvbuf(stdout, NULL, _IOLBF, 0);
	open_end(&tx, device);
	open_end(&rx, device);
	memcpy(tx.frame, group, sizeof(group));
	tx.frame[6] = 0x02;
	tx.frame[12] = 0x88;
	tx.frame[13] = 0xb5;
	NEED((counters = ibv_create_counters(rx.ctx, &init)));
	for (unsigned i = 0; i < 2; i++)
		NEED(!ibv_attach_counters_point_flow(counters, &attach[i], NULL));
	row("nothing to read without a rule", ibv_read_counters(counters, v, 3, 0) == EINVAL);
	NEED((flow = rule(&rx, counters)));
	for (unsigned i = 0; i < FRAMES; i++)
		transfer(&tx, &rx);
	row("too few places", ibv_read_counters(counters, v, 2, 0) == EINVAL);
	row("packets and bytes", !ibv_read_counters(counters, v, 3, 0) && v[2] == FRAMES &&
					 v[0] == FRAMES * FRAME && v[1] == 0);
	row("in use", ibv_destroy_counters(counters) == EBUSY);
	NEED(!ibv_destroy_flow(flow));
	/* the second rule counts into the same places and goes on from there */
	NEED((flow = rule(&rx, counters)));
	transfer(&tx, &rx);
	row("a second rule",
	    !ibv_read_counters(counters, v, 3, IBV_READ_COUNTERS_ATTR_PREFER_CACHED) &&
		    v[2] == FRAMES + 1);
	NEED(!ibv_destroy_flow(flow));
	row("end", !ibv_destroy_counters(counters));
	close_end(&rx);
	close_end(&tx);
	return failed;
}
