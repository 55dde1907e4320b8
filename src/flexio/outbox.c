// SPDX-License-Identifier: BSD-2-Clause
/* Outboxes, through which device code rings doorbells, by number. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flexio/queue.h"
#include "prm/cmd_dpa.h"
#include "prm/cmd.h"

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
