// SPDX-License-Identifier: BSD-2-Clause
/* Receive queues, each with the TIR that leads to it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flexio/wq.h"

#define LOG_STRIDE_DEFAULT 4u

struct flexio_rq {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx, *domain, *tir;
	struct flx_alias *alias;
	uint32_t number;
};

/* Destroys one object of several; returns 0 also if there is none. */
static int rq_part_free(struct mlx5dv_devx_obj **obj)
{
	int err = *obj ? mlx5dv_devx_obj_destroy(*obj) : 0;

	if (!err)
		*obj = NULL;
	return err;
}

/* Destroys what was made of it, the last part first; an errno if TIR or queue is in use. */
static int rq_free(struct flexio_rq *rq)
{
	int err = rq_part_free(&rq->tir);

	if (!err)
		err = rq_part_free(&rq->devx);
	if (err)
		return err;
	(void)rq_part_free(&rq->domain);
	flx_alias_put(rq->alias);
	free(rq);
	return 0;
}

/* Moves it to the error state from whatever state it is in; returns an errno. */
static int rq_fail(const struct flexio_rq *rq)
{
	uint8_t in[CMD_IN_BYTES] = {0}, out[RQ_BYTES] = {0};
	int err;

	prm_set(in, CMD_IN_OPCODE, PRM_OP_QUERY_RQ);
	prm_set(in, CMD_IN_NUMBER, rq->number);
	err = mlx5dv_devx_obj_query(rq->devx, in, sizeof(in), out, sizeof(out));
	if (err)
		return err;
	return flx_wq_move(rq->devx, PRM_OP_MODIFY_RQ, rq->number,
			   (enum raw_state)prm_get(out + RAW_CONTEXT, RQC_STATE), RAW_STATE_ERR);
}

/*
 * A rule of the program may still lead to the TIR.  Then the queue stays with the program's
 * context, and with it the memory of the process; the queue takes nothing any more.
 */
static void rq_drop(struct flx_object *object)
{
	struct flexio_rq *rq = container_of(object, struct flexio_rq, object);

	if (!rq_free(rq))
		return;
	(void)rq_fail(rq);
	free(rq);
}

static bool rq_make_queue(const struct flx_wq_make *make, struct flexio_rq *rq, uint32_t cqn)
{
	const struct flexio_wq_attr *attr = make->attr;
	struct flx_wq_command cmd = {0};
	uint8_t *rqc = cmd.in + RAW_CONTEXT, *wq = rqc + RQC_WQ;

	if (!flx_wq_check_cq(make, cqn) || !flx_wq_fill(make, wq))
		return false;
	prm_set(rqc, RQC_FLUSH, 1);
	prm_set(rqc, RQC_KEEP_VLAN, 1);
	prm_set(rqc, RQC_USER_INDEX, attr->user_index);
	prm_set(rqc, RQC_CQN, cqn);
	prm_set(wq, WQ_TYPE, WQ_CYCLIC);
	prm_set(wq, WQ_LOG_STRIDE, flx_wq_log_stride(attr, LOG_STRIDE_DEFAULT));
	rq->devx = flx_wq_create(make, PRM_OP_CREATE_RQ, &cmd, &rq->number);
	return rq->devx && flx_wq_ready(make, rq->devx, PRM_OP_MODIFY_RQ, rq->number);
}

static bool rq_make_tir(const struct flx_wq_make *make, struct flexio_rq *rq)
{
	struct flx_wq_command cmd = {0};
	uint8_t *tirc = cmd.in + RAW_CONTEXT;
	uint32_t domain, tirn;

	rq->domain = flx_wq_domain(make, &domain);
	if (!rq->domain)
		return false;
	prm_set(tirc, TIRC_RQN, rq->number);
	prm_set(tirc, TIRC_DOMAIN, domain);
	rq->tir = flx_wq_create(make, PRM_OP_CREATE_TIR, &cmd, &tirn);
	return rq->tir;
}

flexio_status flexio_rq_create(struct flexio_process *process, struct ibv_context *ibv_ctx,
			       uint32_t cq_num, const struct flexio_wq_attr *fattr,
			       struct flexio_rq **flexio_rq_ptr)
{
	FLX_HOLD(hold);
	struct flexio_rq *rq;
	struct flx_wq_make make = {process, ibv_ctx, fattr, __func__, NULL};

	if (!flx_wq_begin(&hold, &make, (void **)flexio_rq_ptr, "flexio_rq_ptr"))
		return FLEXIO_STATUS_FAILED;
	rq = calloc(1, sizeof(*rq));
	if (!rq)
		return flx_fail(__func__, "no memory");
	make.alias = &rq->alias;
	if (!rq_make_queue(&make, rq, cq_num) || !rq_make_tir(&make, rq)) {
		(void)rq_free(rq);
		return FLEXIO_STATUS_FAILED;
	}
	flx_wq_check_ring(&make, rq->number, flx_wq_log_stride(fattr, LOG_STRIDE_DEFAULT));
	rq->object.destroy = rq_drop;
	flx_object_add(&rq->object, FLX_RQ, process);
	*flexio_rq_ptr = rq;
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_rq_destroy(struct flexio_rq *flexio_rq)
{
	FLX_HOLD(hold);
	int err;

	if (!flx_claim(&hold, flexio_rq, FLX_RQ, __func__, "flexio_rq"))
		return FLEXIO_STATUS_FAILED;
	err = rq_free(flexio_rq);
	if (!err)
		return FLEXIO_STATUS_SUCCESS;
	flx_object_add(&flexio_rq->object, FLX_RQ, flexio_rq->object.process);
	return flx_fail(__func__, "flexio_rq: a steering rule leads to it, or a table has it (%s)",
			strerror(err));
}

struct mlx5dv_devx_obj *flexio_rq_get_tir(struct flexio_rq *rq)
{
	FLX_HOLD(hold);

	return flx_check(&hold, rq, FLX_RQ, __func__, "rq") ? rq->tir : NULL;
}

uint32_t flexio_rq_get_wq_num(struct flexio_rq *rq)
{
	FLX_HOLD(hold);

	return flx_check(&hold, rq, FLX_RQ, __func__, "rq") ? rq->number : UINT32_MAX;
}

flexio_status flexio_rq_set_err_state(struct flexio_rq *rq)
{
	FLX_HOLD(hold);
	int err;

	if (!flx_check(&hold, rq, FLX_RQ, __func__, "rq"))
		return FLEXIO_STATUS_FAILED;
	err = rq_fail(rq);
	return err ? flx_refused(rq->object.process, __func__, err) : FLEXIO_STATUS_SUCCESS;
}
