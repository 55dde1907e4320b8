// SPDX-License-Identifier: BSD-2-Clause
/* Doorbells of emulated PCI functions, each as a context that device code arms by its number. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flexio/queue.h"
#include "prm/cmd_emulation.h"
#include "prm/cmd.h"

struct flexio_emu_db_to_cq_ctx {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx;
	uint32_t number;
};

static void context_drop(struct flx_object *object)
{
	struct flexio_emu_db_to_cq_ctx *c =
		container_of(object, struct flexio_emu_db_to_cq_ctx, object);

	(void)mlx5dv_devx_obj_destroy(c->devx);
	free(c);
}

flexio_status flexio_emu_db_to_cq_map(struct ibv_context *ibv_ctx, uint32_t vhca_id,
				      uint32_t queue_id, struct flexio_cq *cq,
				      struct flexio_emu_db_to_cq_ctx **db_to_cq_ctx)
{
	FLX_HOLD(hold);
	uint8_t in[DB_CQ_BYTES] = {0};
	struct flexio_emu_db_to_cq_ctx *made;

	if (!flx_given(db_to_cq_ctx, __func__, "db_to_cq_ctx"))
		return FLEXIO_STATUS_FAILED;
	*db_to_cq_ctx = NULL;
	if (!flx_check(&hold, cq, FLX_CQ, __func__, "cq") ||
	    !flx_given(ibv_ctx, __func__, "ibv_ctx"))
		return FLEXIO_STATUS_FAILED;
	made = calloc(1, sizeof(*made));
	if (!made)
		return flx_fail(__func__, "no memory");
	prm_set(in, GENERAL_IN_TYPE, GENERAL_DB_CQ_MAPPING);
	prm_set(in, DB_CQ_KIND, EMULATED_VIRTIO_NET);
	prm_set(in, DB_CQ_DEVICE, vhca_id);
	prm_set(in, DB_CQ_QUEUE, queue_id);
	prm_set(in, DB_CQ_CQN, cq->number);
	made->devx = flx_devx_create(ibv_ctx, in, sizeof(in), &made->number);
	if (!made->devx) {
		int err = errno;

		free(made);
		return flx_fail(__func__,
				"device %s refuses vhca_id 0x%x, queue_id %u, or a cq of another "
				"ibv_ctx: %s",
				ibv_get_device_name(ibv_ctx->device), vhca_id, queue_id,
				strerror(err));
	}
	made->object.destroy = context_drop;
	flx_object_add(&made->object, FLX_EMULATED_DB, cq->object.process);
	*db_to_cq_ctx = made;
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_emu_db_to_cq_unmap(struct flexio_emu_db_to_cq_ctx *db_to_cq_ctx)
{
	FLX_HOLD(hold);

	if (!flx_claim(&hold, db_to_cq_ctx, FLX_EMULATED_DB, __func__, "db_to_cq_ctx"))
		return FLEXIO_STATUS_FAILED;
	context_drop(&db_to_cq_ctx->object);
	return FLEXIO_STATUS_SUCCESS;
}

uint32_t flexio_emu_db_to_cq_ctx_get_id(struct flexio_emu_db_to_cq_ctx *db_to_cq_ctx)
{
	FLX_HOLD(hold);

	return flx_check(&hold, db_to_cq_ctx, FLX_EMULATED_DB, __func__, "db_to_cq_ctx")
		       ? db_to_cq_ctx->number
		       : UINT32_MAX;
}
