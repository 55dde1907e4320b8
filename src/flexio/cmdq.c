// SPDX-License-Identifier: BSD-2-Clause
/* Command queues: calls that the host does not wait for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flexio/internal.h"
#include "prm/cmd.h"

struct flexio_cmdq {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx;
	uint32_t number;
};

static void cmdq_destroy(struct flx_object *o)
{
	struct flexio_cmdq *q = container_of(o, struct flexio_cmdq, object);

	(void)mlx5dv_devx_obj_destroy(q->devx);
	free(q);
}

static bool cmdq_attr_check(const struct flexio_cmdq_attr *attr, const char *function)
{
	if (!flx_given(attr, function, "fattr"))
		return false;
	if (attr->workers < 1 || attr->workers > (int)DPA_THREADS)
		flx_fail(function, "fattr->workers: %d, not of 1 to %u", attr->workers,
			 DPA_THREADS);
	else if (attr->batch_size < 1)
		flx_fail(function, "fattr->batch_size: %d is less than 1", attr->batch_size);
	else if (attr->state != FLEXIO_CMDQ_STATE_PENDING &&
		 attr->state != FLEXIO_CMDQ_STATE_RUNNING)
		flx_fail(function, "fattr->state: there is no state %d", (int)attr->state);
	else
		return true;
	return false;
}

flexio_status flexio_cmdq_create(struct flexio_process *process, struct flexio_cmdq_attr *fattr,
				 struct flexio_cmdq **cmdq)
{
	FLX_HOLD(hold);
	uint8_t in[DPA_CMDQ_IN_BYTES] = {0};
	struct flexio_cmdq *q;
	int err;

	if (!flx_given(cmdq, __func__, "cmdq"))
		return FLEXIO_STATUS_FAILED;
	*cmdq = NULL;
	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process") ||
	    !cmdq_attr_check(fattr, __func__))
		return FLEXIO_STATUS_FAILED;
	q = calloc(1, sizeof(*q));
	if (!q)
		return flx_fail(__func__, "no memory");
	prm_set(in, GENERAL_IN_TYPE, GENERAL_DPA_CMDQ);
	prm_set(in, DPA_CMDQ_PROCESS, process->number);
	prm_set(in, DPA_CMDQ_WORKERS_NR, (uint32_t)fattr->workers);
	prm_set(in, DPA_CMDQ_BATCH, (uint32_t)fattr->batch_size);
	prm_set(in, DPA_CMDQ_RUNNING, fattr->state == FLEXIO_CMDQ_STATE_RUNNING);
	q->devx = flx_devx_create(process->ctx, in, sizeof(in), &q->number);
	if (!q->devx) {
		err = errno;
		free(q);
		return flx_thread_refused(process, __func__, err);
	}
	q->object.destroy = cmdq_destroy;
	flx_object_add(&q->object, FLX_CMDQ, process);
	*cmdq = q;
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_cmdq_destroy(struct flexio_cmdq *cmdq)
{
	FLX_HOLD(hold);

	if (!flx_claim(&hold, cmdq, FLX_CMDQ, __func__, "cmdq"))
		return FLEXIO_STATUS_FAILED;
	cmdq_destroy(&cmdq->object);
	return FLEXIO_STATUS_SUCCESS;
}

/* The command has the number of the queue where others have that of a process. */
static int cmdq_op(const struct flexio_cmdq *q, enum dpa_op op, uint8_t in[DPA_IN_FIXED],
		   uint8_t out[DPA_OUT_BYTES])
{
	prm_set(in, CMD_IN_OPCODE, PRM_OP_DPA);
	prm_set(in, CMD_IN_OP_MOD, op);
	prm_set(in, DPA_IN_PROCESS, q->number);
	return mlx5dv_devx_general_cmd(q->object.process->ctx, in, DPA_IN_FIXED, out,
				       DPA_OUT_BYTES);
}

flexio_status flexio_cmdq_task_add(struct flexio_cmdq *cmdq, flexio_func_t *host_func, uint64_t arg)
{
	FLX_HOLD(hold);
	uint8_t in[DPA_IN_FIXED] = {0}, out[DPA_OUT_BYTES] = {0};
	struct flx_address f;
	int err;

	if (!flx_check(&hold, cmdq, FLX_CMDQ, __func__, "cmdq") ||
	    !flx_given((const void *)(uintptr_t)host_func, __func__, "host_func") ||
	    !flx_function_find(cmdq->object.process, host_func, __func__, "host_func", &f))
		return FLEXIO_STATUS_FAILED;
	if (f.function->argbuf_bytes != sizeof(arg))
		return flx_fail(__func__, "host_func: %s has other arguments than one of 64 bits",
				f.function->name);
	prm_set(in, DPA_IN_ADDR, f.addr);
	prm_set(in, DPA_IN_SOURCE, arg);
	err = cmdq_op(cmdq, DPA_OP_CMDQ_ADD, in, out);
	return err ? flx_refused(cmdq->object.process, __func__, err) : FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_cmdq_state_running(struct flexio_cmdq *cmdq)
{
	FLX_HOLD(hold);
	uint8_t in[DPA_IN_FIXED] = {0}, out[DPA_OUT_BYTES] = {0};
	int err;

	if (!flx_check(&hold, cmdq, FLX_CMDQ, __func__, "cmdq"))
		return FLEXIO_STATUS_FAILED;
	err = cmdq_op(cmdq, DPA_OP_CMDQ_START, in, out);
	return err ? flx_refused(cmdq->object.process, __func__, err) : FLEXIO_STATUS_SUCCESS;
}

int flexio_cmdq_is_empty(struct flexio_cmdq *cmdq)
{
	FLX_HOLD(hold);
	uint8_t in[DPA_IN_FIXED] = {0}, out[DPA_OUT_BYTES] = {0};
	int err;

	if (!flx_check(&hold, cmdq, FLX_CMDQ, __func__, "cmdq"))
		return 0;
	err = cmdq_op(cmdq, DPA_OP_CMDQ_IS_EMPTY, in, out);
	if (err)
		(void)flx_refused(cmdq->object.process, __func__, err);
	return !err && prm_get(out, DPA_OUT_STATE);
}
