/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of plain libibverbs, but for queue pairs. */
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
	{NULL, NULL, NULL},
};
