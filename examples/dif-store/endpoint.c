/* SPDX-License-Identifier: BSD-2-Clause */
/* Adapter, queue pair, sleep and wake; see endpoint.h. */
#include "endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "complain.h"

/* Room for an mkey's configuration: a list of up to 4 entries and the signature attributes. */
#define INLINE_BYTES 256u
/* RDMA READs under way; devices do 16. */
#define READS 16u
/*
 * 4.096 us << 17: half a second, seven times again.  A machine with more to do than CPUs may be
 * that late; that the other side has gone is known from TCP at once.
 */
#define TIMEOUT 17u

/* ---- devices ---- */

static bool has_signatures(struct ibv_context *ctx)
{
	struct mlx5dv_context caps = {.comp_mask = MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD};
	const uint64_t sizes = MLX5DV_BLOCK_SIZE_CAP_512 | MLX5DV_BLOCK_SIZE_CAP_4096;

	return mlx5dv_query_device(ctx, &caps) == 0 &&
	       (caps.comp_mask & MLX5DV_CONTEXT_MASK_SIGNATURE_OFFLOAD) &&
	       (caps.sig_caps.block_prot & MLX5DV_SIG_PROT_CAP_T10DIF) &&
	       (caps.sig_caps.t10dif_bg & MLX5DV_SIG_T10DIF_BG_CAP_CRC) &&
	       (caps.sig_caps.block_size & sizes) == sizes;
}

static struct ibv_context *open_suitable(struct ibv_device *device)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct ibv_context *ctx;

	if (!mlx5dv_is_supported(device))
		return NULL;
	ctx = mlx5dv_open_device(device, &attr);
	if (ctx && !has_signatures(ctx)) {
		ibv_close_device(ctx);
		ctx = NULL;
	}
	return ctx;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_context *ctx = NULL;
	bool seen = false;
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	for (int i = 0; list && i < n && !ctx; i++) {
		if (name && strcmp(name, ibv_get_device_name(list[i])) != 0)
			continue;
		seen = true;
		ctx = open_suitable(list[i]);
	}
	if (list)
		ibv_free_device_list(list);
	if (ctx)
		return ctx;
	if (name && !seen)
		complain("there is no RDMA device '%s'; ibv_devices lists what there is", name);
	else if (!seen)
		complain("there is no RDMA device; without hardware use: softhca run -- PROGRAM");
	else if (name)
		complain("%s has no T10-DIF signature offload, or cannot be opened with DEVX",
			 name);
	else
		complain("no RDMA device here has T10-DIF signature offload and can be opened with "
			 "DEVX");
	return NULL;
}

/* The table of an Ethernet port has an entry per IP address and RoCE version. */
static int first_roce_v2(struct ibv_context *ctx, int port, int entries)
{
	for (int i = 0; i < entries; i++) {
		struct ibv_gid_entry entry;

		if (ibv_query_gid_ex(ctx, (uint32_t)port, (uint32_t)i, &entry, 0) == 0 &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2)
			return i;
	}
	return 0;
}

static bool query_port(struct endpoint *e, const struct endpoint_options *o)
{
	struct ibv_port_attr *attr = &e->port_attr;
	union ibv_gid gid;

	e->port = o->port;
	if (ibv_query_port(e->ctx, (uint8_t)e->port, attr)) {
		complain("device %s has no port %d", ibv_get_device_name(e->ctx->device), e->port);
		return false;
	}
	if (attr->state != IBV_PORT_ACTIVE) {
		complain("port %d of %s is not active: %s", e->port,
			 ibv_get_device_name(e->ctx->device), ibv_port_state_str(attr->state));
		return false;
	}
	e->gid_index = o->gid_index;
	if (e->gid_index < 0 && attr->link_layer == IBV_LINK_LAYER_ETHERNET)
		e->gid_index = first_roce_v2(e->ctx, e->port, attr->gid_tbl_len);
	else if (e->gid_index < 0)
		e->gid_index = 0;
	if (ibv_query_gid(e->ctx, (uint8_t)e->port, e->gid_index, &gid)) {
		complain("port %d of %s has no GID %d", e->port,
			 ibv_get_device_name(e->ctx->device), e->gid_index);
		return false;
	}
	e->address.lid = attr->lid;
	e->address.mtu = (uint8_t)attr->active_mtu;
	e->address.link_layer = attr->link_layer;
	memcpy(e->address.gid, gid.raw, sizeof(gid.raw));
	return true;
}

/* ---- the queue pair ---- */

static bool create_qp(struct endpoint *e, const struct endpoint_options *o, bool pipelining)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.pd = e->pd,
		.cap = {.max_send_wr = o->send_wrs,
			.max_recv_wr = o->receive_wrs,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = INLINE_BYTES},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags =
			IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ,
	};
	/* mlx5dv_create_mkey(3): indirect mkeys cannot scatter to CQEs. */
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS |
			     MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE |
				(pipelining ? MLX5DV_QP_CREATE_SIG_PIPELINING : 0),
		.send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE,
	};

	e->qp = mlx5dv_create_qp(e->ctx, &attr, &dv);
	if (!e->qp)
		return false;
	e->wr = ibv_qp_to_qp_ex(e->qp);
	e->dv = mlx5dv_qp_ex_from_ibv_qp_ex(e->wr);
	e->pipelining = pipelining;
	return true;
}

