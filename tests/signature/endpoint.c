// SPDX-License-Identifier: BSD-2-Clause
/* Objects, completions, states and events of a side; see endpoint.h. */
#include "endpoint.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>

#include "verbs_devx.h"

#define CQ_ENTRIES 2048
#define SEND_OPS                                                                                \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                              \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |              \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV)

static struct ibv_cq *open_cq(struct endpoint *d, struct ibv_cq_ex **extended)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = CQ_ENTRIES};
	struct mlx5dv_cq_init_attr dv = {
		.comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE,
		.cqe_size = (uint16_t)d->opened.cqe_bytes,
	};
	struct ibv_cq *cq;

	if (!d->opened.cqe_bytes) {
		cq = ibv_create_cq(d->port.ctx, CQ_ENTRIES, NULL, NULL, 0);
		if (!cq)
			device_die("ibv_create_cq: %m");
		return cq;
	}
	*extended = mlx5dv_create_cq(d->port.ctx, &attr, &dv);
	if (!*extended)
		device_die("mlx5dv_create_cq: %m");
	return ibv_cq_ex_to_cq(*extended);
}

static struct ibv_qp *open_qp(struct endpoint *d)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = d->send_cq,
		.recv_cq = d->recv_cq,
		.pd = d->pd,
		.cap =
			{
				.max_send_wr = d->opened.max_send_wr,
				.max_recv_wr = 256,
				.max_send_sge = ORDER_SGES,
				.max_recv_sge = ORDER_SGES,
				.max_inline_data = d->opened.inline_bytes,
			},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = SEND_OPS,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS |
			     MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE |
				(d->opened.pipelining ? MLX5DV_QP_CREATE_SIG_PIPELINING : 0),
		.send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE | MLX5DV_QP_EX_WITH_MR_LIST |
				  MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_RAW_WQE,
	};
	struct ibv_qp *qp;

	qp = mlx5dv_create_qp(d->port.ctx, &attr, &dv);
	d->max_inline = attr.cap.max_inline_data;
	return qp;
}

int endpoint_open(struct endpoint *d, const struct open_order *how)
{
	struct ibv_cq_ex *unused;

	d->opened = *how;
	device_port_open_by(&d->port, how->device[0] ? how->device : NULL, how->gid_index,
			    open_devx);
	d->pd = ibv_alloc_pd(d->port.ctx);
	if (!d->pd)
		device_die("ibv_alloc_pd: %m");
	d->send_cq = open_cq(d, &d->send_cq_ex);
	d->recv_cq = how->own_cqs ? open_cq(d, &unused) : d->send_cq;
	d->mr = ibv_reg_mr(d->pd, d->memory, ORDER_MEMORY, (int)how->mr_access);
	if (!d->mr)
		device_die("ibv_reg_mr: %m");
	d->qp = open_qp(d);
	if (!d->qp)
		return errno ? errno : EIO;
	d->qpx = ibv_qp_to_qp_ex(d->qp);
	d->mqpx = mlx5dv_qp_ex_from_ibv_qp_ex(d->qpx);
	return 0;
}

static void must_succeed(int err, const char *what)
{
	if (err)
		device_die("%s: %s", what, strerror(err));
}

void endpoint_close(struct endpoint *d)
{
	if (!d->port.ctx)
		return;
	if (d->qp)
		must_succeed(ibv_destroy_qp(d->qp), "ibv_destroy_qp");
	for (int i = 0; i < ORDER_KEYS; i++) {
		if (d->key[i])
			must_succeed(mlx5dv_destroy_mkey(d->key[i]), "mlx5dv_destroy_mkey");
		d->key[i] = NULL;
	}
	must_succeed(ibv_dereg_mr(d->mr), "ibv_dereg_mr");
	if (d->recv_cq != d->send_cq)
		must_succeed(ibv_destroy_cq(d->recv_cq), "ibv_destroy_cq");
	must_succeed(ibv_destroy_cq(d->send_cq), "ibv_destroy_cq");
	must_succeed(ibv_dealloc_pd(d->pd), "ibv_dealloc_pd");
	device_port_close(&d->port);
}

static struct address own_address(const struct endpoint *d)
{
	struct mlx5dv_context attr = {.comp_mask = MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD};
	struct device_address a = device_address(&d->port, d->qp, 0x100);

	if (mlx5dv_query_device(d->port.ctx, &attr))
		device_die("mlx5dv_query_device: %m");
	return (struct address){
		.gid = a.gid,
		.qpn = a.qpn,
		.psn = a.psn,
		.lid = a.lid,
		.rkey = d->mr->rkey,
		.base = (uint64_t)(uintptr_t)d->memory,
		.caps = attr.sig_caps,
	};
}

