/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of plain libibverbs. */
#include <string.h>

#include "walk.h"

#define DEPTH 16

int walk_errno(void)
{
	return errno ? errno : -WALK_WRONG;
}

WALK_STEP(open_make)
{
	struct ibv_device **list;
	int error = ENODEV;

	errno = 0;
	list = ibv_get_device_list(NULL);
	if (!list)
		return walk_errno();
	for (int i = 0; list[i] && !w->ctx; i++) {
		struct mlx5dv_context_attr devx = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};

		if (strcmp(ibv_get_device_name(list[i]), w->device) != 0)
			continue;
		errno = 0;
		w->ctx = mlx5dv_open_device(list[i], &devx);
		error = w->ctx ? 0 : walk_errno();
	}
	ibv_free_device_list(list);
	return error;
}

WALK_STEP(open_drop)
{
	WALK_DROP(w->ctx, ibv_close_device(w->ctx));
}

WALK_STEP(query_make)
{
	struct ibv_device_attr_ex attr;
	struct mlx5dv_context dv = {.comp_mask = ~0ull};
	int ret;

	if (!w->ctx)
		return WALK_SKIP;
	ret = ibv_query_device_ex(w->ctx, NULL, &attr);
	if (ret)
		return ret;
	ret = mlx5dv_query_device(w->ctx, &dv);
	if (ret)
		return ret;
	ret = ibv_query_port(w->ctx, 1, &w->port);
	if (ret)
		return ret;
	errno = 0;
	if (ibv_query_gid(w->ctx, 1, 0, &w->gid))
		return walk_errno();
	w->have_port = true;
	return 0;
}

WALK_STEP(query_drop)
{
	w->have_port = false;
	return 0;
}

WALK_STEP(pd_make)
{
	return WALK_MAKE(w->pd, w->ctx, ibv_alloc_pd(w->ctx));
}

WALK_STEP(pd_drop)
{
	WALK_DROP(w->pd, ibv_dealloc_pd(w->pd));
}

WALK_STEP(td_make)
{
	struct ibv_td_init_attr attr = {0};

	return WALK_MAKE(w->td, w->ctx, ibv_alloc_td(w->ctx, &attr));
}

WALK_STEP(td_drop)
{
	WALK_DROP(w->td, ibv_dealloc_td(w->td));
}

WALK_STEP(parent_make)
{
	struct ibv_parent_domain_init_attr attr = {.pd = w->pd, .td = w->td};

	return WALK_MAKE(w->parent, w->pd && w->td, ibv_alloc_parent_domain(w->ctx, &attr));
}

WALK_STEP(parent_drop)
{
	WALK_DROP(w->parent, ibv_dealloc_pd(w->parent));
}

WALK_STEP(channel_make)
{
	return WALK_MAKE(w->channel, w->ctx, ibv_create_comp_channel(w->ctx));
}

WALK_STEP(channel_drop)
{
	WALK_DROP(w->channel, ibv_destroy_comp_channel(w->channel));
}

WALK_STEP(cq0_make)
{
	return WALK_MAKE(w->cq[0], w->channel, ibv_create_cq(w->ctx, 64, w, w->channel, 0));
}

WALK_STEP(cq0_drop)
{
	WALK_DROP(w->cq[0], ibv_destroy_cq(w->cq[0]));
}

WALK_STEP(cq1_make)
{
	return WALK_MAKE(w->cq[1], w->ctx, ibv_create_cq(w->ctx, 64, NULL, NULL, 0));
}

WALK_STEP(cq1_drop)
{
	WALK_DROP(w->cq[1], ibv_destroy_cq(w->cq[1]));
}

WALK_STEP(cq_ex_make)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS};

	return WALK_MAKE(w->cq_ex, w->ctx, ibv_create_cq_ex(w->ctx, &attr));
}

WALK_STEP(cq_ex_drop)
{
	WALK_DROP(w->cq_ex, ibv_destroy_cq(ibv_cq_ex_to_cq(w->cq_ex)));
}

