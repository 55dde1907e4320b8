// SPDX-License-Identifier: BSD-2-Clause
/* Work queues without a queue pair: receive queues, receive memory pools, send queues. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flexio/internal.h"
#include "prm/cmd_qp.h"

/* A command with its mailboxes. */
struct flx_wq_command {
	uint8_t in[RAW_CONTEXT + 0xf0u], out[CMD_OUT_BYTES];
};

/* The arguments of a function that makes a queue. */
struct flx_wq_make {
	struct flexio_process *process;
	struct ibv_context *ctx; /* never NULL */
	const struct flexio_wq_attr *attr;
	const char *function;
	struct flx_alias **alias; /* for the process, if its context is not ctx */
};

/* ---- what the queues share ---- */

#define LOG_DEPTH_MAX  15u
#define LOG_STRIDE_MAX 15u

/*
 * Each function that makes a queue begins with this: 'place' is where its caller wants the queue,
 * and gets NULL until there is one.  False: an argument is wrong; logs.
 */
static bool flx_wq_begin(struct flx_hold *hold, struct flx_wq_make *make, void **place,
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

/* Tells whether this can be the number of a CQ; logs if not. */
static bool flx_wq_check_cq(const struct flx_wq_make *make, uint32_t cqn)
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

/*
 * Checks the arguments, and fills in the work queue at wq from the attributes, except for type,
 * stride and region.  False: they are wrong, or the device cannot reach the process; logs.
 */
static bool flx_wq_fill(const struct flx_wq_make *make, uint8_t *wq)
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

/* Makes the object of the command; logs what the device refuses. */
static struct mlx5dv_devx_obj *flx_wq_create(const struct flx_wq_make *make, enum prm_opcode opcode,
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

/* Moves a queue from one state to another; 0 or an errno. */
static int flx_wq_move(struct mlx5dv_devx_obj *obj, enum prm_opcode opcode, uint32_t number,
		       enum raw_state from, enum raw_state to)
{
	struct flx_wq_command cmd = {0};

	prm_set(cmd.in, CMD_IN_OPCODE, opcode);
	prm_set(cmd.in, CMD_IN_NUMBER, number);
	prm_set(cmd.in, RAW_CURRENT_STATE, from);
	prm_set(cmd.in + RAW_CONTEXT, RQC_STATE, to);
	return mlx5dv_devx_obj_modify(obj, cmd.in, sizeof(cmd.in), cmd.out, sizeof(cmd.out));
}

/* Moves it from RST to RDY, when all parts have been made; logs what the device refuses. */
static bool flx_wq_ready(const struct flx_wq_make *make, struct mlx5dv_devx_obj *obj,
			 enum prm_opcode opcode, uint32_t number)
{
	int err = flx_wq_move(obj, opcode, number, RAW_STATE_RST, RAW_STATE_RDY);

	if (err)
		flx_refused(make->process, make->function, err);
	return !err;
}

/* Makes a transport domain for each queue, because nothing depends on which queues share one. */
static struct mlx5dv_devx_obj *flx_wq_domain(const struct flx_wq_make *make, uint32_t *number)
{
	struct flx_wq_command cmd = {0};

	return flx_wq_create(make, PRM_OP_ALLOC_TRANSPORT_DOMAIN, &cmd, number);
}

/* Of a receive; the attribute may leave it to the kind of queue. */
static uint32_t flx_wq_log_stride(const struct flexio_wq_attr *attr, uint32_t by_default)
{
	return attr->log_wq_stride ? attr->log_wq_stride : by_default;
}

/* Logs a ring that is longer than its buffer, or where a card would not take it, when there is a queue of that number. */
static void flx_wq_check_ring(const struct flx_wq_make *make, uint32_t number, uint32_t log_stride)
{
	flx_ring_check(make->process, make->function, "fattr->wq_ring_qmem",
		       &make->attr->wq_ring_qmem, number,
		       1ull << (log_stride + make->attr->log_wq_depth));
	flx_place_check(make->function, "fattr->wq_ring_qmem", &make->attr->wq_ring_qmem, number,
			FLX_RING_UNIT);
	flx_place_check(make->function, "fattr->wq_dbr_qmem", &make->attr->wq_dbr_qmem, number,
			FLX_RECORD_UNIT);
}

/* ---- receive queues, each with the TIR that leads to it ---- */

#define RQ_LOG_STRIDE 4u

struct flexio_rq {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx, *domain, *tir;
	struct flx_alias *alias;
	uint32_t number;
};

/* Destroys one object of several; returns 0 also if there is none. */
static int rq_part_free(struct mlx5dv_devx_obj **obj)
{
	int err = *obj ? mlx5dv_devx_obj_destroy(*obj) : 0;

	if (!err)
		*obj = NULL;
	return err;
}

/* Destroys what was made of it, the last part first; an errno if TIR or queue is in use. */
static int rq_free(struct flexio_rq *rq)
{
	int err = rq_part_free(&rq->tir);

	if (!err)
		err = rq_part_free(&rq->devx);
	if (err)
		return err;
	(void)rq_part_free(&rq->domain);
	flx_alias_put(rq->alias);
	free(rq);
	return 0;
}

/* Moves it to the error state from whatever state it is in; returns an errno. */
static int rq_fail(const struct flexio_rq *rq)
{
	uint8_t in[CMD_IN_BYTES] = {0}, out[RQ_BYTES] = {0};
	int err;

	prm_set(in, CMD_IN_OPCODE, PRM_OP_QUERY_RQ);
	prm_set(in, CMD_IN_NUMBER, rq->number);
	err = mlx5dv_devx_obj_query(rq->devx, in, sizeof(in), out, sizeof(out));
	if (err)
		return err;
	return flx_wq_move(rq->devx, PRM_OP_MODIFY_RQ, rq->number,
			   (enum raw_state)prm_get(out + RAW_CONTEXT, RQC_STATE), RAW_STATE_ERR);
}

/*
 * A rule of the program may still lead to the TIR.  Then the queue stays with the program's
 * context, and with it the memory of the process; the queue takes nothing any more.
 */
static void rq_drop(struct flx_object *object)
{
	struct flexio_rq *rq = container_of(object, struct flexio_rq, object);

	if (!rq_free(rq))
		return;
	(void)rq_fail(rq);
	free(rq);
}

static bool rq_make_queue(const struct flx_wq_make *make, struct flexio_rq *rq, uint32_t cqn)
{
	const struct flexio_wq_attr *attr = make->attr;
	struct flx_wq_command cmd = {0};
	uint8_t *rqc = cmd.in + RAW_CONTEXT, *wq = rqc + RQC_WQ;

	if (!flx_wq_check_cq(make, cqn) || !flx_wq_fill(make, wq))
		return false;
	prm_set(rqc, RQC_FLUSH, 1);
	prm_set(rqc, RQC_KEEP_VLAN, 1);
	prm_set(rqc, RQC_USER_INDEX, attr->user_index);
	prm_set(rqc, RQC_CQN, cqn);
	prm_set(wq, WQ_TYPE, WQ_CYCLIC);
	prm_set(wq, WQ_LOG_STRIDE, flx_wq_log_stride(attr, RQ_LOG_STRIDE));
	rq->devx = flx_wq_create(make, PRM_OP_CREATE_RQ, &cmd, &rq->number);
	return rq->devx && flx_wq_ready(make, rq->devx, PRM_OP_MODIFY_RQ, rq->number);
}

static bool rq_make_tir(const struct flx_wq_make *make, struct flexio_rq *rq)
{
	struct flx_wq_command cmd = {0};
	uint8_t *tirc = cmd.in + RAW_CONTEXT;
	uint32_t domain, tirn;

	rq->domain = flx_wq_domain(make, &domain);
	if (!rq->domain)
		return false;
	prm_set(tirc, TIRC_RQN, rq->number);
	prm_set(tirc, TIRC_DOMAIN, domain);
	rq->tir = flx_wq_create(make, PRM_OP_CREATE_TIR, &cmd, &tirn);
	return rq->tir;
}

flexio_status flexio_rq_create(struct flexio_process *process, struct ibv_context *ibv_ctx,
			       uint32_t cq_num, const struct flexio_wq_attr *fattr,
			       struct flexio_rq **flexio_rq_ptr)
{
	FLX_HOLD(hold);
	struct flexio_rq *rq;
	struct flx_wq_make make = {process, ibv_ctx, fattr, __func__, NULL};

	if (!flx_wq_begin(&hold, &make, (void **)flexio_rq_ptr, "flexio_rq_ptr"))
		return FLEXIO_STATUS_FAILED;
	rq = calloc(1, sizeof(*rq));
	if (!rq)
		return flx_fail(__func__, "no memory");
	make.alias = &rq->alias;
	if (!rq_make_queue(&make, rq, cq_num) || !rq_make_tir(&make, rq)) {
		if (rq_free(rq))
			free(rq); /* nobody knows of it yet */
		return FLEXIO_STATUS_FAILED;
	}
	flx_wq_check_ring(&make, rq->number, flx_wq_log_stride(fattr, RQ_LOG_STRIDE));
	rq->object.destroy = rq_drop;
	flx_object_add(&rq->object, FLX_RQ, process);
	*flexio_rq_ptr = rq;
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_rq_destroy(struct flexio_rq *flexio_rq)
{
	FLX_HOLD(hold);
	int err;

	if (!flx_claim(&hold, flexio_rq, FLX_RQ, __func__, "flexio_rq"))
		return FLEXIO_STATUS_FAILED;
	err = rq_free(flexio_rq);
	if (!err)
		return FLEXIO_STATUS_SUCCESS;
	flx_object_add(&flexio_rq->object, FLX_RQ, flexio_rq->object.process);
	return flx_fail(__func__, "flexio_rq: a steering rule leads to it, or a table has it (%s)",
			strerror(err));
}

struct mlx5dv_devx_obj *flexio_rq_get_tir(struct flexio_rq *rq)
{
	FLX_HOLD(hold);

	return flx_check(&hold, rq, FLX_RQ, __func__, "rq") ? rq->tir : NULL;
}

uint32_t flexio_rq_get_wq_num(struct flexio_rq *rq)
{
	FLX_HOLD(hold);

	return flx_check(&hold, rq, FLX_RQ, __func__, "rq") ? rq->number : UINT32_MAX;
}

flexio_status flexio_rq_set_err_state(struct flexio_rq *rq)
{
	FLX_HOLD(hold);
	int err;

	if (!flx_check(&hold, rq, FLX_RQ, __func__, "rq"))
		return FLEXIO_STATUS_FAILED;
	err = rq_fail(rq);
	return err ? flx_refused(rq->object.process, __func__, err) : FLEXIO_STATUS_SUCCESS;
}

/* ---- receive memory pools: lists of receives, from which queue pairs take ---- */

/* Room for a segment that names the next entry, and for one of data. */
#define RMP_LOG_STRIDE 5u

struct flexio_rmp {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx;
	struct flx_alias *alias;
	uint32_t number;
};

static int rmp_free(struct flexio_rmp *rmp)
{
	int err = rmp->devx ? mlx5dv_devx_obj_destroy(rmp->devx) : 0;

	if (err)
		return err;
	flx_alias_put(rmp->alias);
	free(rmp);
	return 0;
}

/* A queue pair of others may use the pool; then it goes with the program's context. */
static void rmp_drop(struct flx_object *object)
{
	struct flexio_rmp *rmp = container_of(object, struct flexio_rmp, object);

	if (rmp_free(rmp))
		free(rmp);
}

static bool rmp_make(const struct flx_wq_make *make, struct flexio_rmp *rmp)
{
	const struct flexio_wq_attr *attr = make->attr;
	struct flx_wq_command cmd = {0};
	uint8_t *rmpc = cmd.in + CREATE_RMP_CONTEXT, *wq = rmpc + RMPC_WQ;

	if (!flx_wq_fill(make, wq))
		return false;
	prm_set(rmpc, RMPC_STATE, RMPC_STATE_RDY);
	prm_set(wq, WQ_TYPE, WQ_LINKED_LIST);
	prm_set(wq, WQ_LOG_STRIDE, flx_wq_log_stride(attr, RMP_LOG_STRIDE));
	rmp->devx = flx_wq_create(make, PRM_OP_CREATE_RMP, &cmd, &rmp->number);
	return rmp->devx;
}

flexio_status flexio_rmp_create(struct flexio_process *process, struct ibv_context *ibv_ctx,
				const struct flexio_wq_attr *fattr,
				struct flexio_rmp **flexio_rmp_ptr)
{
	FLX_HOLD(hold);
	struct flexio_rmp *rmp;
	struct flx_wq_make make = {process, ibv_ctx, fattr, __func__, NULL};

	if (!flx_wq_begin(&hold, &make, (void **)flexio_rmp_ptr, "flexio_rmp_ptr"))
		return FLEXIO_STATUS_FAILED;
	if (fattr->rq.wq_type != FLEXIO_WQ_TYPE_LINKED_LIST)
		return flx_fail(__func__, "fattr->rq.wq_type: only FLEXIO_WQ_TYPE_LINKED_LIST is "
					  "possible");
	rmp = calloc(1, sizeof(*rmp));
	if (!rmp)
		return flx_fail(__func__, "no memory");
	make.alias = &rmp->alias;
	if (!rmp_make(&make, rmp)) {
		(void)rmp_free(rmp);
		return FLEXIO_STATUS_FAILED;
	}
	flx_wq_check_ring(&make, rmp->number, flx_wq_log_stride(fattr, RMP_LOG_STRIDE));
	rmp->object.destroy = rmp_drop;
	flx_object_add(&rmp->object, FLX_RMP, process);
	*flexio_rmp_ptr = rmp;
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_rmp_destroy(struct flexio_rmp *flexio_rmp)
{
	FLX_HOLD(hold);
	int err;

	if (!flx_claim(&hold, flexio_rmp, FLX_RMP, __func__, "flexio_rmp"))
		return FLEXIO_STATUS_FAILED;
	err = rmp_free(flexio_rmp);
	if (!err)
		return FLEXIO_STATUS_SUCCESS;
	flx_object_add(&flexio_rmp->object, FLX_RMP, flexio_rmp->object.process);
	return flx_fail(__func__, "flexio_rmp: a queue pair receives from it (%s)", strerror(err));
}

uint32_t flexio_rmp_get_wq_num(struct flexio_rmp *rmp)
{
	FLX_HOLD(hold);

	return flx_check(&hold, rmp, FLX_RMP, __func__, "rmp") ? rmp->number : UINT32_MAX;
}

/* ---- send queues for raw packets; each has a TIS ---- */

#define LOG_BLOCK 6u

struct flexio_sq {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx, *domain, *tis;
	struct flx_alias *alias;
	uint32_t number;
};

/* Destroys what was made of it, the last part first. */
static void sq_free(struct flexio_sq *sq)
{
	if (sq->devx)
		(void)mlx5dv_devx_obj_destroy(sq->devx);
	if (sq->tis)
		(void)mlx5dv_devx_obj_destroy(sq->tis);
	if (sq->domain)
		(void)mlx5dv_devx_obj_destroy(sq->domain);
	flx_alias_put(sq->alias);
	free(sq);
}

static void sq_drop(struct flx_object *object)
{
	sq_free(container_of(object, struct flexio_sq, object));
}

static bool sq_make_tis(const struct flx_wq_make *make, struct flexio_sq *sq, uint32_t *tisn)
{
	struct flx_wq_command cmd = {0};
	uint32_t domain;

	sq->domain = flx_wq_domain(make, &domain);
	if (!sq->domain)
		return false;
	prm_set(cmd.in + RAW_CONTEXT, TISC_DOMAIN, domain);
	sq->tis = flx_wq_create(make, PRM_OP_CREATE_TIS, &cmd, tisn);
	return sq->tis;
}

static bool sq_make_queue(const struct flx_wq_make *make, struct flexio_sq *sq, uint32_t cqn)
{
	const struct flexio_wq_attr *attr = make->attr;
	struct flx_wq_command cmd = {0};
	uint8_t *sqc = cmd.in + RAW_CONTEXT, *wq = sqc + SQC_WQ;
	uint32_t tisn;

	if (!flx_wq_check_cq(make, cqn) || !flx_wq_fill(make, wq) || !sq_make_tis(make, sq, &tisn))
		return false;
	prm_set(sqc, SQC_FLUSH, 1);
	prm_set(sqc, SQC_CD_MASTER, 1);
	prm_set(sqc, SQC_MULTI_PACKET, attr->sq.allow_multi_pkt_send_wqe != 0);
	prm_set(sqc, SQC_USER_INDEX, attr->user_index);
	prm_set(sqc, SQC_CQN, cqn);
	prm_set(sqc, SQC_TIS_COUNT, 1);
	prm_set(sqc, SQC_TIS, tisn);
	prm_set(wq, WQ_TYPE, WQ_CYCLIC);
	prm_set(wq, WQ_LOG_STRIDE, LOG_BLOCK);
	prm_set(wq, WQ_UAR_PAGE, attr->uar_id);
	sq->devx = flx_wq_create(make, PRM_OP_CREATE_SQ, &cmd, &sq->number);
	return sq->devx && flx_wq_ready(make, sq->devx, PRM_OP_MODIFY_SQ, sq->number);
}

flexio_status flexio_sq_create(struct flexio_process *process, struct ibv_context *ibv_ctx,
			       uint32_t cq_num, const struct flexio_wq_attr *fattr,
			       struct flexio_sq **flexio_sq_ptr)
{
	FLX_HOLD(hold);
	struct flexio_sq *sq;
	struct flx_wq_make make = {process, ibv_ctx, fattr, __func__, NULL};

	if (!flx_wq_begin(&hold, &make, (void **)flexio_sq_ptr, "flexio_sq_ptr"))
		return FLEXIO_STATUS_FAILED;
	sq = calloc(1, sizeof(*sq));
	if (!sq)
		return flx_fail(__func__, "no memory");
	make.alias = &sq->alias;
	if (!sq_make_queue(&make, sq, cq_num)) {
		sq_free(sq);
		return FLEXIO_STATUS_FAILED;
	}
	flx_wq_check_ring(&make, sq->number, LOG_BLOCK);
	flx_uar_check(process, __func__, "fattr->uar_id", fattr->uar_id, sq->number);
	sq->object.destroy = sq_drop;
	flx_object_add(&sq->object, FLX_SQ, process);
	*flexio_sq_ptr = sq;
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_sq_destroy(struct flexio_sq *flexio_sq)
{
	FLX_HOLD(hold);

	if (!flx_claim(&hold, flexio_sq, FLX_SQ, __func__, "flexio_sq"))
		return FLEXIO_STATUS_FAILED;
	sq_free(flexio_sq);
	return FLEXIO_STATUS_SUCCESS;
}

uint32_t flexio_sq_get_wq_num(struct flexio_sq *sq)
{
	FLX_HOLD(hold);

	return flx_check(&hold, sq, FLX_SQ, __func__, "sq") ? sq->number : UINT32_MAX;
}
