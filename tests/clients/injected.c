// SPDX-License-Identifier: BSD-2-Clause
/*
 * injected DEVICE: has two connected queue pairs, the second with a shared receive queue that has a limit,
 * and a completion queue for each, and says what happens to them.
 *
 * Prints the numbers of the queue pairs, then a line for each asynchronous event and for the states of the
 * queue pairs after it.  With each line on standard input it sends a message from the first to the second
 * queue pair and prints how both ends complete; it ends with its input.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/verbs_device.h"

#define DEPTH	    8u
#define LIMIT	    2u
#define BYTES	    64u
#define PATIENCE_NS 3000000000ull

static struct device_port port;
static struct ibv_cq *cq[2];
static struct ibv_qp *qp[2];
static struct ibv_srq *srq;
static struct ibv_mr *mr;

static void srq_fill(void)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, BYTES, mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_srq_attr limit = {.srq_limit = LIMIT};

	for (uint32_t i = 0; i < DEPTH; i++)
		if (ibv_post_srq_recv(srq, &wr, &bad))
			device_die("ibv_post_srq_recv failed");
	if (ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT))
		device_die("ibv_modify_srq: %m");
}

static void make(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = DEPTH, .max_sge = 1}};

	mr = ibv_reg_mr(pd, device_memory(4096), 4096, IBV_ACCESS_LOCAL_WRITE);
	srq = ibv_create_srq(pd, &attr);
	if (!mr || !srq)
		device_die("memory or shared receive queue: %m");
	for (uint32_t i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = {
			.cap = {.max_send_wr = DEPTH, .max_send_sge = 1},
			.srq = i ? srq : NULL,
			.qp_type = IBV_QPT_RC,
			.sq_sig_all = 1,
		};

		cq[i] = ibv_create_cq(port.ctx, 4 * DEPTH, NULL, NULL, 0);
		init.send_cq = init.recv_cq = cq[i];
		qp[i] = cq[i] ? ibv_create_qp(pd, &init) : NULL;
		if (!qp[i])
			device_die("queues: %m");
	}
	srq_fill();
}

static void connect_both(void)
{
	struct device_connection how = device_default_connection;
	struct device_address at[2];

	how.timeout = 10;
	how.retry_cnt = 1;
	for (uint32_t i = 0; i < 2; i++) {
		device_qp_init(qp[i], &how);
		at[i] = device_address(&port, qp[i], 0);
	}
	for (uint32_t i = 0; i < 2; i++)
		device_qp_connect(&port, qp[i], &how, &at[!i], 0);
}

static void print_completion(uint32_t end)
{
	uint64_t begin = device_now_ns();
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq[end], 1, &wc)) && device_now_ns() - begin < PATIENCE_NS)
		;
	if (n > 0)
		printf("%s: %s\n", end ? "receive" : "send", ibv_wc_status_str(wc.status));
	else
		printf("%s: nothing\n", end ? "receive" : "send");
}

static void message_send(void)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, BYTES, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	if (ibv_post_send(qp[0], &wr, &bad))
		device_die("ibv_post_send failed");
	print_completion(0);
	print_completion(1);
}

/* Which of our objects it is. */
static const char *event_element(const struct ibv_async_event *e)
{
	if (e->event_type == IBV_EVENT_CQ_ERR)
		return e->element.cq == cq[0] ? "cq 0" : "cq 1";
	if (e->event_type == IBV_EVENT_SRQ_LIMIT_REACHED || e->event_type == IBV_EVENT_SRQ_ERR)
		return e->element.srq == srq ? "srq" : "another";
	if (e->event_type == IBV_EVENT_DEVICE_FATAL)
		return "device";
	if (e->event_type <= IBV_EVENT_PATH_MIG_ERR ||
	    e->event_type == IBV_EVENT_QP_LAST_WQE_REACHED)
		return e->element.qp == qp[0] ? "qp 0" : "qp 1";
	return "port";
}

static void print_event(void)
{
	struct ibv_async_event e;

	if (ibv_get_async_event(port.ctx, &e))
		return;
	printf("%s %s\n", ibv_event_type_str(e.event_type), event_element(&e));
	ibv_ack_async_event(&e);
	printf("states %d %d\n", device_qp_state(qp[0]), device_qp_state(qp[1]));
}

int main(int argc, char **argv)
{
	struct pollfd from[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.events = POLLIN}};
	struct ibv_pd *pd;
	char line[64];

	if (argc != 2)
		device_die("usage: injected DEVICE");
	setvbuf(stdout, NULL, _IOLBF, 0);
	device_port_open(&port, argv[1], 0);
	pd = ibv_alloc_pd(port.ctx);
	if (!pd)
		device_die("ibv_alloc_pd: %m");
	make(pd);
	connect_both();
	from[1].fd = port.ctx->async_fd;
	if (fcntl(from[1].fd, F_SETFL, O_NONBLOCK))
		device_die("fcntl: %m");
	printf("qps 0x%x 0x%x\n", qp[0]->qp_num, qp[1]->qp_num);
	while (poll(from, 2, -1) > 0) {
		if (from[1].revents & POLLIN)
			print_event();
		else if (from[0].revents && read(STDIN_FILENO, line, sizeof(line)) > 0)
			message_send();
		else if (from[0].revents)
			break;
	}
	return 0;
}