WALK_STEP(resize_make)
{
	return w->cq[1] ? ibv_resize_cq(w->cq[1], 200) : WALK_SKIP;
}

WALK_STEP(mr_make)
{
	return WALK_MAKE(w->mr, w->pd,
			 ibv_reg_mr(w->pd, w->memory, WALK_BYTES,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
					    IBV_ACCESS_MW_BIND));
}

WALK_STEP(mr_drop)
{
	WALK_DROP(w->mr, ibv_dereg_mr(w->mr));
}

WALK_STEP(local_make)
{
	return WALK_MAKE(w->local, w->pd,
			 ibv_reg_mr(w->pd, w->memory, WALK_PAGE, IBV_ACCESS_LOCAL_WRITE));
}

WALK_STEP(local_drop)
{
	WALK_DROP(w->local, ibv_dereg_mr(w->local));
}

WALK_STEP(rereg_make)
{
	if (!w->local)
		return WALK_SKIP;
	errno = 0;
	return ibv_rereg_mr(w->local, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, w->memory + WALK_PAGE,
			    WALK_PAGE, 0)
		       ? walk_errno()
		       : 0;
}

WALK_STEP(null_make)
{
	return WALK_MAKE(w->null, w->pd, ibv_alloc_null_mr(w->pd));
}

WALK_STEP(null_drop)
{
	WALK_DROP(w->null, ibv_dereg_mr(w->null));
}

WALK_STEP(dm_make)
{
	struct ibv_alloc_dm_attr attr = {.length = 256};

	return WALK_MAKE(w->dm, w->ctx, ibv_alloc_dm(w->ctx, &attr));
}

WALK_STEP(dm_drop)
{
	WALK_DROP(w->dm, ibv_free_dm(w->dm));
}

WALK_STEP(dm_mr_make)
{
	return WALK_MAKE(w->dm_mr, w->pd && w->dm,
			 ibv_reg_dm_mr(w->pd, w->dm, 0, 256,
				       IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE));
}

WALK_STEP(dm_mr_drop)
{
	WALK_DROP(w->dm_mr, ibv_dereg_mr(w->dm_mr));
}

WALK_STEP(mw1_make)
{
	return WALK_MAKE(w->mw[0], w->pd, ibv_alloc_mw(w->pd, IBV_MW_TYPE_1));
}

WALK_STEP(mw1_drop)
{
	WALK_DROP(w->mw[0], ibv_dealloc_mw(w->mw[0]));
}

WALK_STEP(mw2_make)
{
	return WALK_MAKE(w->mw[1], w->pd, ibv_alloc_mw(w->pd, IBV_MW_TYPE_2));
}

WALK_STEP(mw2_drop)
{
	WALK_DROP(w->mw[1], ibv_dealloc_mw(w->mw[1]));
}

WALK_STEP(srq_make)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = DEPTH, .max_sge = 1}};

	return WALK_MAKE(w->srq, w->pd, ibv_create_srq(w->pd, &attr));
}

WALK_STEP(srq_drop)
{
	WALK_DROP(w->srq, ibv_destroy_srq(w->srq));
}

WALK_STEP(srq_limit_make)
{
	struct ibv_srq_attr attr = {.srq_limit = 2};

	return w->srq ? ibv_modify_srq(w->srq, &attr, IBV_SRQ_LIMIT) : WALK_SKIP;
}

WALK_STEP(xrcd_make)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};

	return WALK_MAKE(w->xrcd, w->ctx, ibv_open_xrcd(w->ctx, &attr));
}

WALK_STEP(xrcd_drop)
{
	WALK_DROP(w->xrcd, ibv_close_xrcd(w->xrcd));
}

WALK_STEP(xrc_srq_make)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = DEPTH, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = w->pd,
		.xrcd = w->xrcd,
		.cq = w->cq[1],
	};

	return WALK_MAKE(w->xrc_srq, w->pd && w->xrcd && w->cq[1],
			 ibv_create_srq_ex(w->ctx, &attr));
}

WALK_STEP(xrc_srq_drop)
{
	WALK_DROP(w->xrc_srq, ibv_destroy_srq(w->xrc_srq));
}

