// SPDX-License-Identifier: BSD-2-Clause
/* Send queues for raw packets; each has a TIS. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flexio/wq.h"

#define LOG_BLOCK 6u

struct flexio_sq {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx, *domain, *tis;
	struct flx_alias *alias;
	uint32_t number;
};

/* Destroys what was made of it, the last part first. */
static void sq_free(struct flexio_sq *sq)
{
	if (sq->devx)
		(void)mlx5dv_devx_obj_destroy(sq->devx);
	if (sq->tis)
		(void)mlx5dv_devx_obj_destroy(sq->tis);
	if (sq->domain)
		(void)mlx5dv_devx_obj_destroy(sq->domain);
	flx_alias_put(sq->alias);
	free(sq);
}

static void sq_drop(struct flx_object *object)
{
	sq_free(container_of(object, struct flexio_sq, object));
}

static bool sq_make_tis(const struct flx_wq_make *make, struct flexio_sq *sq, uint32_t *tisn)
{
	struct flx_wq_command cmd = {0};
	uint32_t domain;

	sq->domain = flx_wq_domain(make, &domain);
	if (!sq->domain)
		return false;
	prm_set(cmd.in + RAW_CONTEXT, TISC_DOMAIN, domain);
	sq->tis = flx_wq_create(make, PRM_OP_CREATE_TIS, &cmd, tisn);
	return sq->tis;
}

static bool sq_make_queue(const struct flx_wq_make *make, struct flexio_sq *sq, uint32_t cqn)
{
	const struct flexio_wq_attr *attr = make->attr;
	struct flx_wq_command cmd = {0};
	uint8_t *sqc = cmd.in + RAW_CONTEXT, *wq = sqc + SQC_WQ;
	uint32_t tisn;

	if (!flx_wq_check_cq(make, cqn) || !flx_wq_fill(make, wq) || !sq_make_tis(make, sq, &tisn))
		return false;
	prm_set(sqc, SQC_FLUSH, 1);
	prm_set(sqc, SQC_CD_MASTER, 1);
	prm_set(sqc, SQC_MULTI_PACKET, attr->sq.allow_multi_pkt_send_wqe != 0);
	prm_set(sqc, SQC_USER_INDEX, attr->user_index);
	prm_set(sqc, SQC_CQN, cqn);
	prm_set(sqc, SQC_TIS_COUNT, 1);
	prm_set(sqc, SQC_TIS, tisn);
	prm_set(wq, WQ_TYPE, WQ_CYCLIC);
	prm_set(wq, WQ_LOG_STRIDE, LOG_BLOCK);
	prm_set(wq, WQ_UAR_PAGE, attr->uar_id);
	sq->devx = flx_wq_create(make, PRM_OP_CREATE_SQ, &cmd, &sq->number);
	return sq->devx && flx_wq_ready(make, sq->devx, PRM_OP_MODIFY_SQ, sq->number);
}

flexio_status flexio_sq_create(struct flexio_process *process, struct ibv_context *ibv_ctx,
			       uint32_t cq_num, const struct flexio_wq_attr *fattr,
			       struct flexio_sq **flexio_sq_ptr)
{
	FLX_HOLD(hold);
	struct flexio_sq *sq;
	struct flx_wq_make make = {process, ibv_ctx, fattr, __func__, NULL};

	if (!flx_wq_begin(&hold, &make, (void **)flexio_sq_ptr, "flexio_sq_ptr"))
		return FLEXIO_STATUS_FAILED;
	sq = calloc(1, sizeof(*sq));
	if (!sq)
		return flx_fail(__func__, "no memory");
	make.alias = &sq->alias;
	if (!sq_make_queue(&make, sq, cq_num)) {
		sq_free(sq);
		return FLEXIO_STATUS_FAILED;
	}
	flx_wq_check_ring(&make, sq->number, LOG_BLOCK);
	flx_uar_check(process, __func__, "fattr->uar_id", fattr->uar_id, sq->number);
	sq->object.destroy = sq_drop;
	flx_object_add(&sq->object, FLX_SQ, process);
	*flexio_sq_ptr = sq;
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_sq_destroy(struct flexio_sq *flexio_sq)
{
	FLX_HOLD(hold);

	if (!flx_claim(&hold, flexio_sq, FLX_SQ, __func__, "flexio_sq"))
		return FLEXIO_STATUS_FAILED;
	sq_free(flexio_sq);
	return FLEXIO_STATUS_SUCCESS;
}

uint32_t flexio_sq_get_wq_num(struct flexio_sq *sq)
{
	FLX_HOLD(hold);

	return flx_check(&hold, sq, FLX_SQ, __func__, "sq") ? sq->number : UINT32_MAX;
}
