// SPDX-License-Identifier: BSD-2-Clause
/* Completion queues: objects of DEVX whose rings lie on the heap of a process, or in memory of the
 * host. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flexio/internal.h"
#include "prm/cmd_cq_eq.h"

#define PERIOD_MAX 0xfffu
#define PAGE_BYTES 4096u
#define CQE_BYTES  64ull

static void cq_free(struct flexio_cq *cq)
{
	for (size_t i = 0; i < array_size(cq->alias); i++)
		flx_alias_put(cq->alias[i]);
	free(cq);
}

static void cq_drop(struct flx_object *object)
{
	struct flexio_cq *cq = container_of(object, struct flexio_cq, object);

	(void)mlx5dv_devx_obj_destroy(cq->devx);
	cq_free(cq);
}

/* ---- attributes ---- */

static bool cq_wrong(const char *field, unsigned long long value)
{
	flx_fail("flexio_cq_create", "fattr->%s: 0x%llx is not possible", field, value);
	return false;
}

/* The host arms in this page a queue that it handles. */
static bool cq_check_page(const struct flexio_cq_attr *attr)
{
	if (!attr->uar_base_addr)
		return true;
	if (!flx_uar_numbers(attr->uar_id) && (uintptr_t)attr->uar_base_addr % PAGE_BYTES == 0)
		return true;
	flx_fail("flexio_cq_create",
		 "fattr->uar_base_addr: %p is not the page of a DEVX UAR with the number 0x%x",
		 attr->uar_base_addr, attr->uar_id);
	return false;
}

static bool cq_check_attr(const struct flexio_cq_attr *attr)
{
	if (attr->log_cq_depth > 22)
		return cq_wrong("log_cq_depth", attr->log_cq_depth);
	if (attr->cqe_comp_type > FLEXIO_CQE_COMP_ENH ||
	    (attr->cqe_comp_type != FLEXIO_CQE_COMP_NONE && attr->cc))
		return cq_wrong("cqe_comp_type", attr->cqe_comp_type);
	if (attr->cq_period_mode > FLEXIO_CQ_PERIOD_MODE_CQE)
		return cq_wrong("cq_period_mode", attr->cq_period_mode);
	if (attr->cq_period > PERIOD_MAX)
		return cq_wrong("cq_period", attr->cq_period);
	if (attr->cq_ring_qmem.memtype > FLEXIO_MEMTYPE_HOST)
		return cq_wrong("cq_ring_qmem.memtype", attr->cq_ring_qmem.memtype);
	return cq_check_page(attr);
}

/* Chooses who hears of completions. */
static bool cq_set_element(struct flx_hold *hold, const struct flexio_process *process,
			   struct ibv_context *ctx, const struct flexio_cq_attr *attr, uint8_t *cqc)
{
	uint32_t eqn;

	switch (attr->element_type) {
	case FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD:
		if (!flx_check(hold, attr->thread, FLX_THREAD, "flexio_cq_create", "fattr->thread"))
			return false;
		if (attr->thread->object.process != process) {
			flx_fail("flexio_cq_create", "fattr->thread: it is of another process");
			return false;
		}
		prm_set(cqc, CQC_APU, 1);
		prm_set(cqc, CQC_ELEMENT, CQC_ELEMENT_THREAD);
		prm_set(cqc, CQC_EQN, attr->thread->number);
		return true;
	case FLEXIO_CQ_ELEMENT_TYPE_EXT_EQ:
		prm_set(cqc, CQC_APU, 1);
		prm_set(cqc, CQC_ELEMENT, CQC_ELEMENT_EMULATED_EQ);
		prm_set(cqc, CQC_EQN, attr->emulated_eqn);
		return true;
	case FLEXIO_CQ_ELEMENT_TYPE_DPA_MSIX_EMULATED_CQ:
		prm_set(cqc, CQC_EQN, attr->emulated_eqn);
		return true;
	case FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ:
		/* The device wants an event queue, and nobody subscribes to it. */
		if (mlx5dv_devx_query_eqn(ctx, 0, &eqn)) {
			flx_fail("flexio_cq_create", "no event queue: %s", strerror(errno));
			return false;
		}
		prm_set(cqc, CQC_EQN, eqn);
		return true;
	default:
		return cq_wrong("element_type", attr->element_type);
	}
}

static void cq_set_memory(const struct flexio_process *process, const struct flexio_cq_attr *attr,
			  uint8_t *in)
{
	const struct flexio_qmem *ring = &attr->cq_ring_qmem;
	uint8_t *cqc = in + CREATE_CQ_CONTEXT;
	bool host = ring->memtype == FLEXIO_MEMTYPE_HOST;

	prm_set(in, CREATE_CQ_UMEM, host ? ring->umem_id : DPA_UMEM + process->number);
	prm_set(in, CREATE_CQ_OFFSET, host ? ring->humem_offset : ring->daddr);
	prm_set(cqc, CQC_DBR_UMEM, DPA_UMEM + process->number);
	prm_set(cqc, CQC_DBR_ADDR, attr->cq_dbr_daddr);
}

