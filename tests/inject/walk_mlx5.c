/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects that are libmlx5's own, and those of DEVX. */
#include <poll.h>
#include <string.h>

#include "prm/cmd_cq_eq.h"
#include "prm/cmd_qp.h"
#include "walk.h"

static struct mlx5dv_mkey *mkey_create(struct walk *w, uint32_t more)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = w->pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | more,
		.max_entries = 8,
	};

	return mlx5dv_create_mkey(&attr);
}

WALK_STEP(mkey_make)
{
	return WALK_MAKE(w->mkey, w->pd, mkey_create(w, 0));
}

WALK_STEP(mkey_drop)
{
	WALK_DROP(w->mkey, mlx5dv_destroy_mkey(w->mkey));
}

WALK_STEP(sig_mkey_make)
{
	return WALK_MAKE(w->sig_mkey, w->pd,
			 mkey_create(w, MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE));
}

WALK_STEP(sig_mkey_drop)
{
	WALK_DROP(w->sig_mkey, mlx5dv_destroy_mkey(w->sig_mkey));
}

static struct ibv_qp *dc_create(struct walk *w, enum mlx5dv_dc_type type)
{
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = {.dc_type = type, .dct_access_key = 7},
	};
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_DRIVER,
		.send_cq = w->cq[0],
		.recv_cq = w->cq[1],
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = w->pd,
	};

	if (type == MLX5DV_DCTYPE_DCT) {
		attr.srq = w->srq;
	} else {
		attr.cap.max_send_wr = 16;
		attr.cap.max_send_sge = 1;
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
	}
	return mlx5dv_create_qp(w->ctx, &attr, &dv);
}

WALK_STEP(dct_make)
{
	return WALK_MAKE(w->dct.qp, w->srq && w->cq[0] && w->cq[1],
			 dc_create(w, MLX5DV_DCTYPE_DCT));
}

static int end_drop(struct walk_end *e)
{
	e->ready = false;
	WALK_DROP(e->qp, ibv_destroy_qp(e->qp));
}

WALK_STEP(dct_drop)
{
	return end_drop(&w->dct);
}

WALK_STEP(dci_make)
{
	return WALK_MAKE(w->dci.qp, w->pd && w->cq[0] && w->cq[1], dc_create(w, MLX5DV_DCTYPE_DCI));
}

WALK_STEP(dci_drop)
{
	return end_drop(&w->dci);
}

static int dc_init(struct walk_end *e)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	return ibv_modify_qp(e->qp, &attr, mask);
}

WALK_STEP(dct_connect)
{
	struct walk_address self = {.lid = w->port.lid, .gid = w->gid};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	int ret;

	if (!w->dct.qp || !w->have_port)
		return WALK_SKIP;
	ret = ibv_modify_qp(w->dct.qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (ret)
		return ret;
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .min_rnr_timer = 1,
				    .ah_attr = walk_ah_attr(w, &self)};
	ret = ibv_modify_qp(w->dct.qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER);
	w->dct.ready = !ret;
	return ret;
}

WALK_STEP(dci_connect)
{
	struct walk_address self = {.lid = w->port.lid, .gid = w->gid};
	struct ibv_qp_attr attr;
	int ret;

	if (!w->dci.qp || !w->have_port)
		return WALK_SKIP;
	ret = dc_init(&w->dci);
	if (ret)
		return ret;
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .ah_attr = walk_ah_attr(w, &self)};
	ret = ibv_modify_qp(w->dci.qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU);
	if (ret)
		return ret;
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 16, .retry_cnt = 7, .max_rd_atomic = 1};
	ret = ibv_modify_qp(w->dci.qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	w->dci.ready = !ret;
	return ret;
}

/* ---- rules ---- */

#define MATCH_BYTES 64u

WALK_STEP(matcher_make)
{
	struct {
		size_t size;
		uint8_t bytes[MATCH_BYTES];
	} mask = {.size = MATCH_BYTES};
	struct mlx5dv_flow_matcher_attr attr = {
		.type = IBV_FLOW_ATTR_NORMAL,
		.match_criteria_enable = 1,
		.match_mask = (void *)&mask,
	};

	memset(mask.bytes, 0xff, 6); /* source address */
	return WALK_MAKE(w->matcher, w->raw.qp, mlx5dv_create_flow_matcher(w->ctx, &attr));
}

