// SPDX-License-Identifier: BSD-2-Clause
/* Commands to the device, by libmlx5's public calls; prm/cmd_dpa.h has their layouts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flexio/internal.h"
#include "prm/cmd.h"
#include "prm/hca_cap.h"

flexio_status flx_devx_has_dpa(struct ibv_context *ctx, const char *function)
{
	uint8_t in[HCA_CAP_IN_BYTES] = {0};
	uint8_t *out = calloc(1, HCA_CAP_OUT_BYTES);
	int err;

	if (!out)
		return flx_fail(function, "no memory");
	prm_set(in, CMD_IN_OPCODE, PRM_OP_QUERY_HCA_CAP);
	prm_set(in, CMD_IN_OP_MOD, HCA_CAP_DPA << 1 | 1);
	err = mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, HCA_CAP_OUT_BYTES);
	if (!err && prm_get(out + HCA_CAP_HEADER, DPA_CAP_VERSION) != DPA_LAYOUT_VERSION)
		err = EPROTO;
	free(out);
	if (!err)
		return FLEXIO_STATUS_SUCCESS;
	if (err == EPROTO)
		return flx_fail(function, "device %s has the DPA of another version",
				ibv_get_device_name(ctx->device));
	return flx_fail(function, "device %s has no DPA", ibv_get_device_name(ctx->device));
}

int flx_devx_errno(int err, const void *out)
{
	if (err != EREMOTEIO)
		return err;
	switch (prm_get(out, CMD_OUT_STATUS)) {
	case CMD_STATUS_BAD_PARAM:
		return EINVAL;
	case CMD_STATUS_RES_BUSY:
		return EBUSY;
	case CMD_STATUS_BAD_RES:
		return ENOENT;
	case CMD_STATUS_NO_RES:
		return ENOMEM;
	case CMD_STATUS_LIMIT:
		return ENOSPC;
	case CMD_STATUS_BAD_OP:
		return EOPNOTSUPP;
	default:
		return err;
	}
}

struct mlx5dv_devx_obj *flx_devx_create(struct ibv_context *ctx, void *in, size_t in_bytes,
					uint32_t *number)
{
	uint8_t out[CMD_OUT_BYTES] = {0};
	struct mlx5dv_devx_obj *obj;

	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_GENERAL_OBJECT);
	obj = mlx5dv_devx_obj_create(ctx, in, in_bytes, out, sizeof(out));
	if (obj)
		*number = prm_get32(out, GENERAL_OUT_ID);
	else
		errno = flx_devx_errno(errno, out);
	return obj;
}

struct mlx5dv_devx_obj *flx_devx_process(struct ibv_context *ctx, const void *elf, size_t bytes,
					 bool en_pcc, uint32_t *number)
{
	uint8_t in[DPA_PROCESS_IN_BYTES] = {0};

	prm_set(in, GENERAL_IN_TYPE, GENERAL_DPA_PROCESS);
	prm_set(in, DPA_PROCESS_ELF, (uintptr_t)elf);
	prm_set(in, DPA_PROCESS_ELF_BYTES, bytes);
	prm_set(in, DPA_PROCESS_PCC, en_pcc);
	return flx_devx_create(ctx, in, sizeof(in), number);
}

int flx_devx_op(const struct flexio_process *process, enum dpa_op op, void *in, size_t in_bytes,
		void *out, size_t out_bytes)
{
	prm_set(in, CMD_IN_OPCODE, PRM_OP_DPA);
	prm_set(in, CMD_IN_OP_MOD, op);
	prm_set(in, DPA_IN_PROCESS, process->number);
	return flx_devx_errno(mlx5dv_devx_general_cmd(process->ctx, in, in_bytes, out, out_bytes),
			      out);
}

flexio_status flx_refused(const struct flexio_process *process, const char *function, int err)
{
	uint8_t in[DPA_IN_FIXED] = {0}, out[DPA_OUT_BYTES] = {0};

	if (process->pid != getpid())
		return flx_fail(
			function,
			"process: it is of the process %d, which has forked this one: a child "
			"opens the device and makes its own",
			(int)process->pid);
	if (!flx_devx_op(process, DPA_OP_STATE, in, sizeof(in), out, sizeof(out)) &&
	    prm_get(out, DPA_OUT_STATE) == DPA_FATAL) {
		flx_fail(function, "the DPA process has ended by an error (code 0x%x)",
			 prm_get32(out, DPA_OUT_CODE));
		return FLEXIO_STATUS_FATAL_ERR;
	}
	/* The code that is destroyed ends as that which finishes by itself. */
	if (flx_leaving(process))
		return flx_fail(function, "process: another thread of the program destroys it");
	if (prm_get(out, DPA_OUT_STATE) == DPA_FINISHED)
		return flx_fail(function, "process: it has finished by itself "
					  "(flexio_dev_process_finish)");
	return flx_fail(function, "the device refuses: %s", strerror(err));
}

flexio_status flx_thread_refused(const struct flexio_process *process, const char *function,
				 int err)
{
	if (err != ENOSPC)
		return flx_refused(process, function, err);
	return flx_fail(
		function,
		"process: it can have no more threads than %u, which event handlers, workers "
		"of command queues and calls share: destroy some first",
		DPA_THREADS);
}