static enum cqc_state cq_first_state(const struct flexio_cq_attr *attr)
{
	if (attr->always_armed)
		return CQC_STATE_ALWAYS;
	return attr->no_arm ? CQC_STATE_FIRED : CQC_STATE_ARMED;
}

static bool cq_fill(struct flx_hold *hold, const struct flexio_process *process,
		    struct ibv_context *ctx, const struct flexio_cq_attr *attr, uint8_t *in)
{
	uint8_t *cqc = in + CREATE_CQ_CONTEXT;

	if (!cq_check_attr(attr) || !cq_set_element(hold, process, ctx, attr, cqc))
		return false;
	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_CQ);
	prm_set(cqc, CQC_COLLAPSED, attr->cc);
	prm_set(cqc, CQC_COMPRESSION, attr->cqe_comp_type != FLEXIO_CQE_COMP_NONE);
	prm_set(cqc, CQC_LAYOUT, attr->cqe_comp_type == FLEXIO_CQE_COMP_ENH);
	prm_set(cqc, CQC_OVERRUN_IGNORE, attr->overrun_ignore != 0);
	prm_set(cqc, CQC_STATE, cq_first_state(attr));
	prm_set(cqc, CQC_LOG_SIZE, attr->log_cq_depth);
	prm_set(cqc, CQC_UAR_PAGE, attr->uar_id & 0xffffff);
	prm_set(cqc, CQC_PERIOD_MODE, attr->cq_period_mode);
	prm_set(cqc, CQC_PERIOD, attr->cq_period);
	prm_set(cqc, CQC_MAX_COUNT, attr->cq_max_count);
	cq_set_memory(process, attr, in);
	return true;
}

/* Makes the aliases that the CQ needs.  False with errno: the device cannot reach the process. */
static bool cq_make_aliases(struct flexio_cq *cq, const struct flexio_process *process,
			    struct ibv_context *ctx, const struct flexio_cq_attr *attr)
{
	if (ctx == process->ctx)
		return true;
	cq->alias[0] = flx_alias_get(ctx, process, 0);
	if (cq->alias[0] && attr->element_type == FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD)
		cq->alias[1] = flx_alias_get(ctx, process, attr->thread->number);
	return cq->alias[0] &&
	       (cq->alias[1] || attr->element_type != FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD);
}

static void cq_check_places(const struct flexio_process *process, const struct flexio_cq_attr *attr,
			    uint32_t number)
{
	const struct flexio_qmem record = {.daddr = attr->cq_dbr_daddr};

	flx_place_check("flexio_cq_create", "fattr->cq_ring_qmem", &attr->cq_ring_qmem, number,
			FLX_RING_UNIT);
	flx_place_check("flexio_cq_create", "fattr->cq_dbr_daddr", &record, number,
			FLX_RECORD_UNIT);
	flx_uar_check(process, "flexio_cq_create", "fattr->uar_id", attr->uar_id, number);
}

/* ---- the functions ---- */

flexio_status flexio_cq_create(struct flexio_process *process, struct ibv_context *ibv_ctx,
			       const struct flexio_cq_attr *fattr, struct flexio_cq **cq)
{
	FLX_HOLD(hold);
	uint8_t in[CREATE_CQ_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0};
	struct ibv_context *ctx;
	struct flexio_cq *made;

	if (!flx_given(cq, __func__, "cq"))
		return FLEXIO_STATUS_FAILED;
	*cq = NULL;
	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process") ||
	    !flx_given(fattr, __func__, "fattr"))
		return FLEXIO_STATUS_FAILED;
	ctx = ibv_ctx ? ibv_ctx : process->ctx;
	if (!cq_fill(&hold, process, ctx, fattr, in))
		return FLEXIO_STATUS_FAILED;
	made = calloc(1, sizeof(*made));
	if (!made)
		return flx_fail(__func__, "no memory");
	if (cq_make_aliases(made, process, ctx, fattr))
		made->devx = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	if (!made->devx) {
		int err = errno;

		cq_free(made);
		return flx_fail(__func__,
				"fattr: the device refuses uar_id 0x%x, cq_ring_qmem (%s), "
				"cq_dbr_daddr (0x%llx)%s: %s",
				fattr->uar_id, flx_qmem_text(&fattr->cq_ring_qmem).bytes,
				(unsigned long long)fattr->cq_dbr_daddr,
				fattr->element_type == FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD
					? ""
					: " or emulated_eqn",
				strerror(err));
	}
	made->number = prm_get32(out, CMD_OUT_NUMBER);
	cq_check_places(process, fattr, made->number);
	/* A collapsed queue has one entry. */
	flx_ring_check(process, __func__, "fattr->cq_ring_qmem", &fattr->cq_ring_qmem, made->number,
		       CQE_BYTES << (fattr->cc ? 0 : fattr->log_cq_depth));
	made->object.destroy = cq_drop;
	if (fattr->element_type == FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD)
		made->thread = fattr->thread;
	flx_object_add(&made->object, FLX_CQ, process);
	*cq = made;
	return FLEXIO_STATUS_SUCCESS;
}

