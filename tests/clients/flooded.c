/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flood of frames, and a program that does not take them.  Stock libibverbs alone.
 *
 * flooded DEVICE: posts RECEIVES receives, prints "ready", leaves all to the device until there is a line on
 * standard input, and prints how many frames it has got.
 * flooded DEVICE COUNT: sends so many frames, a batch at a time, and prints "sent".
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_device.h"

#define RECEIVES   128u
#define BATCH	   64u
#define FRAME_ROOM 2048u
#define FRAME_SIZE 64u

static unsigned char memory[RECEIVES][FRAME_ROOM];
static struct ibv_qp *qp;
static struct ibv_cq *cq;
static struct ibv_mr *mr;

static void queue_open(const char *device)
{
	struct ibv_qp_init_attr init = {.cap = {BATCH, RECEIVES, 1, 1, 0},
					.qp_type = IBV_QPT_RAW_PACKET};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = DEVICE_PORT};
	struct device_port port;
	struct ibv_pd *pd;

	device_port_open(&port, device, -1);
	pd = ibv_alloc_pd(port.ctx);
	cq = ibv_create_cq(port.ctx, BATCH + RECEIVES, NULL, NULL, 0);
	if (!pd || !cq)
		device_die("queues: %m");
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	if (!mr || !qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT))
		device_die("ibv_create_qp: %m");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		device_die("RTR: %m");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		device_die("RTS: %m");
}

static unsigned take(unsigned most)
{
	unsigned got = 0;
	struct ibv_wc wc;
	int n;

	while (got < most && (n = ibv_poll_cq(cq, 1, &wc)) > 0) {
		if (wc.status != IBV_WC_SUCCESS)
			device_die("completion: %s", ibv_wc_status_str(wc.status));
		got++;
	}
	return got;
}

static void receive(void)
{
	struct ibv_flow_attr rule = {
		.type = IBV_FLOW_ATTR_ALL_DEFAULT, .size = sizeof(rule), .port = DEVICE_PORT};

	for (unsigned i = 0; i < RECEIVES; i++) {
		struct ibv_sge in = {(uintptr_t)memory[i], FRAME_ROOM, mr->lkey};
		struct ibv_recv_wr recv = {.sg_list = &in, .num_sge = 1}, *bad;

		if (ibv_post_recv(qp, &recv, &bad))
			device_die("ibv_post_recv: %m");
	}
	if (!ibv_create_flow(qp, &rule))
		device_die("ibv_create_flow: %m");
	puts("ready");
	fflush(stdout);
	getchar();
	printf("%u\n", take(RECEIVES));
}

static void flood(unsigned long count)
{
	struct ibv_sge out = {(uintptr_t)memory[0], FRAME_SIZE, mr->lkey};

	memset(memory[0], 0xee, FRAME_SIZE);
	for (unsigned long i = 0; i < count; i += BATCH) {
		for (unsigned k = 0; k < BATCH; k++) {
			struct ibv_send_wr send = {.sg_list = &out,
						   .num_sge = 1,
						   .opcode = IBV_WR_SEND,
						   .send_flags = IBV_SEND_SIGNALED},
					   *bad;

			if (ibv_post_send(qp, &send, &bad))
				device_die("ibv_post_send: %m");
		}
		for (unsigned done = 0; done < BATCH;)
			done += take(BATCH - done);
	}
	puts("sent");
}

int main(int argc, char **argv)
{
	if (argc < 2)
		device_die("usage: flooded DEVICE [COUNT]");
	queue_open(argv[1]);
	if (argc > 2)
		flood(strtoul(argv[2], NULL, 0));
	else
		receive();
	return 0;
}
