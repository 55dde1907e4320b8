// SPDX-License-Identifier: BSD-2-Clause
/* Requests that libmlx5 refuses when they are posted, in the order of tests/tools/explain.py. */
#include <stdio.h>
#include <string.h>

#include "../support/verbs_device.h"

#define MANY 1000 /* more than any queue here has room for */

static struct device_port port;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static struct ibv_qp *queue_pair(struct ibv_srq *srq)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.cap = {4, srq ? 0 : 4, 1, srq ? 0 : 1, 0},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(port.ctx, &init);

	if (!qp)
		device_die("ibv_create_qp_ex: %m");
	return qp;
}

/* Posts receives of so many pieces until one is refused. */
static void receive(struct ibv_qp *qp, struct ibv_srq *srq, int pieces)
{
	struct ibv_sge sge[64] = {0};
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = pieces}, *bad;
	int err = 0;

	for (int i = 0; i < MANY && !err; i++)
		err = srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);
	printf("%s\n", strerror(err));
}

/* Of no bytes, without a completion. */
static void send(struct ibv_qp *qp)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	int err = 0;

	for (int i = 0; i < MANY && !err; i++) {
		ibv_wr_start(ex);
		ex->wr_flags = 0;
		ibv_wr_rdma_write(ex, 0, 0);
		ibv_wr_set_sge(ex, 0, 0, 0);
		err = ibv_wr_complete(ex);
	}
	printf("%s\n", strerror(err));
}

int main(void)
{
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct device_connection how = device_default_connection;
	struct device_address self;
	struct ibv_srq *srq;
	struct ibv_qp *qp;

	device_port_open(&port, "mlx5_0", -1);
	pd = ibv_alloc_pd(port.ctx);
	cq = ibv_create_cq(port.ctx, 64, NULL, NULL, 0);
	srq = pd ? ibv_create_srq(pd, &shared) : NULL;
	if (!cq || !srq)
		device_die("CQ or SRQ: %m");
	qp = queue_pair(NULL);
	receive(qp, NULL, 1);
	device_qp_init(qp, &how);
	receive(qp, NULL, 64);
	receive(qp, NULL, 1);
	receive(queue_pair(srq), NULL, 1);
	receive(NULL, srq, 64);
	receive(NULL, srq, 1);
	self = device_address(&port, qp, 0);
	device_qp_connect(&port, qp, &how, &self, 0);
	send(qp);
	return 0;
}
