// SPDX-License-Identifier: BSD-2-Clause
/* See kinds.h. */
#include "kinds.h"

#include <fcntl.h>

#define DC_KEY 0x1122334455667788ull

static const struct ibv_qp_cap smallest = {
	.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};

static struct ibv_qp *qp_of(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = smallest,
		.qp_type = type,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	if (!qp)
		device_die("ibv_create_qp of type %d: %m", type);
	return qp;
}

static void xrc_tell(const struct device_port *port, struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(port->ctx, &domain);
	struct ibv_qp_init_attr_ex send = {
		.send_cq = cq,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp_init_attr_ex recv = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};
	struct ibv_qp *from = xrcd ? ibv_create_qp_ex(port->ctx, &send) : NULL;
	struct ibv_qp *to = xrcd ? ibv_create_qp_ex(port->ctx, &recv) : NULL;

	if (!from || !to)
		device_die("XRC: %m");
	kinds_tell("xrc-send", from->qp_num);
	kinds_tell("xrc-receive", to->qp_num);
}

static struct ibv_qp *dc_of(const struct device_port *port, struct ibv_pd *pd, struct ibv_cq *cq,
			    enum mlx5dv_dc_type type)
{
	struct ibv_srq_init_attr receives = {.attr = {.max_wr = 1, .max_sge = 1}};
	bool target = type == MLX5DV_DCTYPE_DCT;
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = target ? ibv_create_srq(pd, &receives) : NULL,
		.cap = {.max_send_wr = target ? 0 : 1, .max_send_sge = target ? 0 : 1},
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct mlx5dv_qp_init_attr dc = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = {.dc_type = type, .dct_access_key = DC_KEY},
	};
	struct ibv_qp *qp = mlx5dv_create_qp(port->ctx, &attr, &dc);

	if (!qp)
		device_die("DC: %m");
	return qp;
}

/* It has a number from then on. */
static void dct_ready(const struct device_port *port, struct ibv_qp *dct)
{
	struct device_address self = device_address(port, dct, 1);
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.min_rnr_timer = 1,
		.ah_attr = device_ah_attr(port, &self),
	};

	if (ibv_modify_qp(dct, &init,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) ||
	    ibv_modify_qp(dct, &rtr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER))
		device_die("a DC target: %m");
}

static void dc_tell(const struct device_port *port, struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp *target = dc_of(port, pd, cq, MLX5DV_DCTYPE_DCT);

	kinds_tell("dc-initiator", dc_of(port, pd, cq, MLX5DV_DCTYPE_DCI)->qp_num);
	dct_ready(port, target);
	kinds_tell("dc-target", target->qp_num);
}

void kinds_queue_pairs(const struct device_port *port, struct ibv_pd *pd)
{
	struct ibv_cq *cq = ibv_create_cq(port->ctx, 1, NULL, NULL, 0);
	struct ibv_qp *uc = qp_of(pd, cq, IBV_QPT_UC);
	struct device_address self = device_address(port, uc, 1);

	device_qp_init(uc, &device_default_connection);
	device_qp_connect(port, uc, &device_default_connection, &self, 1);
	kinds_tell("uc", uc->qp_num);
	kinds_tell("ud", qp_of(pd, cq, IBV_QPT_UD)->qp_num);
	kinds_tell("rc", qp_of(pd, cq, IBV_QPT_RC)->qp_num);
	xrc_tell(port, pd, cq);
	dc_tell(port, pd, cq);
	if (port->ethernet)
		kinds_tell("raw", qp_of(pd, cq, IBV_QPT_RAW_PACKET)->qp_num);
}
