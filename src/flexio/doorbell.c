// SPDX-License-Identifier: BSD-2-Clause
/* Where doorbells of device code go: queues name UARs by number, outboxes ring through them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flexio/internal.h"
#include "prm/cmd_dpa.h"
#include "prm/cmd_emulation.h"
#include "prm/cmd.h"

/* ---- UARs: the regions from which doorbells of device code come ---- */

static void uar_drop(struct flx_object *object)
{
	struct flexio_uar *uar = container_of(object, struct flexio_uar, object);

	/* This fails if a queue that the program itself made still names it. */
	(void)mlx5dv_devx_obj_destroy(uar->devx);
	free(uar);
}

struct flexio_uar *flx_uar_make(struct flexio_process *process, struct ibv_context *ctx)
{
	uint8_t in[CMD_IN_BYTES] = {0};
	struct flexio_uar *uar = calloc(1, sizeof(*uar));

	if (!uar)
		return NULL;
	prm_set(in, GENERAL_IN_TYPE, GENERAL_DUAR);
	uar->devx = flx_devx_create(ctx, in, sizeof(in), &uar->number);
	if (!uar->devx) {
		free(uar);
		return NULL;
	}
	uar->extended = ctx != process->ctx;
	uar->object.destroy = uar_drop;
	flx_object_add(&uar->object, FLX_UAR, process);
	return uar;
}

bool flx_uar_numbers(uint32_t number)
{
	struct flx_object *o;

	flx_objects_lock();
	for (o = flx_object_next(FLX_UAR, NULL); o; o = flx_object_next(FLX_UAR, o))
		if (container_of(o, struct flexio_uar, object)->number == number)
			break;
	flx_objects_unlock();
	return o != NULL;
}

void flx_uar_check(const struct flexio_process *process, const char *function, const char *argument,
		   uint32_t uar, uint32_t number)
{
	const struct flexio_process *owner = NULL;

	flx_objects_lock();
	for (struct flx_object *o = flx_object_next(FLX_UAR, NULL); o && !owner;
	     o = flx_object_next(FLX_UAR, o))
		if (container_of(o, struct flexio_uar, object)->number == uar)
			owner = o->process;
	flx_objects_unlock();
	if (owner && owner != process)
		flx_log(FLEXIO_LOG_LVL_ERR,
			"%s: %s of queue 0x%x: UAR 0x%x is another process's: outboxes of this one "
			"do not ring the queue",
			function, argument, number, uar);
}

flexio_status flexio_uar_create(struct flexio_process *process, struct flexio_uar **flexio_uar)
{
	FLX_HOLD(hold);

	if (!flx_given(flexio_uar, __func__, "flexio_uar"))
		return FLEXIO_STATUS_FAILED;
	*flexio_uar = NULL;
	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process"))
		return FLEXIO_STATUS_FAILED;
	*flexio_uar = flx_uar_make(process, process->ctx);
	return *flexio_uar ? FLEXIO_STATUS_SUCCESS
			   : flx_fail(__func__, "no UAR: %s", strerror(errno));
}

flexio_status flexio_uar_extend(struct flexio_uar *in_uar, struct ibv_context *to_extend,
				struct flexio_uar **extended)
{
	FLX_HOLD(hold);

	if (!flx_given(extended, __func__, "extended"))
		return FLEXIO_STATUS_FAILED;
	*extended = NULL;
	if (!flx_check(&hold, in_uar, FLX_UAR, __func__, "in_uar") ||
	    !flx_given(to_extend, __func__, "to_extend"))
		return FLEXIO_STATUS_FAILED;
	*extended = flx_uar_make(in_uar->object.process, to_extend);
	if (!*extended)
		return flx_fail(__func__, "no UAR of device %s: %s",
				ibv_get_device_name(to_extend->device), strerror(errno));
	(*extended)->extended = true;
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_uar_destroy(struct flexio_uar *uar)
{
	FLX_HOLD(hold);
	bool own;
	int err;

	if (!flx_claim(&hold, uar, FLX_UAR, __func__, "uar"))
		return FLEXIO_STATUS_FAILED;
	own = uar == uar->object.process->uar;
	err = own ? EBUSY : mlx5dv_devx_obj_destroy(uar->devx);
	if (!err) {
		free(uar);
		return FLEXIO_STATUS_SUCCESS;
	}
	flx_object_add(&uar->object, FLX_UAR, uar->object.process);
	return own ? flx_fail(__func__, "uar: it is the process's own, and goes with it")
		   : flx_fail(__func__, "uar: a queue or an outbox uses it (%s)", strerror(err));
}

uint32_t flexio_uar_get_id(struct flexio_uar *uar)
{
	FLX_HOLD(hold);

	return flx_check(&hold, uar, FLX_UAR, __func__, "uar") ? uar->number : UINT32_MAX;
}

flexio_uar_device_id flexio_uar_get_extended_id(struct flexio_uar *uar)
{
	FLX_HOLD(hold);

	if (!flx_check(&hold, uar, FLX_UAR, __func__, "uar"))
		return UINT32_MAX;
	if (!uar->extended)
		flx_fail(__func__, "uar: it was not made by flexio_uar_extend");
	return uar->extended ? uar->number : UINT32_MAX;
}

struct flexio_uar *flexio_process_get_uar(struct flexio_process *process)
{
	FLX_HOLD(hold);