static bool never_blocks(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

static bool create_objects(struct endpoint *e, const struct endpoint_options *o)
{
	e->pd = ibv_alloc_pd(e->ctx);
	e->channel = ibv_create_comp_channel(e->ctx);
	if (!e->pd || !e->channel || !never_blocks(e->channel->fd) ||
	    !never_blocks(e->ctx->async_fd)) {
		complain("cannot set up the adapter: %m");
		return false;
	}
	e->cq = ibv_create_cq(e->ctx, (int)o->cqes, NULL, e->channel, 0);
	if (!e->cq) {
		complain("cannot create a completion queue of %u entries: %m", o->cqes);
		return false;
	}
	if (create_qp(e, o, o->pipelining))
		return true;
	/* mlx5dv_create_qp(3): so answers a device or kernel without pipelining. */
	if (o->pipelining && errno == EOPNOTSUPP) {
		complain("no signature pipelining here; responses will wait for their data");
		if (create_qp(e, o, false))
			return true;
	}
	complain("cannot create a queue pair: %m; try less depth");
	return false;
}

static bool to_init(struct endpoint *e)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = (uint8_t)e->port,
		.qp_access_flags =
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
	};
	uint32_t psn = 0;
	int error = ibv_modify_qp(
		e->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	if (error) {
		complain("cannot initialise the queue pair: %s", strerror(error));
		return false;
	}
	if (getrandom(&psn, sizeof(psn), 0) != sizeof(psn))
		psn = e->qp->qp_num; /* any will do */
	e->address.psn = psn & 0xffffff;
	e->address.qpn = e->qp->qp_num;
	return true;
}

bool endpoint_open(struct endpoint *e, const struct endpoint_options *o)
{
	*e = (struct endpoint){};
	e->ctx = open_device(o->device);
	if (e->ctx && query_port(e, o) && create_objects(e, o) && to_init(e))
		return true;
	endpoint_close(e);
	return false;
}

static int to_ready(struct endpoint *e, const struct proto_address *peer)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = peer->mtu < e->address.mtu ? peer->mtu : e->address.mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = READS,
		.min_rnr_timer = 12,
		.ah_attr = {.dlid = peer->lid,
			    .port_num = (uint8_t)e->port,
			    .is_global = peer->link_layer == IBV_LINK_LAYER_ETHERNET,
			    .grh = {.hop_limit = 64, .sgid_index = (uint8_t)e->gid_index}},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.timeout = TIMEOUT,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.sq_psn = e->address.psn,
		.max_rd_atomic = READS,
	};
	int error;

	memcpy(rtr.ah_attr.grh.dgid.raw, peer->gid, sizeof(peer->gid));
	error = ibv_modify_qp(e->qp, &rtr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER);
	if (error)
		return error;
	return ibv_modify_qp(e->qp, &rts,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

bool endpoint_connect(struct endpoint *e, const struct proto_address *peer)
{
	int error;

	if (peer->link_layer != e->address.link_layer) {
		complain("one side's port is InfiniBand, the other's Ethernet; use --device to "
			 "choose ports of one kind");
		return false;
	}
	error = to_ready(e, peer);
	if (error)
		complain("cannot connect the queue pair: %s", strerror(error));
	return !error;
}

void endpoint_close(struct endpoint *e)
{
	if (e->qp)
		ibv_destroy_qp(e->qp);
	if (e->cq)
		ibv_destroy_cq(e->cq);
	if (e->channel)
		ibv_destroy_comp_channel(e->channel);
	if (e->pd)
		ibv_dealloc_pd(e->pd);
	if (e->ctx)
		ibv_close_device(e->ctx);
	*e = (struct endpoint){};
}

bool endpoint_commit(struct endpoint *e)
{
	int error = ibv_wr_complete(e->wr);

	if (error)
		complain("cannot post work requests: %s", strerror(error));
	return !error;
}

/* ---- sleep ---- */

static bool take_cq_event(struct endpoint *e)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(e->channel, &cq, &context))
		return false;
	ibv_ack_cq_events(cq, 1);
	return true;
}

unsigned endpoint_sleep(struct endpoint *e, const int fds[2], int limit_ms)
{
	struct pollfd watched[] = {
		{.fd = e->channel->fd, .events = POLLIN},
		{.fd = e->ctx->async_fd, .events = POLLIN},
		{.fd = fds[0], .events = POLLIN},
		{.fd = fds[1], .events = POLLIN},
	};
	unsigned ready = 0;
	int n;

	do {
		n = poll(watched, sizeof(watched) / sizeof(watched[0]), limit_ms);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		complain("poll: %m");
		return 0;
	}
	if (n == 0)
		return ENDPOINT_LATE;
	if (watched[0].revents && take_cq_event(e))
		ready |= ENDPOINT_CQ;
	if (watched[1].revents)
		ready |= ENDPOINT_ASYNC;
	if (watched[2].revents || watched[3].revents)
		ready |= ENDPOINT_CALLER;
	return ready ? ready : ENDPOINT_CQ;
}
