// SPDX-License-Identifier: BSD-2-Clause
/* Receive queues made by DEVX: the work queues of verbs, with rings and records of an umem. */
#include "driver/devx/raw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "driver/devx/refuse.h"
#include "driver/uverbs/objects/wq.h"
#include "prm/wqe.h"

#define LOG_STRIDE_MAX 9u /* max_wqe_sz_rq */

struct devx_rq {
	struct devx_obj obj;
	struct wq *wq;
	uint8_t context[RQC_BYTES];
};

struct wq *devx_wq_of(struct uobj *obj)
{
	if (obj->type == UOBJ_WQ)
		return container_of(obj, struct uwq, uobj)->wq;
	return container_of(obj, struct devx_rq, obj.uobj)->wq;
}

static void devx_rq_on_async(void *user, enum ib_event event)
{
	devx_queue_event(user, event);
}

/* Refuses the features that this device does not have. */
static int devx_rq_check_features(const uint8_t *rqc)
{
	static const struct devx_lack lacks[] = {
		{RQC_RESERVED_KEY, "rlky"},
		{RQC_DELAY_DROP, "delay_drop_en"},
		{RQC_SCATTER_FCS, "scatter_fcs"},
		{RQC_HAIRPIN, "hairpin"},
	};
	int ret = devx_lacks(rqc, lacks);

	if (ret < 0 || prm_get(rqc, RQC_MEMORY) == RQC_OF_RMP)
		return ret;
	if (prm_get(rqc, RQC_MEMORY) != RQC_INLINE)
		return devx_refuse(-EOPNOTSUPP, "mem_rq_type", prm_get(rqc, RQC_MEMORY),
				   "the device has 0 (a ring) and 1 (a pool)");
	return devx_raw_check_ring(rqc + RQC_WQ);
}

static int devx_rq_use_memory(struct devx_call *c, struct devx_rq *rq, struct wq_attr *attr)
{
	const uint8_t *wq = rq->context + RQC_WQ;
	const struct devx_part ring = devx_wq_ring(wq), record = devx_wq_record(wq, sizeof(be32));
	struct uobj *umem;

	attr->buf = devx_umem_part(c->file, &ring, false, &umem);
	if (!attr->buf)
		return -EINVAL;
	devx_obj_uses(&rq->obj, umem);
	attr->dbrec = devx_umem_part(c->file, &record, false, &umem);
	if (!attr->dbrec)
		return -EINVAL;
	devx_obj_uses(&rq->obj, umem);
	return 0;
}

/* Uses a pool in place of a ring, which the context then does not have. */
static int devx_rq_use_pool(struct devx_call *c, struct devx_rq *rq, struct wq_attr *attr)
{
	struct uobj *rmp;

	if (devx_named(c->file, &devx_rmp_class, prm_get32(rq->context, RQC_RMP), "rmpn", &rmp) < 0)
		return -EINVAL;
	devx_obj_uses(&rq->obj, rmp);
	attr->srq = devx_srq_of(rmp);
	return 0;
}

static int devx_rq_use_ring(struct devx_call *c, struct devx_rq *rq, struct wq_attr *attr)
{
	const uint8_t *wq = rq->context + RQC_WQ;
	struct uobj *pd;
	int ret = devx_pd(c->file, attr->pdn, &pd);

	if (ret < 0)
		return ret;
	ret = devx_at_most("log_wq_sz", prm_get32(wq, WQ_LOG_SIZE), log2_of(ADAPTER_MAX_QP_WR));
	if (ret == 0)
		ret = devx_at_most("log_wq_stride", prm_get32(wq, WQ_LOG_STRIDE), LOG_STRIDE_MAX);
	if (ret < 0)
		return ret;
	if (attr->wqe_bytes < sizeof(struct wqe_data))
		return devx_refuse(-EINVAL, "log_wq_stride", prm_get32(wq, WQ_LOG_STRIDE),
				   "a receive has 16 bytes (4) at least");
	devx_obj_uses(&rq->obj, pd);
	return devx_rq_use_memory(c, rq, attr);
}

static int devx_rq_make(struct devx_call *c, struct devx_rq *rq)
{
	const uint8_t *rqc = rq->context, *wq = rqc + RQC_WQ;
	struct wq_attr attr = {
		.pdn = prm_get32(wq, WQ_PD),
		.uidx = prm_get32(rqc, RQC_USER_INDEX),
		.wqes = 1u << prm_get32(wq, WQ_LOG_SIZE),
		.wqe_bytes = 1u << prm_get32(wq, WQ_LOG_STRIDE),
		.strip_vlan = !prm_get(rqc, RQC_KEEP_VLAN),
		.silent = !prm_get(rqc, RQC_FLUSH),
		.async = devx_rq_on_async,
		.user = &rq->obj,
	};
	struct uobj *cq = NULL;
	int ret = devx_raw_check_port(c->file);

	if (ret == 0)
		ret = devx_rq_check_features(rqc);
	if (ret == 0)
		ret = devx_named(c->file, &devx_cq_class, prm_get32(rqc, RQC_CQN), "cqn", &cq);
	if (ret < 0)
		return ret;
	if (prm_get(rqc, RQC_STATE) != RAW_STATE_RST)
		return devx_refuse(-EINVAL, "state", prm_get(rqc, RQC_STATE), "it begins with 0");
	devx_obj_uses(&rq->obj, cq);
	attr.cq = devx_cq_of(cq);
	ret = prm_get(rqc, RQC_MEMORY) == RQC_OF_RMP ? devx_rq_use_pool(c, rq, &attr)
						     : devx_rq_use_ring(c, rq, &attr);
	if (ret == 0)
		ret = wq_create(c->file->hca->adapter, &attr, &rq->wq);
	if (ret == 0)
		devx_obj_init(&rq->obj, &devx_rq_class, wq_number(rq->wq));
	return ret;
}

