// SPDX-License-Identifier: BSD-2-Clause
/* UARs: the regions from which doorbells of device code come.  Queues name them by number, outboxes
 * ring through them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flexio/queue.h"
#include "prm/cmd.h"

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