	return flx_check(&hold, process, FLX_PROCESS, __func__, "process") ? process->uar : NULL;
}

/* ---- outboxes, through which device code rings doorbells, by number ---- */

static void outbox_drop(struct flx_object *object)
{
	struct flexio_outbox *outbox = container_of(object, struct flexio_outbox, object);

	(void)mlx5dv_devx_obj_destroy(outbox->devx);
	free(outbox);
}

struct flexio_outbox *flx_outbox_make(struct flexio_process *process, bool initial, bool en_pcc)
{
	uint8_t in[DPA_OUTBOX_IN_BYTES] = {0};
	struct flexio_outbox *outbox = calloc(1, sizeof(*outbox));

	if (!outbox)
		return NULL;
	prm_set(in, GENERAL_IN_TYPE, GENERAL_DPA_OUTBOX);
	prm_set(in, DPA_OUTBOX_PROCESS, process->number);
	prm_set(in, DPA_OUTBOX_UAR, process->uar->number);
	prm_set(in, DPA_OUTBOX_INITIAL, initial);
	prm_set(in, DPA_OUTBOX_PCC, en_pcc);
	outbox->devx = flx_devx_create(process->ctx, in, sizeof(in), &outbox->number);
	if (!outbox->devx) {
		free(outbox);
		return NULL;
	}
	outbox->object.destroy = outbox_drop;
	flx_object_add(&outbox->object, FLX_OUTBOX, process);
	return outbox;
}

flexio_status flexio_outbox_create(struct flexio_process *process, struct flexio_outbox_attr *fattr,
				   struct flexio_outbox **outbox)
{
	FLX_HOLD(hold);

	if (!flx_given(outbox, __func__, "outbox"))
		return FLEXIO_STATUS_FAILED;
	*outbox = NULL;
	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process") ||
	    !flx_given(fattr, __func__, "fattr"))
		return FLEXIO_STATUS_FAILED;
	if (fattr->en_pcc && !process->en_pcc)
		return flx_fail(__func__, "fattr->en_pcc: the process was not made with en_pcc");
	*outbox = flx_outbox_make(process, false, fattr->en_pcc);
	return *outbox ? FLEXIO_STATUS_SUCCESS
		       : flx_fail(__func__, "no outbox: %s", strerror(errno));
}

flexio_status flexio_outbox_destroy(struct flexio_outbox *outbox)
{
	FLX_HOLD(hold);

	if (!flx_claim(&hold, outbox, FLX_OUTBOX, __func__, "outbox"))
		return FLEXIO_STATUS_FAILED;
	if (outbox == outbox->object.process->outbox) {
		flx_object_add(&outbox->object, FLX_OUTBOX, outbox->object.process);
		return flx_fail(__func__, "outbox: it is the process's own, and goes with it");
	}
	outbox_drop(&outbox->object);
	return FLEXIO_STATUS_SUCCESS;
}

uint32_t flexio_outbox_get_id(struct flexio_outbox *outbox)
{
	FLX_HOLD(hold);

	return flx_check(&hold, outbox, FLX_OUTBOX, __func__, "outbox") ? outbox->number
									: UINT32_MAX;
}

struct flexio_uar *flexio_outbox_get_uar(struct flexio_outbox *outbox)
{
	FLX_HOLD(hold);

	return flx_check(&hold, outbox, FLX_OUTBOX, __func__, "outbox")
		       ? outbox->object.process->uar
		       : NULL;
}

/* ---- doorbells of emulated PCI functions: contexts that device code arms by number ---- */

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