WALK_STEP(ah_make)
{
	struct walk_address self = {.lid = w->port.lid, .gid = w->gid};
	struct ibv_ah_attr attr = walk_ah_attr(w, &self);

	return WALK_MAKE(w->ah, w->pd && w->have_port, ibv_create_ah(w->pd, &attr));
}

WALK_STEP(ah_drop)
{
	WALK_DROP(w->ah, ibv_destroy_ah(w->ah));
}

/* ---- queue pairs ---- */

static struct ibv_qp *qp_create(struct walk *w, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = type,
		.send_cq = w->cq[0],
		.recv_cq = w->cq[1],
		.srq = srq,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = srq ? 0 : DEPTH,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = 64},
	};

	return ibv_create_qp(w->pd, &attr);
}

static int qp_make(struct walk *w, struct walk_end *e, enum ibv_qp_type type, struct ibv_srq *srq)
{
	return WALK_MAKE(e->qp, w->pd && w->cq[0] && w->cq[1], qp_create(w, type, srq));
}

static int qp_drop(struct walk_end *e)
{
	e->ready = false;
	WALK_DROP(e->qp, ibv_destroy_qp(e->qp));
}

#define QP_STEPS(name, end, type, srq)                 \
	WALK_STEP(name##_make)                         \
	{                                              \
		return qp_make(w, &w->end, type, srq); \
	}                                              \
	WALK_STEP(name##_drop)                         \
	{                                              \
		return qp_drop(&w->end);               \
	}

QP_STEPS(rc0, rc[0], IBV_QPT_RC, NULL)
QP_STEPS(rc1, rc[1], IBV_QPT_RC, NULL)
QP_STEPS(uc0, uc[0], IBV_QPT_UC, NULL)
QP_STEPS(uc1, uc[1], IBV_QPT_UC, NULL)
QP_STEPS(ud0, ud[0], IBV_QPT_UD, NULL)
QP_STEPS(ud1, ud[1], IBV_QPT_UD, NULL)
QP_STEPS(on_srq, on_srq, IBV_QPT_RC, w->srq)
QP_STEPS(far, far, IBV_QPT_RC, NULL)

WALK_STEP(xrc_send_make)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = w->cq[0],
		.cap = {.max_send_wr = DEPTH, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = w->pd,
	};

	return WALK_MAKE(w->xrc_send.qp, w->pd && w->cq[0], ibv_create_qp_ex(w->ctx, &attr));
}

WALK_STEP(xrc_send_drop)
{
	return qp_drop(&w->xrc_send);
}

WALK_STEP(xrc_recv_make)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = w->xrcd,
	};

	return WALK_MAKE(w->xrc_recv.qp, w->xrcd, ibv_create_qp_ex(w->ctx, &attr));
}

WALK_STEP(xrc_recv_drop)
{
	return qp_drop(&w->xrc_recv);
}

/* ---- Ethernet ---- */

WALK_STEP(raw_make)
{
	if (w->have_port && w->port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return WALK_SKIP;
	return qp_make(w, &w->raw, IBV_QPT_RAW_PACKET, NULL);
}

WALK_STEP(raw_drop)
{
	return qp_drop(&w->raw);
}

WALK_STEP(wq_make)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = DEPTH, .max_sge = 1, .pd = w->pd, .cq = w->cq[1]};

	return WALK_MAKE(w->wq, w->raw.qp, ibv_create_wq(w->ctx, &attr));
}

WALK_STEP(wq_drop)
{
	WALK_DROP(w->wq, ibv_destroy_wq(w->wq));
}

WALK_STEP(wq_ready_make)
{
	struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};

	return w->wq ? ibv_modify_wq(w->wq, &attr) : WALK_SKIP;
}

WALK_STEP(table_make)
{
	struct ibv_rwq_ind_table_init_attr attr = {.ind_tbl = &w->wq};

	return WALK_MAKE(w->table, w->wq, ibv_create_rwq_ind_table(w->ctx, &attr));
}

