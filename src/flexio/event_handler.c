// SPDX-License-Identifier: BSD-2-Clause
/* Event handlers: functions that an event starts, each on a thread of the DPA. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flexio/internal.h"
#include "prm/cmd_dpa.h"
#include "prm/cmd.h"

struct flexio_event_handler {
	struct flx_object object;
	struct flexio_thread thread;
	struct mlx5dv_devx_obj *devx;
	uint64_t arg;
};

/* The caller has taken only the handler off the list, not its thread. */
static void handler_drop(struct flx_object *object)
{
	struct flexio_event_handler *eh = container_of(object, struct flexio_event_handler, object);

	flx_object_remove(&eh->thread.object);
	/* This fails if a queue that the program itself made still names it. */
	(void)mlx5dv_devx_obj_destroy(eh->devx);
	free(eh);
}

static bool handler_attr_ok(const struct flexio_event_handler_attr *attr, const char *function)
{
	switch (attr->affinity.type) {
	case FLEXIO_AFFINITY_NONE:
		return true;
	case FLEXIO_AFFINITY_STRICT:
		if (attr->affinity.id < DPA_EUS)
			return true;
		flx_fail(function, "fattr->affinity.id: there are EUs 0 to %u, not %u", DPA_EUS - 1,
			 attr->affinity.id);
		return false;
	case FLEXIO_AFFINITY_GROUP:
		return true;
	default:
		flx_fail(function, "fattr->affinity.type: %d is none", (int)attr->affinity.type);
		return false;
	}
}

static struct mlx5dv_devx_obj *handler_make(struct flexio_process *process,
					    const struct flexio_event_handler_attr *attr,
					    uint64_t function, uint32_t *number)
{
	uint8_t in[DPA_THREAD_IN_BYTES] = {0};

	prm_set(in, GENERAL_IN_TYPE, GENERAL_DPA_THREAD);
	prm_set(in, DPA_THREAD_PROCESS, process->number);
	prm_set(in, DPA_THREAD_CONTINUABLE, attr->continuable != 0);
	prm_set(in, DPA_THREAD_FUNCTION, function);
	prm_set(in, DPA_THREAD_LOCAL_STORAGE, attr->thread_local_storage_daddr);
	prm_set(in, DPA_THREAD_STRICT, attr->affinity.type == FLEXIO_AFFINITY_STRICT);
	prm_set(in, DPA_THREAD_GROUP, attr->affinity.type == FLEXIO_AFFINITY_GROUP);
	prm_set(in, DPA_THREAD_EU, attr->affinity.id);
	return flx_devx_create(process->ctx, in, sizeof(in), number);
}

flexio_status flexio_event_handler_create(struct flexio_process *process,
					  struct flexio_event_handler_attr *fattr,
					  struct flexio_event_handler **event_handler_ptr)
{
	FLX_HOLD(hold);
	struct flexio_event_handler *eh;
	struct flx_address f;

