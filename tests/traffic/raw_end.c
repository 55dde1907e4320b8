// SPDX-License-Identifier: BSD-2-Clause
#include "raw_end.h"

#include <string.h>
#include <time.h>

int raw_row_failed;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void end_to_state(struct raw_end *e, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};

	NEED(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | mask));
}

void raw_end_open(struct raw_end *e, const char *device)
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
	end_to_state(e, IBV_QPS_INIT, IBV_QP_PORT);
	end_to_state(e, IBV_QPS_RTR, 0);
	end_to_state(e, IBV_QPS_RTS, 0);
}

void raw_end_close(struct raw_end *e)
{
	NEED(!ibv_destroy_qp(e->qp));
	NEED(!ibv_destroy_cq(e->cq));
	NEED(!ibv_dereg_mr(e->mr));
	NEED(!ibv_dealloc_pd(e->pd));
	NEED(!ibv_close_device(e->ctx));
}

/* False: there was none in that time. */
static int next_completion(struct raw_end *e, unsigned ms, struct ibv_wc *wc)
{
	uint64_t end = now_ms() + ms;
	int n;

	do
		n = ibv_poll_cq(e->cq, 1, wc);
	while (!n && now_ms() < end);
	NEED(n >= 0 && (!n || wc->status == IBV_WC_SUCCESS));
	return n;
}

void raw_end_send(struct raw_end *e, uint32_t bytes)
{
	struct ibv_sge out = {(uintptr_t)e->frame, bytes, e->mr->lkey};
	struct ibv_send_wr send = {.sg_list = &out,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_wc wc;

	NEED(!ibv_post_send(e->qp, &send, &bad));
	NEED(next_completion(e, RAW_PATIENCE_MS, &wc));
}

void raw_end_receive(struct raw_end *e)
{
	struct ibv_sge in = {(uintptr_t)e->frame, sizeof(e->frame), e->mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &in, .num_sge = 1}, *bad;

	NEED(!ibv_post_recv(e->qp, &recv, &bad));
}

uint32_t raw_end_arrived(struct raw_end *e, unsigned ms)
{
	struct ibv_wc wc;

	return next_completion(e, ms, &wc) ? wc.byte_len : 0;
}

void raw_row(const char *name, int good)
{
	printf("%s\t%s\t%s\n", good ? "PASS" : "FAIL", name, good ? "" : "not so");
	raw_row_failed |= !good;
}
