// SPDX-License-Identifier: BSD-2-Clause
/*
 * The queue pairs of an end of a connected pair, and requests on them; see steps.h.  Over XRC and DC an
 * initiator and a target, whose messages go to a shared receive queue.
 */
#include "steps.h"

#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

#define ACCESS_KEY 0x1234u

static void queues_want(bool good, const char *what)
{
	if (!good)
		device_die("%s: %m", what);
}

static void to_state_with(struct ibv_qp *qp, enum ibv_qp_state state, struct ibv_qp_attr attr,
			  int mask)
{
	int err;

	attr.qp_state = state;
	err = ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE);
	if (err)
		device_die("ibv_modify_qp to state %d: %s", (int)state, strerror(err));
}

/* ---- RC ---- */

static void rc_make(struct end *e)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = STEPS_DEPTH,
			.max_recv_wr = STEPS_RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.send_cq = e->cq,
		.recv_cq = e->cq,
	};

	e->qp = e->target = ibv_create_qp(e->pd, &attr);
	queues_want(e->qp, "no QP");
	device_qp_init(e->qp, &device_default_connection);
}

static void rc_connect(struct end *e)
{
	device_qp_connect(e->port, e->qp, &device_default_connection, &e->peer.address,
			  STEPS_FIRST_PSN);
}

/* ---- what XRC and DC have in common ---- */

static struct ibv_qp_attr initiator_rts(void)
{
	const struct device_connection *how = &device_default_connection;

	return (struct ibv_qp_attr){
		.timeout = how->timeout,
		.retry_cnt = how->retry_cnt,
		.rnr_retry = how->rnr_retry,
		.sq_psn = STEPS_FIRST_PSN,
		.max_rd_atomic = how->rd_atomic,
	};
}

#define INITIATOR_RTS                                                           \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
	 IBV_QP_MAX_QP_RD_ATOMIC)

static struct ibv_qp_attr target_init(void)
{
	return (struct ibv_qp_attr){.port_num = DEVICE_PORT,
				    .qp_access_flags = device_default_connection.access};
}

#define TARGET_INIT (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)

/* ---- XRC ---- */

static void xrc_make(struct end *e)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex receives = {
		.attr = {.max_wr = STEPS_RECEIVES, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = e->pd,
		.cq = e->cq,
	};
	struct ibv_qp_init_attr_ex target = {.qp_type = IBV_QPT_XRC_RECV,
					     .comp_mask = IBV_QP_INIT_ATTR_XRCD};
	struct ibv_qp_init_attr_ex initiator = {
		.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = e->cq,
		.cap = {.max_send_wr = STEPS_DEPTH, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = e->pd,
	};

	e->xrcd = receives.xrcd = target.xrcd = ibv_open_xrcd(e->port->ctx, &domain);
	queues_want(e->xrcd, "no XRC domain");
	e->srq = ibv_create_srq_ex(e->port->ctx, &receives);
	e->target = ibv_create_qp_ex(e->port->ctx, &target);
	e->qp = ibv_create_qp_ex(e->port->ctx, &initiator);
	queues_want(e->srq && e->target && e->qp, "no SRQ or QP of XRC");
	to_state_with(e->qp, IBV_QPS_INIT, (struct ibv_qp_attr){.port_num = DEVICE_PORT},
		      TARGET_INIT);
	to_state_with(e->target, IBV_QPS_INIT, target_init(), TARGET_INIT);
}

static void xrc_connect(struct end *e)
{
	const struct device_connection *how = &device_default_connection;
	const int connect = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	struct ibv_qp_attr rtr = {.path_mtu = how->mtu,
				  .dest_qp_num = e->peer.initiator,
				  .rq_psn = STEPS_FIRST_PSN,
				  .max_dest_rd_atomic = how->rd_atomic,
				  .min_rnr_timer = how->min_rnr_timer,
				  .ah_attr = device_ah_attr(e->port, &e->peer.address)};

	to_state_with(e->target, IBV_QPS_RTR, rtr,
		      connect | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	rtr.dest_qp_num = e->peer.address.qpn;
	to_state_with(e->qp, IBV_QPS_RTR, rtr, connect);
	to_state_with(e->qp, IBV_QPS_RTS, initiator_rts(), INITIATOR_RTS);
}

/* ---- DC ---- */

/* A target has its number when it is ready, and looks at no peer. */
static void dct_ready(struct end *e)
{
	const struct device_connection *how = &device_default_connection;
	struct device_address here = {.gid = e->port->gid, .lid = e->port->attr.lid};
	struct ibv_qp_attr rtr = {.path_mtu = how->mtu,
				  .min_rnr_timer = how->min_rnr_timer,
				  .ah_attr = device_ah_attr(e->port, &here)};

	to_state_with(e->target, IBV_QPS_INIT, target_init(), TARGET_INIT);
	to_state_with(e->target, IBV_QPS_RTR, rtr,
		      IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER);
}

static void dc_make(struct end *e)
{
	struct ibv_srq_init_attr receives = {.attr = {.max_wr = STEPS_RECEIVES, .max_sge = 1}};
	struct mlx5dv_qp_init_attr dct = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					  .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT,
							   .dct_access_key = ACCESS_KEY}};
	struct mlx5dv_qp_init_attr dci = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					  .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI}};
	struct ibv_qp_init_attr_ex target = {.qp_type = IBV_QPT_DRIVER,
					     .send_cq = e->cq,
					     .recv_cq = e->cq,
					     .comp_mask = IBV_QP_INIT_ATTR_PD,
					     .pd = e->pd};
	struct ibv_qp_init_attr_ex initiator = {
		.qp_type = IBV_QPT_DRIVER,
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {.max_send_wr = STEPS_DEPTH, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};

	e->srq = target.srq = ibv_create_srq(e->pd, &receives);
	queues_want(e->srq, "no SRQ");
	e->target = mlx5dv_create_qp(e->port->ctx, &target, &dct);
	e->qp = mlx5dv_create_qp(e->port->ctx, &initiator, &dci);
	queues_want(e->target && e->qp, "no QP of DC");
	dct_ready(e);
	to_state_with(e->qp, IBV_QPS_INIT, (struct ibv_qp_attr){.port_num = DEVICE_PORT},
		      IBV_QP_PKEY_INDEX | IBV_QP_PORT);
	to_state_with(e->qp, IBV_QPS_RTR,
		      (struct ibv_qp_attr){.path_mtu = device_default_connection.mtu},
		      IBV_QP_PATH_MTU);
	to_state_with(e->qp, IBV_QPS_RTS, initiator_rts(), INITIATOR_RTS);
}