	if (!flx_given(event_handler_ptr, __func__, "event_handler_ptr"))
		return FLEXIO_STATUS_FAILED;
	*event_handler_ptr = NULL;
	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process") ||
	    !flx_given(fattr, __func__, "fattr") ||
	    !flx_given((const void *)(uintptr_t)fattr->host_stub_func, __func__,
		       "fattr->host_stub_func") ||
	    !handler_attr_ok(fattr, __func__) ||
	    !flx_function_find(process, fattr->host_stub_func, __func__, "fattr->host_stub_func",
			       &f))
		return FLEXIO_STATUS_FAILED;
	eh = calloc(1, sizeof(*eh));
	if (!eh)
		return flx_fail(__func__, "no memory");
	eh->devx = handler_make(process, fattr, f.addr, &eh->thread.number);
	if (!eh->devx) {
		int err = errno;

		free(eh);
		if (err == EINVAL && fattr->affinity.type == FLEXIO_AFFINITY_GROUP)
			flx_log(FLEXIO_LOG_LVL_ERR,
				"%s: fattr->affinity.id: is there a group %u of EUs? "
				"(SOFTHCA_DPA_GROUPS says which there are)",
				__func__, fattr->affinity.id);
		return flx_thread_refused(process, __func__, err);
	}
	eh->arg = fattr->arg;
	eh->object.destroy = handler_drop;
	flx_object_add(&eh->object, FLX_EVENT_HANDLER, process);
	flx_object_add(&eh->thread.object, FLX_THREAD, process);
	*event_handler_ptr = eh;
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_event_handler_destroy(struct flexio_event_handler *event_handler)
{
	struct flexio_event_handler *eh = event_handler;
	FLX_HOLD(hold);
	int err;

	if (!flx_claim(&hold, eh, FLX_EVENT_HANDLER, __func__, "event_handler"))
		return FLEXIO_STATUS_FAILED;
	flx_object_remove(&eh->thread.object);
	err = flx_cq_names(&eh->thread) ? EBUSY : mlx5dv_devx_obj_destroy(eh->devx);
	if (!err) {
		free(eh);
		return FLEXIO_STATUS_SUCCESS;
	}
	flx_object_add(&eh->thread.object, FLX_THREAD, eh->object.process);
	flx_object_add(&eh->object, FLX_EVENT_HANDLER, eh->object.process);
	return flx_fail(__func__, "event_handler: a CQ refers to its thread (%s)", strerror(err));
}

flexio_status flexio_event_handler_run(struct flexio_event_handler *event_handler,
				       uint64_t user_arg)
{
	FLX_HOLD(hold);
	uint8_t in[DPA_THREAD_RUN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0};
	int err;

	if (!flx_check(&hold, event_handler, FLX_EVENT_HANDLER, __func__, "event_handler"))
		return FLEXIO_STATUS_FAILED;
	prm_set(in, CMD_IN_OPCODE, PRM_OP_MODIFY_GENERAL_OBJECT);
	prm_set(in, GENERAL_IN_TYPE, GENERAL_DPA_THREAD);
	prm_set(in, GENERAL_IN_ID, event_handler->thread.number);
	/* Programs set one of the two. */
	prm_set(in, DPA_THREAD_ARG, user_arg ? user_arg : event_handler->arg);
	err = mlx5dv_devx_obj_modify(event_handler->devx, in, sizeof(in), out, sizeof(out));
	if (!err)
		return FLEXIO_STATUS_SUCCESS;
	if (prm_get(out, CMD_OUT_STATUS) == CMD_STATUS_RES_BUSY)
		return flx_fail(__func__, "event_handler: it has been set running before");
	if (prm_get(out, CMD_OUT_STATUS) == CMD_STATUS_LIMIT)
		return flx_fail(__func__,
				"event_handler: another one controls the flows of the port");
	return flx_refused(event_handler->object.process, __func__, err);
}

/* The number that CQs name is also what the device calls the thread. */
static uint32_t handler_number(struct flexio_event_handler *event_handler, const char *function)
{
	FLX_HOLD(hold);

	return flx_check(&hold, event_handler, FLX_EVENT_HANDLER, function, "event_handler")
		       ? event_handler->thread.number
		       : UINT32_MAX;
}

uint32_t flexio_event_handler_get_id(struct flexio_event_handler *event_handler)
{
	return handler_number(event_handler, __func__);
}

uint32_t flexio_event_handler_get_obj_id(struct flexio_event_handler *event_handler)
{
	return handler_number(event_handler, __func__);
}

struct flexio_thread *flexio_event_handler_get_thread(struct flexio_event_handler *event_handler)
{
	FLX_HOLD(hold);

	return flx_check(&hold, event_handler, FLX_EVENT_HANDLER, __func__, "event_handler")
		       ? &event_handler->thread
		       : NULL;
}