static int devx_create_rq(struct devx_call *c, struct devx_obj **out)
{
	struct devx_rq *rq = calloc(1, sizeof(*rq));
	int ret;

	if (!rq)
		return -ENOMEM;
	memcpy(rq->context, c->in + RAW_CONTEXT, sizeof(rq->context));
	ret = devx_rq_make(c, rq);
	if (ret < 0) {
		devx_obj_release(&rq->obj);
		free(rq);
		return ret;
	}
	prm_set(c->out, CMD_OUT_NUMBER, rq->obj.number);
	*out = &rq->obj;
	return 0;
}

static void devx_rq_free(struct devx_obj *obj)
{
	wq_destroy(container_of(obj, struct devx_rq, obj)->wq);
}

static bool devx_rq_is(struct uobj *obj, uint32_t number)
{
	return obj->type == UOBJ_WQ && wq_number(container_of(obj, struct uwq, uobj)->wq) == number;
}

const struct devx_class devx_rq_class = {
	.is = devx_rq_is, .free = devx_rq_free, .queue = EQE_QUEUE_RQ};

static const enum ib_wq_state wq_states[] = {
	[RAW_STATE_RST] = IB_WQS_RESET, [RAW_STATE_RDY] = IB_WQS_RDY, [RAW_STATE_ERR] = IB_WQS_ERR};

static uint32_t devx_rq_state(struct uobj *obj)
{
	switch (wq_state(devx_wq_of(obj))) {
	case IB_WQS_RESET:
		return RAW_STATE_RST;
	case IB_WQS_RDY:
		return RAW_STATE_RDY;
	default:
		return RAW_STATE_ERR;
	}
}

struct devx_raw_move devx_raw_move_of(const struct devx_call *c)
{
	/* Receive and send queues have their states at the same place in the context. */
	return (struct devx_raw_move){
		.current = prm_get32(c->in, RAW_CURRENT_STATE),
		.next = prm_get32(c->in + RAW_CONTEXT, RQC_STATE),
	};
}

static int devx_modify_rq(struct devx_call *c)
{
	const uint8_t *rqc = c->in + RAW_CONTEXT;
	uint64_t what = prm_get(c->in, RAW_MODIFY_BITMASK);
	struct devx_raw_move move = devx_raw_move_of(c);
	struct wq *wq = devx_wq_of(c->target);
	int ret = 0;

	if (what & ~(uint64_t)(MODIFY_RQ_VLAN | MODIFY_RQ_COUNTER)) {
		log_info("devx: MODIFY_RQ changes state, VLAN stripping and the counter set only");
		return -EOPNOTSUPP;
	}
	if (move.current >= array_size(wq_states) || move.next >= array_size(wq_states) ||
	    move.current == 2 || move.next == 2 || move.current != devx_rq_state(c->target))
		return -EINVAL;
	if (move.next != move.current || move.next != RAW_STATE_RDY)
		ret = wq_modify(wq, wq_states[move.current], wq_states[move.next]);
	if (ret == 0 && what & MODIFY_RQ_VLAN) {
		wq_strip_vlan(wq, !prm_get(rqc, RQC_KEEP_VLAN));
		if (c->target->type == UOBJ_DEVX)
			prm_set(container_of(c->target, struct devx_rq, obj.uobj)->context,
				RQC_KEEP_VLAN, prm_get(rqc, RQC_KEEP_VLAN));
	}
	return ret;
}

static int devx_query_rq(struct devx_call *c)
{
	uint8_t *rqc = c->out + RAW_CONTEXT;

	if (c->target->type == UOBJ_DEVX)
		memcpy(rqc, container_of(c->target, struct devx_rq, obj.uobj)->context, RQC_BYTES);
	prm_set(rqc, RQC_STATE, devx_rq_state(c->target));
	return 0;
}

static const struct devx_op ops[] = {
	DEVX_CREATE(CREATE_RQ, RQ_BYTES, CMD_OUT_BYTES, devx_create_rq),
	DEVX_MODIFY(MODIFY_RQ, &devx_rq_class, RQ_BYTES, CMD_OUT_BYTES, devx_modify_rq),
	DEVX_QUERY(QUERY_RQ, &devx_rq_class, CMD_IN_BYTES, RQ_BYTES, devx_query_rq),
};

const struct devx_family devx_rq_family = DEVX_FAMILY(ops);