static void dc_connect(struct end *e)
{
	struct ibv_ah_attr to = device_ah_attr(e->port, &e->peer.address);

	e->ah = ibv_create_ah(e->pd, &to);
	queues_want(e->ah, "no address handle");
}

/* ---- requests ---- */

/* RC, XRC */
static int post_list(struct end *e, const struct request *r, unsigned n)
{
	struct ibv_send_wr *bad, wr[STEPS_PARTS];
	struct ibv_sge sge[STEPS_PARTS];

	for (unsigned i = 0; i < n; i++) {
		sge[i] = (struct ibv_sge){(uintptr_t)e->own + r[i].local, r[i].bytes,
					  e->own_mr->lkey};
		wr[i] = (struct ibv_send_wr){
			.wr_id = r[i].id,
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
			.opcode = r[i].opcode,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {e->peer.addr + r[i].remote, e->peer.rkey},
			.qp_type.xrc.remote_srqn = e->peer.srqn,
		};
		if (r[i].opcode != IBV_WR_ATOMIC_FETCH_AND_ADD)
			continue;
		wr[i].wr.atomic.compare_add = 1;
		wr[i].wr.atomic.rkey = e->peer.rkey;
		wr[i].wr.atomic.remote_addr = e->peer.addr + r[i].remote;
	}
	return ibv_post_send(e->qp, wr, &bad);
}

static void dc_build(struct end *e, struct ibv_qp_ex *ex, const struct request *r)
{
	uint64_t remote = e->peer.addr + r->remote;

	ex->wr_id = r->id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	switch (r->opcode) {
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(ex, e->peer.rkey, remote);
		break;
	case IBV_WR_SEND:
		ibv_wr_send(ex);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(ex, e->peer.rkey, remote, 1);
		break;
	default:
		ibv_wr_rdma_write(ex, e->peer.rkey, remote);
	}
	mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(ex), e->ah, e->peer.address.qpn,
			      ACCESS_KEY);
	ibv_wr_set_sge(ex, e->own_mr->lkey, (uintptr_t)e->own + r->local, r->bytes);
}

static int dc_post(struct end *e, const struct request *r, unsigned n)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(e->qp);

	ibv_wr_start(ex);
	for (unsigned i = 0; i < n; i++)
		dc_build(e, ex, &r[i]);
	return ibv_wr_complete(ex);
}

/* ---- all of them ---- */

static const struct {
	void (*make)(struct end *e);
	void (*connect)(struct end *e);
	int (*post)(struct end *e, const struct request *r, unsigned n);
} transports[TRANSPORTS] = {
	[OVER_RC] = {rc_make, rc_connect, post_list},
	[OVER_XRC] = {xrc_make, xrc_connect, post_list},
	[OVER_DC] = {dc_make, dc_connect, dc_post},
};

void queues_make(struct end *e)
{
	transports[e->transport].make(e);
}

void queues_connect(struct end *e)
{
	transports[e->transport].connect(e);
}

void queues_post(struct end *e, const struct request *r, unsigned n)
{
	int err = transports[e->transport].post(e, r, n);

	if (err)
		device_die("requests cannot be posted: %s", strerror(err));
}

int queues_destroy(struct end *e)
{
	int err = 0;

	if (e->target)
		err = end_destroy_target(e);
	if (!err && e->qp)
		err = ibv_destroy_qp(e->qp);
	if (!err && e->srq)
		err = ibv_destroy_srq(e->srq);
	if (!err && e->xrcd)
		err = ibv_close_xrcd(e->xrcd);
	if (!err && e->ah)
		err = ibv_destroy_ah(e->ah);
	e->qp = NULL;
	e->srq = NULL;
	e->xrcd = NULL;
	e->ah = NULL;
	return err;
}