WALK_STEP(table_drop)
{
	WALK_DROP(w->table, ibv_destroy_rwq_ind_table(w->table));
}

WALK_STEP(rss_make)
{
	static uint8_t key[40] = {1, 2, 3};
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.pd = w->pd,
		.rwq_ind_tbl = w->table,
		.rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				 .rx_hash_key_len = sizeof(key),
				 .rx_hash_key = key,
				 .rx_hash_fields_mask =
					 IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4},
	};

	return WALK_MAKE(w->rss, w->table, ibv_create_qp_ex(w->ctx, &attr));
}

WALK_STEP(rss_drop)
{
	WALK_DROP(w->rss, ibv_destroy_qp(w->rss));
}

WALK_STEP(counters_make)
{
	struct ibv_counters_init_attr attr = {0};

	return WALK_MAKE(w->counters, w->raw.qp, ibv_create_counters(w->ctx, &attr));
}

WALK_STEP(counters_drop)
{
	WALK_DROP(w->counters, ibv_destroy_counters(w->counters));
}

WALK_STEP(counters_point_make)
{
	struct ibv_counter_attach_attr attr = {
		.counter_desc = IBV_COUNTER_PACKETS,
	};

	return w->counters ? ibv_attach_counters_point_flow(w->counters, &attr, NULL) : WALK_SKIP;
}

WALK_STEP(flow_make)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		struct ibv_flow_spec_counter_action count;
	} __attribute__((packed, aligned(8))) rule = {
		.attr = {.type = IBV_FLOW_ATTR_NORMAL,
			 .size = sizeof(rule.attr) + sizeof(rule.eth),
			 .num_of_specs = 1,
			 .port = 1},
		.eth = {.type = IBV_FLOW_SPEC_ETH,
			.size = sizeof(rule.eth),
			.val = {.dst_mac = {2, 0, 0, 0, 0, 2}},
			.mask = {.dst_mac = {255, 255, 255, 255, 255, 255}}},
		.count = {.type = IBV_FLOW_SPEC_ACTION_COUNT, .size = sizeof(rule.count)},
	};

	if (w->counters) {
		rule.count.counters = w->counters;
		rule.attr.size = sizeof(rule);
		rule.attr.num_of_specs = 2;
	}
	return WALK_MAKE(w->flow, w->raw.ready,
			 ibv_create_flow(w->raw.qp, (struct ibv_flow_attr *)(uintptr_t)&rule));
}

WALK_STEP(flow_drop)
{
	WALK_DROP(w->flow, ibv_destroy_flow(w->flow));
}

/* ---- states ---- */

WALK_STEP(rc_connect)
{
	struct walk_address to[2];
	int ret;

	if (!w->rc[0].qp || !w->rc[1].qp || !w->have_port)
		return WALK_SKIP;
	to[0] = walk_address(w, w->rc[1].qp);
	to[1] = walk_address(w, w->rc[0].qp);
	ret = walk_connect(w, &w->rc[0], &to[0]);
	return ret ? ret : walk_connect(w, &w->rc[1], &to[1]);
}

WALK_STEP(uc_connect)
{
	struct walk_address to[2];
	int ret;

	if (!w->uc[0].qp || !w->uc[1].qp || !w->have_port)
		return WALK_SKIP;
	to[0] = walk_address(w, w->uc[1].qp);
	to[1] = walk_address(w, w->uc[0].qp);
	ret = walk_connect(w, &w->uc[0], &to[0]);
	return ret ? ret : walk_connect(w, &w->uc[1], &to[1]);
}

WALK_STEP(ud_connect)
{
	struct walk_address none = {0};
	int ret;

	if (!w->ud[0].qp || !w->ud[1].qp)
		return WALK_SKIP;
	ret = walk_connect(w, &w->ud[0], &none);
	return ret ? ret : walk_connect(w, &w->ud[1], &none);
}

WALK_STEP(on_srq_connect)
{
	struct walk_address self;

	if (!w->on_srq.qp || !w->have_port)
		return WALK_SKIP;
	self = walk_address(w, w->on_srq.qp);
	return walk_connect(w, &w->on_srq, &self);
}

