// SPDX-License-Identifier: BSD-2-Clause
/* Receive memory pools: lists of receives, from which queue pairs take. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flexio/wq.h"

/* Room for a segment that names the next entry, and for one of data. */
#define LOG_STRIDE_DEFAULT 5u

struct flexio_rmp {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx;
	struct flx_alias *alias;
	uint32_t number;
};

static int rmp_free(struct flexio_rmp *rmp)
{
	int err = rmp->devx ? mlx5dv_devx_obj_destroy(rmp->devx) : 0;

	if (err)
		return err;
	flx_alias_put(rmp->alias);
	free(rmp);
	return 0;
}

/* A queue pair of others may use the pool; then it goes with the program's context. */
static void rmp_drop(struct flx_object *object)
{
	struct flexio_rmp *rmp = container_of(object, struct flexio_rmp, object);

	if (rmp_free(rmp))
		free(rmp);
}

static bool rmp_make(const struct flx_wq_make *make, struct flexio_rmp *rmp)
{
	const struct flexio_wq_attr *attr = make->attr;
	struct flx_wq_command cmd = {0};
	uint8_t *rmpc = cmd.in + CREATE_RMP_CONTEXT, *wq = rmpc + RMPC_WQ;

	if (!flx_wq_fill(make, wq))
		return false;
	prm_set(rmpc, RMPC_STATE, RMPC_STATE_RDY);
	prm_set(wq, WQ_TYPE, WQ_LINKED_LIST);
	prm_set(wq, WQ_LOG_STRIDE, flx_wq_log_stride(attr, LOG_STRIDE_DEFAULT));
	rmp->devx = flx_wq_create(make, PRM_OP_CREATE_RMP, &cmd, &rmp->number);
	return rmp->devx;
}

flexio_status flexio_rmp_create(struct flexio_process *process, struct ibv_context *ibv_ctx,
				const struct flexio_wq_attr *fattr,
				struct flexio_rmp **flexio_rmp_ptr)
{
	FLX_HOLD(hold);
	struct flexio_rmp *rmp;
	struct flx_wq_make make = {process, ibv_ctx, fattr, __func__, NULL};

	if (!flx_wq_begin(&hold, &make, (void **)flexio_rmp_ptr, "flexio_rmp_ptr"))
		return FLEXIO_STATUS_FAILED;
	if (fattr->rq.wq_type != FLEXIO_WQ_TYPE_LINKED_LIST)
		return flx_fail(__func__, "fattr->rq.wq_type: only FLEXIO_WQ_TYPE_LINKED_LIST is "
					  "possible");
	rmp = calloc(1, sizeof(*rmp));
	if (!rmp)
		return flx_fail(__func__, "no memory");
	make.alias = &rmp->alias;
	if (!rmp_make(&make, rmp)) {
		(void)rmp_free(rmp);
		return FLEXIO_STATUS_FAILED;
	}
	flx_wq_check_ring(&make, rmp->number, flx_wq_log_stride(fattr, LOG_STRIDE_DEFAULT));
	rmp->object.destroy = rmp_drop;
	flx_object_add(&rmp->object, FLX_RMP, process);
	*flexio_rmp_ptr = rmp;
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_rmp_destroy(struct flexio_rmp *flexio_rmp)
{
	FLX_HOLD(hold);
	int err;

	if (!flx_claim(&hold, flexio_rmp, FLX_RMP, __func__, "flexio_rmp"))
		return FLEXIO_STATUS_FAILED;
	err = rmp_free(flexio_rmp);
	if (!err)
		return FLEXIO_STATUS_SUCCESS;
	flx_object_add(&flexio_rmp->object, FLX_RMP, flexio_rmp->object.process);
	return flx_fail(__func__, "flexio_rmp: a queue pair receives from it (%s)", strerror(err));
}

uint32_t flexio_rmp_get_wq_num(struct flexio_rmp *rmp)
{
	FLX_HOLD(hold);

	return flx_check(&hold, rmp, FLX_RMP, __func__, "rmp") ? rmp->number : UINT32_MAX;
}
