// SPDX-License-Identifier: BSD-2-Clause
/* See pair.h. */
#include "pair.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MEET_MS	    10000
#define COMPLETE_MS 60000

struct hello {
	struct device_address address;
	uint64_t addr;
	uint32_t rkey;
};

const struct device_connection pair_impatient = {
	.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	.rnr_retry = 7,
	.retry_cnt = 5,
	.timeout = 12, /* 17 ms */
	.min_rnr_timer = 1,
	.rd_atomic = 8,
	.mtu = IBV_MTU_1024,
};

uint64_t pair_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

uint16_t pair_number(const char *text)
{
	unsigned long n = strtoul(text, NULL, 10);

	if (!n || n > UINT16_MAX)
		device_die("'%s' is not a number from 1 to 65535", text);
	return (uint16_t)n;
}

void pair_open(struct pair *p, const char *device, const struct device_connection *how,
	       size_t bytes)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = PAIR_DEPTH,
			.max_recv_wr = PAIR_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	*p = (struct pair){.bytes = bytes, .sock = -1};
	device_port_open(&p->port, device, -1);
	p->mem = device_memory(bytes);
	p->pd = ibv_alloc_pd(p->port.ctx);
	p->cq = ibv_create_cq(p->port.ctx, 2 * PAIR_DEPTH, NULL, NULL, 0);
	if (!p->pd || !p->cq)
		device_die("no PD or CQ: %m");
	p->mr = ibv_reg_mr(p->pd, p->mem, bytes, (int)how->access | IBV_ACCESS_LOCAL_WRITE);
	attr.send_cq = attr.recv_cq = p->cq;
	p->qp = ibv_create_qp(p->pd, &attr);
	if (!p->mr || !p->qp)
		device_die("no MR or QP: %m");
	device_qp_init(p->qp, how);
}

_Noreturn static void alone(const char *why)
{
	printf("alone: %s\n", why);
	exit(STATUS_ALONE);
}

static void meet_over_tcp(struct pair *p, bool listens, uint16_t tcp_port)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(tcp_port),
		.sin_addr = {htonl(INADDR_LOOPBACK)},
	};
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
	struct pollfd ready = {.fd = sock, .events = POLLIN};

	if (sock < 0)
		device_die("socket: %m");
	if (!listens) {
		if (connect(sock, (struct sockaddr *)&addr, sizeof(addr)))
			alone("nobody listens");
		p->sock = sock;
		return;
	}
	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(sock, (struct sockaddr *)&addr, sizeof(addr)) || listen(sock, 1))
		device_die("port %u: %m", tcp_port);
	if (poll(&ready, 1, MEET_MS) != 1)
		alone("nobody came");
	p->sock = accept(sock, NULL, NULL);
	close(sock);
}

static void exchange_hello(struct pair *p, const struct hello *mine, struct hello *theirs)
{
	if (send(p->sock, mine, sizeof(*mine), MSG_NOSIGNAL) != sizeof(*mine) ||
	    recv(p->sock, theirs, sizeof(*theirs), MSG_WAITALL) != sizeof(*theirs))
		alone("gone before the connection stood");
}

void pair_meet(struct pair *p, const struct device_connection *how, bool listens, uint16_t tcp_port)
{
	struct hello mine = {device_address(&p->port, p->qp, 100), (uintptr_t)p->mem, p->mr->rkey};
	struct hello theirs = {0};

	meet_over_tcp(p, listens, tcp_port);
	exchange_hello(p, &mine, &theirs);
	p->peer_addr = theirs.addr;
	p->peer_rkey = theirs.rkey;
	device_qp_connect(&p->port, p->qp, how, &theirs.address, 100);
	/* Both stand before either sends. */
	exchange_hello(p, &mine, &theirs);
}

void pair_alone(struct pair *p, const struct device_connection *how)
{
	struct device_address self = device_address(&p->port, p->qp, 100);

	p->peer_addr = (uintptr_t)p->mem;
	p->peer_rkey = p->mr->rkey;
	device_qp_connect(&p->port, p->qp, how, &self, 100);
}

void pair_close(struct pair *p)
{
	if (ibv_destroy_qp(p->qp) || ibv_destroy_cq(p->cq) || ibv_dereg_mr(p->mr) ||
	    ibv_dealloc_pd(p->pd))
		device_die("something cannot be destroyed: %m");
	device_port_close(&p->port);
	if (p->sock >= 0)
		close(p->sock);
	munmap(p->mem, p->bytes);
}

static void post_request(struct pair *p, enum ibv_wr_opcode opcode, uint64_t id, size_t local,
			 size_t remote, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)p->mem + local, bytes, p->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = id,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = opcode,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {p->peer_addr + remote, p->peer_rkey},
				 };
	int err = ibv_post_send(p->qp, &wr, &bad);

	if (err)
		device_die("ibv_post_send: %s", strerror(err));
}

void pair_write(struct pair *p, uint64_t id, size_t from, size_t to, uint32_t bytes)
{
	post_request(p, IBV_WR_RDMA_WRITE, id, from, to, bytes);
}

void pair_read(struct pair *p, uint64_t id, size_t into, size_t from, uint32_t bytes)
{
	post_request(p, IBV_WR_RDMA_READ, id, into, from, bytes);
}

void pair_complete(struct pair *p, const char *what)
{
	uint64_t end = pair_now_ms() + COMPLETE_MS;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(p->cq, 1, &wc)))
		if (pair_now_ms() > end)
			device_die("%s does not complete", what);
	if (n != 1 || wc.status != IBV_WC_SUCCESS)
		device_die("%s: %s", what, ibv_wc_status_str(wc.status));
}
