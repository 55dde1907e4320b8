// SPDX-License-Identifier: BSD-2-Clause
/* See side.h. */
#include "side.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define FIRST_PSN 100u

const struct device_connection side_impatient = {
	.access = SIDE_REMOTE,
	.rnr_retry = 7,
	.retry_cnt = 5,
	.timeout = 13, /* 34 ms */
	.min_rnr_timer = 1,
	.rd_atomic = 8,
	.mtu = IBV_MTU_1024,
};

void side_open(struct memory_side *s, const char *device)
{
	int sock = s->sock;

	*s = (struct memory_side){.sock = sock};
	device_port_open(&s->port, device, -1);
	s->pd = ibv_alloc_pd(s->port.ctx);
	s->cq = ibv_create_cq(s->port.ctx, 2 * (SIDE_SENDS + SIDE_RECEIVES), NULL, NULL, 0);
	if (!s->pd || !s->cq)
		device_die("no PD or CQ: %m");
}

void side_close(struct memory_side *s)
{
	if ((s->qp && ibv_destroy_qp(s->qp)) || ibv_destroy_cq(s->cq) || ibv_dealloc_pd(s->pd))
		device_die("something cannot be destroyed: %m");
	device_port_close(&s->port);
}

struct device_address side_renew(struct memory_side *s, const struct device_connection *how)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = SIDE_SENDS,
			.max_recv_wr = SIDE_RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.send_cq = s->cq,
		.recv_cq = s->cq,
	};
	struct ibv_wc wc;

	if (s->qp && ibv_destroy_qp(s->qp))
		device_die("ibv_destroy_qp: %m");
	while (ibv_poll_cq(s->cq, 1, &wc) > 0)
		;
	s->qp = ibv_create_qp(s->pd, &attr);
	if (!s->qp)
		device_die("ibv_create_qp: %m");
	device_qp_init(s->qp, how);
	return device_address(&s->port, s->qp, FIRST_PSN);
}

void side_connect(struct memory_side *s, const struct device_connection *how,
		  const struct device_address *to)
{
	device_qp_connect(&s->port, s->qp, how, to, FIRST_PSN);
}

void side_tell(const struct memory_side *s, const void *what, size_t bytes)
{
	ssize_t n;

	do
		n = send(s->sock, what, bytes, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)bytes)
		device_die("the other has gone: %m");
}

bool side_hears(const struct memory_side *s, void *what, size_t bytes)
{
	for (size_t got = 0; got < bytes;) {
		ssize_t n = recv(s->sock, (char *)what + got, bytes - got, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	return true;
}

void side_hear(const struct memory_side *s, void *what, size_t bytes)
{
	if (!side_hears(s, what, bytes))
		device_die("the other has gone");
}

struct ibv_wc side_next_wc(struct memory_side *s)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(s->cq, 1, &wc);
	while (!n);
	if (n < 0)
		device_die("ibv_poll_cq fails");
	return wc;
}

void side_post(struct memory_side *s, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err = ibv_post_send(s->qp, wr, &bad);

	if (err)
		device_die("ibv_post_send: %s", strerror(err));
}

void side_post_recv(struct memory_side *s, void *at, uint32_t bytes, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)at, bytes, lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
	int err = ibv_post_recv(s->qp, &wr, &bad);

	if (err)
		device_die("ibv_post_recv: %s", strerror(err));
}

enum ibv_wc_status side_do(struct memory_side *s, enum ibv_wr_opcode opcode, struct ibv_sge sge,
			   uint64_t addr, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {addr, rkey},
	};

	side_post(s, &wr);
	return side_next_wc(s).status;
}

size_t side_count(const void *at, size_t bytes, int value)
{
	const unsigned char *byte = at;
	size_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n += byte[i] == (unsigned char)value;
	return n;
}

size_t side_not(const void *at, size_t bytes, int value)
{
	return bytes - side_count(at, bytes, value);
}