WALK_STEP(matcher_drop)
{
	WALK_DROP(w->matcher, mlx5dv_destroy_flow_matcher(w->matcher));
}

WALK_STEP(dv_flow_make)
{
	struct {
		size_t size;
		uint8_t bytes[MATCH_BYTES];
	} value = {.size = MATCH_BYTES, .bytes = {2, 0, 0, 0, 0, 9}};
	struct mlx5dv_flow_action_attr action = {.type = MLX5DV_FLOW_ACTION_DEST_IBV_QP,
						 .qp = w->raw.qp};

	return WALK_MAKE(w->dv_flow, w->matcher && w->raw.ready,
			 mlx5dv_create_flow(w->matcher, (void *)&value, 1, &action));
}

WALK_STEP(dv_flow_drop)
{
	WALK_DROP(w->dv_flow, ibv_destroy_flow(w->dv_flow));
}

const struct walk_step walk_mlx5[] = {
	{WALK_BOTH(mkey)},
	{WALK_BOTH(sig_mkey)},
	{WALK_BOTH(dct)},
	{WALK_BOTH(dci)},
	{"dct connect", dct_connect, NULL},
	{"dci connect", dci_connect, NULL},
	{WALK_BOTH(matcher)},
	{WALK_BOTH(dv_flow)},
	{NULL, NULL, NULL},
};

/* ---- DEVX ---- */

WALK_STEP(eqn_make)
{
	return w->ctx ? mlx5dv_devx_query_eqn(w->ctx, 0, &w->eqn) : WALK_SKIP;
}

WALK_STEP(pdn_make)
{
	struct mlx5dv_pd pd;
	struct mlx5dv_obj obj = {.pd = {.in = w->pd, .out = &pd}};
	int ret;

	if (!w->pd)
		return WALK_SKIP;
	ret = mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD);
	w->pdn = pd.pdn;
	return ret;
}

WALK_STEP(uar_make)
{
	return WALK_MAKE(w->uar, w->ctx, mlx5dv_devx_alloc_uar(w->ctx, MLX5DV_UAR_ALLOC_TYPE_NC));
}

WALK_STEP(uar_drop)
{
	if (w->uar)
		mlx5dv_devx_free_uar(w->uar);
	w->uar = NULL;
	return 0;
}

WALK_STEP(umem_make)
{
	if (!w->ctx)
		return WALK_SKIP;
	memset(w->rings, 0, (size_t)3 * WALK_PAGE);
	for (unsigned i = 0; i < 3; i++) {
		int ret = WALK_MAKE(w->umem[i], true,
				    mlx5dv_devx_umem_reg(w->ctx, w->rings + (size_t)i * WALK_PAGE,
							 WALK_PAGE, IBV_ACCESS_LOCAL_WRITE));

		if (ret)
			return ret;
	}
	return 0;
}

WALK_STEP(umem_drop)
{
	for (unsigned i = 0; i < 3; i++) {
		int ret = w->umem[i] ? mlx5dv_devx_umem_dereg(w->umem[i]) : 0;

		if (ret)
			return ret;
		w->umem[i] = NULL;
	}
	return 0;
}

WALK_STEP(devx_cq_make)
{
	uint8_t in[CREATE_CQ_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0}, *c = in + CREATE_CQ_CONTEXT;
	int ret;

	if (!w->umem[0] || !w->umem[2] || !w->uar)
		return WALK_SKIP;
	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_CQ);
	prm_set(in, CREATE_CQ_UMEM, w->umem[0]->umem_id);
	prm_set(c, CQC_DBR_UMEM, w->umem[2]->umem_id);
	prm_set(c, CQC_LOG_SIZE, 4);
	prm_set(c, CQC_UAR_PAGE, w->uar->page_id);
	prm_set(c, CQC_EQN, w->eqn);
	ret = WALK_MAKE(w->devx_cq, true,
			mlx5dv_devx_obj_create(w->ctx, in, sizeof(in), out, sizeof(out)));
	w->devx_cqn = prm_get32(out, CMD_OUT_NUMBER);
	return ret;
}