bool flx_cq_names(const struct flexio_thread *thread)
{
	struct flx_object *o;

	flx_objects_lock();
	for (o = flx_object_next(FLX_CQ, NULL); o; o = flx_object_next(FLX_CQ, o))
		if (container_of(o, struct flexio_cq, object)->thread == thread)
			break;
	flx_objects_unlock();
	return o != NULL;
}

flexio_status flexio_cq_destroy(struct flexio_cq *cq)
{
	FLX_HOLD(hold);
	int err;

	if (!flx_claim(&hold, cq, FLX_CQ, __func__, "cq"))
		return FLEXIO_STATUS_FAILED;
	err = mlx5dv_devx_obj_destroy(cq->devx);
	if (!err) {
		cq_free(cq);
		return FLEXIO_STATUS_SUCCESS;
	}
	flx_object_add(&cq->object, FLX_CQ, cq->object.process);
	return flx_fail(__func__, "cq: a queue completes on it (%s)", strerror(err));
}

uint32_t flexio_cq_get_cq_num(struct flexio_cq *cq)
{
	FLX_HOLD(hold);

	return flx_check(&hold, cq, FLX_CQ, __func__, "cq") ? cq->number : UINT32_MAX;
}

flexio_status flexio_cq_modify_moderation(struct flexio_cq *cq, uint16_t max_count, uint16_t period,
					  uint16_t mode)
{
	FLX_HOLD(hold);
	uint8_t in[MODIFY_CQ_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0};
	uint8_t *cqc = in + MODIFY_CQ_CONTEXT;
	int err;

	if (!flx_check(&hold, cq, FLX_CQ, __func__, "cq"))
		return FLEXIO_STATUS_FAILED;
	if (period > PERIOD_MAX || mode > FLEXIO_CQ_PERIOD_MODE_CQE)
		return flx_fail(__func__, "period (%u) is %u at most, mode (%u) 0 or 1", period,
				PERIOD_MAX, mode);
	prm_set(in, CMD_IN_OPCODE, PRM_OP_MODIFY_CQ);
	prm_set(in, CMD_IN_NUMBER, cq->number);
	prm_set(in, MODIFY_CQ_SELECT,
		MODIFY_CQ_PERIOD | MODIFY_CQ_MAX_COUNT | MODIFY_CQ_PERIOD_MODE);
	prm_set(cqc, CQC_MAX_COUNT, max_count);
	prm_set(cqc, CQC_PERIOD, period);
	prm_set(cqc, CQC_PERIOD_MODE, mode);
	err = mlx5dv_devx_obj_modify(cq->devx, in, sizeof(in), out, sizeof(out));
	return err ? flx_refused(cq->object.process, __func__, err) : FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_cq_query_moderation(struct flexio_cq *cq, uint16_t *max_count,
					 uint16_t *period, uint16_t *mode)
{
	FLX_HOLD(hold);
	uint8_t in[CMD_IN_BYTES] = {0}, out[QUERY_CQ_OUT_BYTES] = {0};
	const uint8_t *cqc = out + QUERY_CQ_CONTEXT;
	int err;

	if (!flx_check(&hold, cq, FLX_CQ, __func__, "cq") ||
	    !flx_given(max_count, __func__, "max_count") ||
	    !flx_given(period, __func__, "period") || !flx_given(mode, __func__, "mode"))
		return FLEXIO_STATUS_FAILED;
	prm_set(in, CMD_IN_OPCODE, PRM_OP_QUERY_CQ);
	prm_set(in, CMD_IN_NUMBER, cq->number);
	err = mlx5dv_devx_obj_query(cq->devx, in, sizeof(in), out, sizeof(out));
	if (err)
		return flx_refused(cq->object.process, __func__, err);
	*max_count = (uint16_t)prm_get(cqc, CQC_MAX_COUNT);
	*period = (uint16_t)prm_get(cqc, CQC_PERIOD);
	*mode = (uint16_t)prm_get(cqc, CQC_PERIOD_MODE);
	return FLEXIO_STATUS_SUCCESS;
}
