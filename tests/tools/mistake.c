// SPDX-License-Identifier: BSD-2-Clause
/* See mistake.h. */
#include "mistake.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS 60000000000ull

/* As programs have it, except that who gives up does so soon. */
static const struct device_connection usual = {
	.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	.rnr_retry = 0,
	.retry_cnt = 1,
	.timeout = 14, /* 67 ms */
	.min_rnr_timer = 12,
	.rd_atomic = 8,
	.mtu = IBV_MTU_1024,
};

static void end_prepare(struct scene *s, struct end *e, enum ibv_qp_type type)
{
	e->how = usual;
	e->access = IBV_ACCESS_LOCAL_WRITE | (int)usual.access;
	e->mem = aligned_alloc(4096, MISTAKE_BYTES);
	e->pd = ibv_alloc_pd(s->port.ctx);
	e->cq = ibv_create_cq(s->port.ctx, (int)MISTAKE_ENTRIES, NULL, s->channel, 0);
	if (!e->mem || !e->pd || !e->cq)
		device_die("protection domain or CQ: %m");
	memset(e->mem, 1, MISTAKE_BYTES);
	e->init = (struct ibv_qp_init_attr){
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {MISTAKE_ENTRIES, MISTAKE_ENTRIES, 1, 1, 64},
		.qp_type = type,
	};
}

void scene_prepare(struct scene *s, const char *device, enum ibv_qp_type type)
{
	device_port_open(&s->port, device, -1);
	s->channel = ibv_create_comp_channel(s->port.ctx);
	if (!s->channel)
		device_die("ibv_create_comp_channel: %m");
	end_prepare(s, &s->a, type);
	end_prepare(s, &s->b, type);
	s->a.psn = 0x1000;
	s->b.psn = 0x2000;
}

static void end_make(struct scene *s, struct end *e)
{
	e->mr = ibv_reg_mr(e->pd, e->mem, MISTAKE_BYTES, e->access);
	e->qp = ibv_create_qp(e->pd, &e->init);
	if (!e->mr || !e->qp)
		device_die("region or queue pair: %m");
	e->address = device_address(&s->port, e->qp, e->psn);
}

void scene_make(struct scene *s)
{
	end_make(s, &s->a);
	end_make(s, &s->b);
}

static void end_connect(struct scene *s, struct end *e, const struct end *peer)
{
	if (e->reset)
		return;
	device_qp_init(e->qp, &e->how);
	device_qp_connect(&s->port, e->qp, &e->how, &peer->address, e->psn);
}

void scene_connect(struct scene *s)
{
	end_connect(s, &s->a, &s->b);
	end_connect(s, &s->b, &s->a);
}

struct ibv_send_wr scene_request(struct scene *s, enum ibv_wr_opcode opcode, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = {
		.sg_list = sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)s->b.mem;
		wr.wr.atomic.rkey = s->b.mr->rkey;
	} else if (opcode != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = (uintptr_t)s->b.mem;
		wr.wr.rdma.rkey = s->b.mr->rkey;
	}
	return wr;
}

void post(struct end *e, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err = ibv_post_send(e->qp, wr, &bad);

	if (err)
		device_die("ibv_post_send: %s", strerror(err));
}

void post_receive(struct end *e, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)e->mem, bytes, e->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	if (ibv_post_recv(e->qp, &wr, &bad))
		device_die("ibv_post_recv: %m");
}

void request(struct scene *s, enum ibv_wr_opcode opcode, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)s->a.mem, bytes, s->a.mr->lkey};
	struct ibv_send_wr wr = scene_request(s, opcode, &sge);

	post(&s->a, &wr);
}

void tell_completion(const char *name, struct end *e)
{
	uint64_t end = device_now_ns() + PATIENCE_NS;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(e->cq, 1, &wc)) && device_now_ns() < end)
		;
	if (n != 1)
		device_die("%s: no completion", name);
	if (wc.status == IBV_WC_SUCCESS)
		printf("%s: success\n", name);
	else
		printf("%s: status %d vendor 0x%02x\n", name, wc.status, wc.vendor_err);
}

void tell_nothing(const char *name, struct end *e)
{
	struct ibv_wc wc;

	printf("%s: %d completions\n", name, ibv_poll_cq(e->cq, 1, &wc));
}

void tell_call(const char *name, int error)
{
	printf("%s: %s\n", name, error ? strerrorname_np(error) : "0");
}

void tell_event(struct scene *s)
{
	struct pollfd fd = {.fd = s->port.ctx->async_fd, .events = POLLIN};
	struct ibv_async_event event;

	if (poll(&fd, 1, (int)(PATIENCE_NS / 1000000)) != 1)
		device_die("no event");
	if (ibv_get_async_event(s->port.ctx, &event))
		device_die("ibv_get_async_event: %m");
	printf("event: %s\n", ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
}

struct scene connected(const char *device, enum ibv_qp_type type)
{
	struct scene s = {0};

	scene_prepare(&s, device, type);
	scene_make(&s);
	scene_connect(&s);
	return s;
}

struct scene prepared(void)
{
	struct scene s = {0};

	scene_prepare(&s, MISTAKE_INFINIBAND, IBV_QPT_RC);
	return s;
}

int to_rtr(struct scene *s, struct ibv_ah_attr ah, enum ibv_mtu mtu, int less)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = s->b.qp->qp_num,
		.ah_attr = ah,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
	};

	return ibv_modify_qp(s->a.qp, &attr,
			     (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) &
				     ~less);
}

struct scene at_init(const char *device)
{
	struct scene s = {0};

	scene_prepare(&s, device, IBV_QPT_RC);
	scene_make(&s);
	device_qp_init(s.a.qp, &s.a.how);
	return s;
}

void write_with(struct scene *s, uint32_t rkey, uint64_t addr, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)s->a.mem, bytes, s->a.mr->lkey};
	struct ibv_send_wr wr = scene_request(s, IBV_WR_RDMA_WRITE, &sge);

	wr.wr.rdma.rkey = rkey;
	wr.wr.rdma.remote_addr = addr;
	post(&s->a, &wr);
	tell_completion("write", &s->a);
}