WALK_STEP(devx_cq_drop)
{
	WALK_DROP(w->devx_cq, mlx5dv_devx_obj_destroy(w->devx_cq));
}

WALK_STEP(devx_qp_make)
{
	uint8_t in[CREATE_QP_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0}, *c = in + CREATE_QP_CONTEXT;
	int ret;

	if (!w->devx_cq || !w->umem[1] || !w->pdn)
		return WALK_SKIP;
	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_QP);
	prm_set(in, CREATE_QP_UMEM, w->umem[1]->umem_id);
	prm_set(c, QPC_PD, w->pdn);
	prm_set(c, QPC_LOG_RQ_SIZE, 4);
	prm_set(c, QPC_LOG_SQ_SIZE, 4);
	prm_set(c, QPC_UAR_PAGE, w->uar->page_id);
	prm_set(c, QPC_CQN_SEND, w->devx_cqn);
	prm_set(c, QPC_CQN_RECV, w->devx_cqn);
	prm_set(c, QPC_DBR_UMEM, w->umem[2]->umem_id);
	prm_set(c, QPC_DBR_ADDR, 8);
	ret = WALK_MAKE(w->devx_qp, true,
			mlx5dv_devx_obj_create(w->ctx, in, sizeof(in), out, sizeof(out)));
	w->devx_qpn = prm_get32(out, CMD_OUT_NUMBER);
	return ret;
}

WALK_STEP(devx_qp_drop)
{
	WALK_DROP(w->devx_qp, mlx5dv_devx_obj_destroy(w->devx_qp));
}

WALK_STEP(events_make)
{
	return WALK_MAKE(w->events, w->ctx, mlx5dv_devx_create_event_channel(w->ctx, 0));
}

WALK_STEP(events_drop)
{
	if (w->events)
		mlx5dv_devx_destroy_event_channel(w->events);
	w->events = NULL;
	return 0;
}

WALK_STEP(subscribe_make)
{
	uint16_t comp = 0;

	if (!w->events || !w->devx_cq)
		return WALK_SKIP;
	return mlx5dv_devx_subscribe_devx_event(w->events, w->devx_cq, sizeof(comp), &comp, 1);
}

WALK_STEP(answers_make)
{
	return WALK_MAKE(w->answers, w->ctx, mlx5dv_devx_create_cmd_comp(w->ctx));
}

WALK_STEP(answers_drop)
{
	if (w->answers)
		mlx5dv_devx_destroy_cmd_comp(w->answers);
	w->answers = NULL;
	return 0;
}

WALK_STEP(query_async_make)
{
	uint8_t in[CMD_IN_BYTES] = {0};
	struct {
		struct mlx5dv_devx_async_cmd_hdr head;
		uint8_t out[QUERY_QP_OUT_BYTES];
	} answer;
	struct pollfd wait;
	int ret;

	if (!w->answers || !w->devx_qp)
		return WALK_SKIP;
	prm_set(in, CMD_IN_OPCODE, PRM_OP_QUERY_QP);
	prm_set(in, CMD_IN_NUMBER, w->devx_qpn);
	ret = mlx5dv_devx_obj_query_async(w->devx_qp, in, sizeof(in), QUERY_QP_OUT_BYTES, 1,
					  w->answers);
	if (ret)
		return ret;
	/* What was accepted is answered. */
	wait = (struct pollfd){.fd = w->answers->fd, .events = POLLIN};
	if (poll(&wait, 1, WALK_PATIENCE_S * 1000) != 1)
		return WALK_HUNG;
	return mlx5dv_devx_get_async_cmd_comp(w->answers, (void *)&answer, sizeof(answer));
}

const struct walk_step walk_devx[] = {
	{"eqn", eqn_make, NULL}, {"pdn", pdn_make, NULL},
	{WALK_BOTH(uar)},	 {WALK_BOTH(umem)},
	{WALK_BOTH(events)},	 {WALK_BOTH(devx_cq)},
	{WALK_BOTH(devx_qp)},	 {"subscribe", subscribe_make, NULL},
	{WALK_BOTH(answers)},	 {"query async", query_async_make, NULL},
	{NULL, NULL, NULL},
};