WALK_STEP(xrc_connect)
{
	struct walk_address to[2];
	int ret;

	if (!w->xrc_send.qp || !w->xrc_recv.qp || !w->have_port)
		return WALK_SKIP;
	to[0] = walk_address(w, w->xrc_recv.qp);
	to[1] = walk_address(w, w->xrc_send.qp);
	ret = walk_connect(w, &w->xrc_send, &to[0]);
	return ret ? ret : walk_connect(w, &w->xrc_recv, &to[1]);
}

WALK_STEP(raw_connect)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	int ret;

	if (!w->raw.qp)
		return WALK_SKIP;
	ret = ibv_modify_qp(w->raw.qp, &attr, IBV_QP_STATE | IBV_QP_PORT);
	attr.qp_state = IBV_QPS_RTR;
	if (!ret)
		ret = ibv_modify_qp(w->raw.qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!ret)
		ret = ibv_modify_qp(w->raw.qp, &attr, IBV_QP_STATE);
	w->raw.ready = !ret;
	return ret;
}

static void group_gid(union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[0] = 0xff;
	gid->raw[1] = 0x0e;
	gid->raw[15] = 0x77;
}

WALK_STEP(group_make)
{
	union ibv_gid gid;
	int ret;

	if (!w->ud[1].ready)
		return WALK_SKIP;
	group_gid(&gid);
	ret = ibv_attach_mcast(w->ud[1].qp, &gid, 0xc077);
	w->attached = !ret;
	return ret;
}

WALK_STEP(group_drop)
{
	union ibv_gid gid;

	group_gid(&gid);
	if (!w->attached)
		return 0;
	w->attached = false;
	return ibv_detach_mcast(w->ud[1].qp, &gid, 0xc077);
}

const struct walk_step walk_verbs[] = {
	{WALK_BOTH(open)},
	{WALK_BOTH(query)},
	{WALK_BOTH(pd)},
	{WALK_BOTH(td)},
	{WALK_BOTH(parent)},
	{WALK_BOTH(channel)},
	{WALK_BOTH(cq0)},
	{WALK_BOTH(cq1)},
	{WALK_BOTH(cq_ex)},
	{"resize", resize_make, NULL},
	{WALK_BOTH(mr)},
	{WALK_BOTH(local)},
	{"rereg", rereg_make, NULL},
	{WALK_BOTH(null)},
	{WALK_BOTH(dm)},
	{WALK_BOTH(dm_mr)},
	{WALK_BOTH(mw1)},
	{WALK_BOTH(mw2)},
	{WALK_BOTH(srq)},
	{"srq limit", srq_limit_make, NULL},
	{WALK_BOTH(xrcd)},
	{WALK_BOTH(xrc_srq)},
	{WALK_BOTH(ah)},
	{WALK_BOTH(rc0)},
	{WALK_BOTH(rc1)},
	{WALK_BOTH(uc0)},
	{WALK_BOTH(uc1)},
	{WALK_BOTH(ud0)},
	{WALK_BOTH(ud1)},
	{WALK_BOTH(on_srq)},
	{WALK_BOTH(far)},
	{WALK_BOTH(xrc_send)},
	{WALK_BOTH(xrc_recv)},
	{WALK_BOTH(raw)},
	{WALK_BOTH(wq)},
	{"wq to ready", wq_ready_make, NULL},
	{WALK_BOTH(table)},
	{WALK_BOTH(rss)},
	{WALK_BOTH(counters)},
	{"counter point", counters_point_make, NULL},
	{"rc connect", rc_connect, NULL},
	{"uc connect", uc_connect, NULL},
	{"ud connect", ud_connect, NULL},
	{"on_srq connect", on_srq_connect, NULL},
	{"xrc connect", xrc_connect, NULL},
	{"raw connect", raw_connect, NULL},
	{WALK_BOTH(flow)},
	{WALK_BOTH(group)},
	{NULL, NULL, NULL},
};
