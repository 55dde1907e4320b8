// SPDX-License-Identifier: BSD-2-Clause
/* See wq.h. */
#include "flexio/wq.h"

#include <errno.h>
#include <string.h>

#define LOG_DEPTH_MAX  15u
#define LOG_STRIDE_MAX 15u

bool flx_wq_begin(struct flx_hold *hold, struct flx_wq_make *make, void **place,
		  const char *place_name)
{
	if (!flx_given(place, make->function, place_name))
		return false;
	*place = NULL;
	if (!flx_check(hold, make->process, FLX_PROCESS, make->function, "process") ||
	    !flx_given(make->attr, make->function, "fattr"))
		return false;
	if (!make->ctx)
		make->ctx = make->process->ctx;
	return true;
}

static bool wq_wrong(const struct flx_wq_make *make, const char *field, unsigned long long value)
{
	flx_fail(make->function, "fattr->%s: 0x%llx is not possible", field, value);
	return false;
}

static bool wq_check_attr(const struct flx_wq_make *make)
{
	const struct flexio_wq_attr *attr = make->attr;

	if (attr->log_wq_stride > LOG_STRIDE_MAX)
		return wq_wrong(make, "log_wq_stride", attr->log_wq_stride);
	if (attr->log_wq_depth > LOG_DEPTH_MAX)
		return wq_wrong(make, "log_wq_depth", attr->log_wq_depth);
	if (attr->uar_id > FLX_NUMBER_MAX)
		return wq_wrong(make, "uar_id", attr->uar_id);
	if (attr->user_index > FLX_NUMBER_MAX)
		return wq_wrong(make, "user_index", attr->user_index);
	if (attr->wq_ring_qmem.memtype > FLEXIO_MEMTYPE_HOST)
		return wq_wrong(make, "wq_ring_qmem.memtype", attr->wq_ring_qmem.memtype);
	if (attr->wq_dbr_qmem.memtype > FLEXIO_MEMTYPE_HOST)
		return wq_wrong(make, "wq_dbr_qmem.memtype", attr->wq_dbr_qmem.memtype);
	return true;
}

bool flx_wq_check_cq(const struct flx_wq_make *make, uint32_t cqn)
{
	if (cqn <= FLX_NUMBER_MAX)
		return true;
	flx_fail(make->function, "cq_num: 0x%x is not possible", cqn);
	return false;
}

static void wq_set_memory(const struct flx_wq_make *make, uint8_t *wq)
{
	const struct flexio_qmem *ring = &make->attr->wq_ring_qmem;
	const struct flexio_qmem *record = &make->attr->wq_dbr_qmem;
	uint32_t dpa = DPA_UMEM + make->process->number;
	bool host = ring->memtype == FLEXIO_MEMTYPE_HOST;

	prm_set(wq, WQ_UMEM, host ? ring->umem_id : dpa);
	prm_set(wq, WQ_OFFSET, host ? ring->humem_offset : ring->daddr);
	host = record->memtype == FLEXIO_MEMTYPE_HOST;
	/* Send queues need no record; nobody has address 0. */
	if (!host && !record->daddr)
		return;
	prm_set(wq, WQ_DBR_UMEM, host ? record->umem_id : dpa);
	prm_set(wq, WQ_DBR_ADDR, host ? record->humem_offset : record->daddr);
}

bool flx_wq_fill(const struct flx_wq_make *make, uint8_t *wq)
{
	struct ibv_pd *pd = make->attr->pd ? make->attr->pd : make->process->pd;
	uint32_t pdn;

	if (!wq_check_attr(make) || !flx_pd_number(pd, make->function, "fattr->pd", &pdn))
		return false;
	if (pd->context != make->ctx) {
		flx_fail(make->function, "fattr->pd: it is of another context than the queue");
		return false;
	}
	if (make->ctx != make->process->ctx) {
		*make->alias = flx_alias_get(make->ctx, make->process, 0);
		if (!*make->alias) {
			flx_fail(make->function,
				 "ibv_ctx: its device does not reach the process: %s",
				 strerror(errno));
			return false;
		}
	}
	prm_set(wq, WQ_PD, pdn);
	prm_set(wq, WQ_LOG_SIZE, make->attr->log_wq_depth);
	wq_set_memory(make, wq);
	return true;
}

struct mlx5dv_devx_obj *flx_wq_create(const struct flx_wq_make *make, enum prm_opcode opcode,
				      struct flx_wq_command *cmd, uint32_t *number)
{
	struct mlx5dv_devx_obj *obj;

	prm_set(cmd->in, CMD_IN_OPCODE, opcode);
	obj = mlx5dv_devx_obj_create(make->ctx, cmd->in, sizeof(cmd->in), cmd->out,
				     sizeof(cmd->out));
	if (!obj) {
		int err = errno;

		flx_fail(make->function,
			 "the device refuses cq_num, or of fattr uar_id (0x%x), log_wq_stride "
			 "(%u), wq_ring_qmem (%s) or wq_dbr_qmem (%s): %s",
			 make->attr->uar_id, make->attr->log_wq_stride,
			 flx_qmem_text(&make->attr->wq_ring_qmem).bytes,
			 flx_qmem_text(&make->attr->wq_dbr_qmem).bytes, strerror(err));
		return NULL;
	}
	*number = prm_get32(cmd->out, CMD_OUT_NUMBER);
	return obj;
}

int flx_wq_move(struct mlx5dv_devx_obj *obj, enum prm_opcode opcode, uint32_t number,
		enum raw_state from, enum raw_state to)
{
	struct flx_wq_command cmd = {0};

	prm_set(cmd.in, CMD_IN_OPCODE, opcode);
	prm_set(cmd.in, CMD_IN_NUMBER, number);
	prm_set(cmd.in, RAW_CURRENT_STATE, from);
	prm_set(cmd.in + RAW_CONTEXT, RQC_STATE, to);
	return mlx5dv_devx_obj_modify(obj, cmd.in, sizeof(cmd.in), cmd.out, sizeof(cmd.out));
}

bool flx_wq_ready(const struct flx_wq_make *make, struct mlx5dv_devx_obj *obj,
		  enum prm_opcode opcode, uint32_t number)
{
	int err = flx_wq_move(obj, opcode, number, RAW_STATE_RST, RAW_STATE_RDY);

	if (err)
		flx_refused(make->process, make->function, err);
	return !err;
}

struct mlx5dv_devx_obj *flx_wq_domain(const struct flx_wq_make *make, uint32_t *number)
{
	struct flx_wq_command cmd = {0};

	return flx_wq_create(make, PRM_OP_ALLOC_TRANSPORT_DOMAIN, &cmd, number);
}

uint32_t flx_wq_log_stride(const struct flexio_wq_attr *attr, uint32_t by_default)
{
	return attr->log_wq_stride ? attr->log_wq_stride : by_default;
}

void flx_wq_check_ring(const struct flx_wq_make *make, uint32_t number, uint32_t log_stride)
{
	flx_ring_check(make->process, make->function, "fattr->wq_ring_qmem",
		       &make->attr->wq_ring_qmem, number,
		       1ull << (log_stride + make->attr->log_wq_depth));
	flx_place_check(make->function, "fattr->wq_ring_qmem", &make->attr->wq_ring_qmem, number,
			FLX_RING_UNIT);
	flx_place_check(make->function, "fattr->wq_dbr_qmem", &make->attr->wq_dbr_qmem, number,
			FLX_RECORD_UNIT);
}