static void connect_to(struct endpoint *d, const struct address *peer)
{
	struct device_address a = {
		.gid = peer->gid,
		.qpn = peer->qpn,
		.psn = peer->psn,
		.lid = peer->lid,
	};
	struct device_connection how = device_default_connection;

	how.mtu = d->opened.mtu;
	device_qp_init(d->qp, &how);
	device_qp_connect(&d->port, d->qp, &how, &a, 0x100);
}

/* Until there are so many, or time is up. */
static void poll_for(struct endpoint *d, const struct order *o, struct answer *a)
{
	struct ibv_cq *cq = o->poll.receives ? d->recv_cq : d->send_cq;
	uint64_t end = device_now_ns() + o->poll.limit_ms * 1000000ull;

	a->poll.count = 0;
	for (unsigned round = 0;; round++) {
		int n = ibv_poll_cq(cq, (int)(o->poll.count - a->poll.count),
				    a->poll.wc + a->poll.count);

		if (n < 0) {
			a->status = EIO;
			return;
		}
		a->poll.count += (unsigned)n;
		if (a->poll.count == o->poll.count || (round % 64 == 63 && device_now_ns() >= end))
			return;
		if (round % 1024 == 1023)
			sched_yield(); /* the device may wait for this CPU */
	}
}

static int change_state(struct endpoint *d, enum ibv_qp_state state, bool current)
{
	struct ibv_qp_attr attr = {.qp_state = state, .cur_qp_state = IBV_QPS_SQD};

	return ibv_modify_qp(d->qp, &attr, IBV_QP_STATE | (current ? IBV_QP_CUR_STATE : 0));
}

static void next_event(struct endpoint *d, unsigned limit_ms, struct answer *a)
{
	struct pollfd ready = {.fd = d->port.ctx->async_fd, .events = POLLIN};
	struct ibv_async_event event;
	int n = poll(&ready, 1, (int)limit_ms);

	a->event.happened = n > 0;
	if (n <= 0) {
		a->status = n ? errno : 0;
		return;
	}
	if (ibv_get_async_event(d->port.ctx, &event)) {
		a->status = errno;
		return;
	}
	a->event.type = event.event_type;
	if (event.event_type == IBV_EVENT_SQ_DRAINED && event.element.qp != d->qp)
		a->status = ENXIO;
	ibv_ack_async_event(&event);
}

static int check_key(struct endpoint *d, int key, struct mlx5dv_mkey_err *out)
{
	/* What a check leaves alone is recognisable. */
	memset(out, 0xa5, sizeof(*out));
	return mlx5dv_mkey_check(d->key[key], out);
}

static int destroy_key(struct endpoint *d, int key)
{
	int err = mlx5dv_destroy_mkey(d->key[key]);

	if (!err)
		d->key[key] = NULL;
	return err;
}

void endpoint_carry_out(struct endpoint *d, const struct order *o, struct answer *a)
{
	memset(a, 0, sizeof(*a));
	switch (o->code) {
	case ORDER_OPEN:
		a->status = endpoint_open(d, &o->open);
		if (!a->status)
			a->address = own_address(d);
		break;
	case ORDER_CONNECT:
		connect_to(d, &o->peer);
		break;
	case ORDER_KEY_CREATE:
		a->status = endpoint_key_create(d, o->key, o->create.flags, o->create.entries,
						&a->names);
		break;
	case ORDER_KEY_CONFIGURE:
		a->status = endpoint_key_configure(d, o->key, &o->conf);
		break;
	case ORDER_KEY_CHECK:
		a->status = check_key(d, o->key, &a->error);
		break;
	case ORDER_KEY_DESTROY:
		a->status = destroy_key(d, o->key);
		break;
	case ORDER_POST:
		a->status = endpoint_post(d, o->post.count, o->post.request);
		break;
	case ORDER_RECEIVE:
		a->status = endpoint_receive(d, o->receive.id, o->receive.slices, o->receive.slice);
		break;
	case ORDER_POLL:
		poll_for(d, o, a);
		break;
	case ORDER_CANCEL:
		a->status = mlx5dv_qp_cancel_posted_send_wrs(d->mqpx, o->wr_id);
		break;
	case ORDER_MODIFY:
		a->status = change_state(d, o->modify.state, o->modify.current);
		break;
	case ORDER_STATE:
		a->state = device_qp_state(d->qp);
		break;
	case ORDER_EVENT:
		next_event(d, o->limit_ms, a);
		break;
	default:
		a->status = EINVAL;
	}
}
