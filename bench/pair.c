/* SPDX-License-Identifier: BSD-2-Clause */
/* Two connected queue pairs in one process; see pair.h. */
#include "pair.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE	4096u
#define WARM_UP 1000u

struct ibv_qp *pair_qp_create(struct pair *p, unsigned depth)
{
	struct ibv_qp_init_attr init = {
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.cap = {.max_send_wr = depth,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(p->pd, &init);

	if (!qp)
		device_die("ibv_create_qp: %m");
	return qp;
}

void pair_qp_connect(const struct pair *p, struct ibv_qp *const qp[2])
{
	for (int i = 0; i < 2; i++)
		device_qp_init(qp[i], &device_default_connection);
	for (int i = 0; i < 2; i++) {
		struct device_address peer = device_address(&p->port, qp[!i], 0);

		device_qp_connect(&p->port, qp[i], &device_default_connection, &peer, 0);
	}
}

void pair_open(struct pair *p, const char *device, unsigned depth, size_t bytes)
{
	size_t side = (bytes + PAGE - 1) / PAGE * PAGE;

	*p = (struct pair){.bytes = bytes, .mapped = 2 * side};
	device_port_open(&p->port, device, -1);
	p->pd = ibv_alloc_pd(p->port.ctx);
	p->cq = ibv_create_cq(p->port.ctx, 2 * (int)depth, NULL, NULL, 0);
	p->source =
		mmap(NULL, p->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!p->pd || !p->cq || p->source == MAP_FAILED)
		device_die("set-up: %m");
	p->target = p->source + side;
	memset(p->source, 1, side);
	memset(p->target, 2, side);
	p->mr = ibv_reg_mr(p->pd, p->source, p->mapped,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ);
	if (!p->mr)
		device_die("ibv_reg_mr: %m");
	for (int i = 0; i < 2; i++)
		p->qp[i] = pair_qp_create(p, depth);
	pair_qp_connect(p, p->qp);
}

void pair_close(struct pair *p)
{
	if (ibv_destroy_qp(p->qp[0]) || ibv_destroy_qp(p->qp[1]) || ibv_dereg_mr(p->mr) ||
	    ibv_destroy_cq(p->cq) || ibv_dealloc_pd(p->pd))
		device_die("clean-up: %m");
	munmap(p->source, p->mapped);
	device_port_close(&p->port);
}

void pair_build(const struct pair *p, enum ibv_wr_opcode opcode, struct ibv_send_wr *wrs,
		struct ibv_sge *sge, unsigned n)
{
	bool read = opcode == IBV_WR_RDMA_READ;
	uint8_t *local = read ? p->target : p->source;
	uint8_t *remote = read ? p->source : p->target;

	*sge = (struct ibv_sge){(uintptr_t)local, (uint32_t)p->bytes, p->mr->lkey};
	for (unsigned i = 0; i < n; i++) {
		wrs[i] = (struct ibv_send_wr){
			.next = i + 1 < n ? &wrs[i + 1] : NULL,
			.sg_list = sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = i + 1 < n ? 0 : IBV_SEND_SIGNALED,
			.wr.rdma.remote_addr = (uintptr_t)remote,
			.wr.rdma.rkey = p->mr->rkey,
		};
	}
}

void pair_post(const struct pair *p, struct ibv_send_wr *wrs)
{
	struct ibv_send_wr *rejected;
	int err = ibv_post_send(p->qp[0], wrs, &rejected);

	if (err)
		device_die("ibv_post_send: %s", strerror(err));
}

unsigned pair_reap(const struct pair *p)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(p->cq, 16, wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			device_die("completion: %s", ibv_wc_status_str(wc[i].status));
	}
	if (n < 0)
		device_die("ibv_poll_cq: %d", n);
	return (unsigned)n;
}

void pair_latency(const struct pair *p, uint64_t *ns, unsigned samples)
{
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	pair_build(p, IBV_WR_RDMA_WRITE, &wr, &sge, 1);
	for (unsigned i = 0; i < samples + WARM_UP; i++) {
		uint64_t start = device_now_ns();

		pair_post(p, &wr);
		while (!pair_reap(p))
			;
		if (i >= WARM_UP)
			ns[i - WARM_UP] = device_now_ns() - start;
	}
	device_sort(ns, samples);
}
