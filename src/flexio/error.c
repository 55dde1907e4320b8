// SPDX-License-Identifier: BSD-2-Clause
/* How a process tells that it has failed. */
#include <errno.h>
#include <string.h>

#include "flexio/internal.h"
#include "prm/eqe.h"

#define USER_ERROR 0x80u /* the program's own codes begin here */

enum flexio_err_status flexio_err_status_get(struct flexio_process *process)
{
	FLX_HOLD(hold);
	uint8_t in[DPA_IN_FIXED] = {0}, out[DPA_OUT_BYTES] = {0};

	if (!process)
		return FLEXIO_DEV_NO_ERROR;
	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process") ||
	    flx_devx_op(process, DPA_OP_STATE, in, sizeof(in), out, sizeof(out)))
		return FLEXIO_DEV_FATAL_ERROR;
	if (prm_get(out, DPA_OUT_STATE) != DPA_FATAL)
		return FLEXIO_DEV_NO_ERROR;
	return prm_get(out, DPA_OUT_CODE) >= USER_ERROR ? FLEXIO_DEV_USER_ERROR
							: FLEXIO_DEV_FATAL_ERROR;
}

/* The lock is held. */
static int errors_open(struct flexio_process *p, const char *function)
{
	uint16_t events[] = {EQE_OBJECT_CHANGE};

	p->errors = mlx5dv_devx_create_event_channel(
		p->ctx, MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA);
	if (p->errors && mlx5dv_devx_subscribe_devx_event(p->errors, p->devx, sizeof(events),
							  events, p->number)) {
		mlx5dv_devx_destroy_event_channel(p->errors);
		p->errors = NULL;
	}
	if (p->errors)
		return p->errors->fd;
	flx_fail(function, "no event channel: %s", strerror(errno));
	return -1;
}

int flexio_err_handler_fd(struct flexio_process *process)
{
	FLX_HOLD(hold);
	int fd;

	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process"))
		return -1;
	pthread_mutex_lock(&process->lock);
	fd = process->errors ? process->errors->fd : errors_open(process, __func__);
	pthread_mutex_unlock(&process->lock);
	return fd;
}

flexio_status flexio_process_error_handler_set(struct flexio_process *process,
					       flexio_func_t *error_handler)
{
	FLX_HOLD(hold);
	uint8_t in[DPA_IN_FIXED] = {0}, out[DPA_OUT_BYTES] = {0};
	struct flx_address f;
	int err;

	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process") ||
	    !flx_given((const void *)(uintptr_t)error_handler, __func__, "error_handler") ||
	    !flx_function_find(process, error_handler, __func__, "error_handler", &f))
		return FLEXIO_STATUS_FAILED;
	prm_set(in, DPA_IN_ADDR, f.addr);
	err = flx_devx_op(process, DPA_OP_ON_ERROR, in, sizeof(in), out, sizeof(out));
	if (!err)
		return FLEXIO_STATUS_SUCCESS;
	if (err == EBUSY)
		return flx_fail(__func__, "error_handler: it is to be set before the first call");
	return flx_refused(process, __func__, err);
}
