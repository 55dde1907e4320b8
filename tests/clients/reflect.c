/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends all frames that come to a port back with their addresses swapped.  Stock libibverbs alone.
 *
 * reflect DEVICE [COUNT [start]]: prints "ready" when its rule is there, ends after COUNT frames or with
 * SIGTERM, and prints how many it has sent back.  start: it begins with a frame of its own.
 */
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs_device.h"

#define FRAMES	   512u
#define FRAME_ROOM 9216u

struct reflector {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	unsigned long sent;
};

static unsigned char memory[FRAMES + 1][FRAME_ROOM] /* the last is for a frame of our own */;
static volatile sig_atomic_t ended;

static void on_signal(int sig)
{
	(void)sig;
	ended = 1;
}

static void post_receive(struct reflector *r, uint64_t i)
{
	struct ibv_sge in = {(uintptr_t)memory[i], FRAME_ROOM, r->mr->lkey};
	struct ibv_recv_wr recv = {.wr_id = i, .sg_list = &in, .num_sge = 1}, *bad;

	if (ibv_post_recv(r->qp, &recv, &bad))
		device_die("ibv_post_recv: %m");
}

static void send_back(struct reflector *r, uint64_t i, uint32_t bytes)
{
	struct ibv_sge out = {(uintptr_t)memory[i], bytes, r->mr->lkey};
	struct ibv_send_wr send = {.wr_id = i,
				   .sg_list = &out,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	unsigned char to[6];

	memcpy(to, memory[i], 6);
	memcpy(memory[i], memory[i] + 6, 6);
	memcpy(memory[i] + 6, to, 6);
	if (ibv_post_send(r->qp, &send, &bad))
		device_die("ibv_post_send: %m");
}

static void sent(struct reflector *r, uint64_t i)
{
	r->sent++;
	if (i != FRAMES)
		post_receive(r, i);
}

static void reflector_open(struct reflector *r, const char *device)
{
	struct ibv_qp_init_attr init = {
		.cap = {FRAMES, FRAMES, 1, 1, 0},
		.qp_type = IBV_QPT_RAW_PACKET,
	};
	struct ibv_flow_attr rule = {
		.type = IBV_FLOW_ATTR_ALL_DEFAULT, .size = sizeof(rule), .port = DEVICE_PORT};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = DEVICE_PORT};
	struct device_port port;
	struct ibv_pd *pd;

	device_port_open(&port, device, -1);
	pd = ibv_alloc_pd(port.ctx);
	r->cq = ibv_create_cq(port.ctx, 2 * FRAMES, NULL, NULL, 0);
	if (!pd || !r->cq)
		device_die("queues: %m");
	r->mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = r->cq;
	r->qp = ibv_create_qp(pd, &init);
	if (!r->mr || !r->qp || ibv_modify_qp(r->qp, &attr, IBV_QP_STATE | IBV_QP_PORT))
		device_die("ibv_create_qp: %m");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(r->qp, &attr, IBV_QP_STATE))
		device_die("RTR: %m");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(r->qp, &attr, IBV_QP_STATE))
		device_die("RTS: %m");
	for (unsigned i = 0; i < FRAMES; i++)
		post_receive(r, i);
	if (!ibv_create_flow(r->qp, &rule))
		device_die("ibv_create_flow: %m");
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;
	struct reflector r = {0};
	struct ibv_wc wc;

	if (argc < 2)
		device_die("usage: reflect DEVICE [COUNT]");
	signal(SIGTERM, on_signal);
	reflector_open(&r, argv[1]);
	puts("ready");
	fflush(stdout);
	if (argc > 3) {
		memset(memory[FRAMES], 0xee, 100);
		send_back(&r, FRAMES, 100);
	}
	while (!ended && (!count || r.sent < count)) {
		int n = ibv_poll_cq(r.cq, 1, &wc);

		if (n < 0 || (n && wc.status != IBV_WC_SUCCESS))
			device_die("completion: %s", n < 0 ? "none" : ibv_wc_status_str(wc.status));
		if (!n)
			usleep(100);
		else if (wc.opcode & IBV_WC_RECV)
			send_back(&r, wc.wr_id, wc.byte_len);
		else
			sent(&r, wc.wr_id);
	}
	printf("%lu\n", r.sent);
	return 0;
}
