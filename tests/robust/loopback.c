// SPDX-License-Identifier: BSD-2-Clause
#include "loopback.h"

struct ibv_qp *loopback_qp_make(struct loopback *l)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}, .send_cq = l->cq, .recv_cq = l->cq};
	struct ibv_qp *qp = ibv_create_qp(l->pd, &attr);

	if (!qp)
		device_die("ibv_create_qp: %m");
	return qp;
}

void loopback_open(struct loopback *l, const char *device)
{
	static uint8_t bytes[LOOPBACK_BYTES];
	struct device_address self;

	device_port_open(&l->port, device, -1);
	l->pd = ibv_alloc_pd(l->port.ctx);
	l->channel = ibv_create_comp_channel(l->port.ctx);
	l->cq = ibv_create_cq(l->port.ctx, 64, NULL, l->channel, 0);
	l->mr = ibv_reg_mr(l->pd, bytes, sizeof(bytes),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!l->cq || !l->mr)
		device_die("setting up: %m");
	l->qp = loopback_qp_make(l);
	self = device_address(&l->port, l->qp, 1);
	device_qp_init(l->qp, &device_default_connection);
	device_qp_connect(&l->port, l->qp, &device_default_connection, &self, 1);
}

void loopback_close(struct loopback *l)
{
	if (ibv_destroy_qp(l->qp) || ibv_destroy_cq(l->cq) ||
	    ibv_destroy_comp_channel(l->channel) || ibv_dereg_mr(l->mr) || ibv_dealloc_pd(l->pd))
		device_die("taking down: %m");
	device_port_close(&l->port);
}
