/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs of plain libibverbs, work queues and flow rules. */
#include <stdio.h>
#include <string.h>

#include "walk.h"

#define DEPTH 16

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
QP_STEPS(remote, remote, IBV_QPT_RC, NULL)

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

static int wq_to(const struct walk *w, enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state};

	return ibv_modify_wq(w->wq, &attr);
}

/* What is posted in error comes back at once. */
static int wq_post_in_error(const struct walk *w)
{
	struct ibv_sge sge = {(uintptr_t)w->memory, 64, w->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_wc wc = {0};
	int ret = ibv_post_wq_recv(w->wq, &wr, &bad);

	if (ret)
		return ret;
	if (ibv_poll_cq(w->cq[1], 1, &wc) == 1 && wc.status == IBV_WC_WR_FLUSH_ERR)
		return 0;
	fprintf(stderr, "a receive for a work queue in error is not flushed\n");
	return WALK_WRONG;
}

WALK_STEP(wq_flush_make)
{
	int ret;

	if (!w->wq || !w->mr)
		return WALK_SKIP;
	ret = wq_to(w, IBV_WQS_ERR);
	if (!ret)
		ret = wq_post_in_error(w);
	return ret ? ret : wq_to(w, IBV_WQS_RESET);
}

WALK_STEP(wq_ready_make)
{
	return w->wq ? wq_to(w, IBV_WQS_RDY) : WALK_SKIP;
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

const struct walk_step walk_qps[] = {
	{WALK_BOTH(rc0)},
	{WALK_BOTH(rc1)},
	{WALK_BOTH(uc0)},
	{WALK_BOTH(uc1)},
	{WALK_BOTH(ud0)},
	{WALK_BOTH(ud1)},
	{WALK_BOTH(on_srq)},
	{WALK_BOTH(remote)},
	{WALK_BOTH(xrc_send)},
	{WALK_BOTH(xrc_recv)},
	{WALK_BOTH(raw)},
	{WALK_BOTH(wq)},
	{"wq flush", wq_flush_make, NULL},
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
