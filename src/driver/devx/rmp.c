// SPDX-License-Identifier: BSD-2-Clause
/*
 * Receive memory pools: mlx5 makes shared receive queues of them.  The commands that query and
 * modify pools also serve the shared receive queues of verbs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "driver/devx/devx.h"
#include "driver/uverbs/objects/objects.h"
#include "prm/cmd_qp.h"
#include "prm/wqe.h"

struct devx_rmp {
	struct devx_obj obj;
	struct srq *srq;
	uint8_t context[RMPC_BYTES]; /* the context that it was made with */
};

struct srq *devx_srq_of(struct uobj *obj)
{
	if (obj->type == UOBJ_SRQ)
		return container_of(obj, struct usrq, uobj)->srq;
	return container_of(obj, struct devx_rmp, obj.uobj)->srq;
}

static void devx_rmp_on_async(void *user, enum ib_event event)
{
	devx_queue_event(user, event);
}

static int devx_rmp_check_features(const uint8_t *rmpc)
{
	static const struct devx_lack lacks[] = {{RMPC_BASIC_WQE, "basic_cyclic_rcv_wqe"}};
	const uint8_t *wq = rmpc + RMPC_WQ;
	int ret = devx_lacks(rmpc, lacks);

	if (ret == 0)
		ret = devx_wq_check_lacks(wq);
	if (ret < 0)
		return ret;
	if (prm_get(wq, WQ_TYPE) > WQ_CYCLIC)
		return devx_refuse(-EOPNOTSUPP, "wq_type", prm_get(wq, WQ_TYPE),
				   "the device has 0 (a list) and 1 (cyclic)");
	return prm_get(rmpc, RMPC_STATE) == RMPC_STATE_RDY
		       ? 0
		       : devx_refuse(-EINVAL, "state", prm_get(rmpc, RMPC_STATE),
				     "it begins with 1 (ready)");
}

static int devx_rmp_check_sizes(const struct srq_attr *attr)
{
	int ret = devx_at_most("log_wq_sz", log2_of(attr->wqe_count),
			       log2_of(ADAPTER_MAX_SRQ_WR + 1));

	if (ret == 0 && attr->wqe_bytes < 32)
		ret = devx_refuse(-EINVAL, "log_wq_stride", log2_of(attr->wqe_bytes),
				  "an entry has 32 bytes (5) at least");
	return ret < 0 ? ret : devx_at_most("lwm", attr->limit, attr->wqe_count);
}

static void devx_rmp_free(struct devx_obj *obj)
{
	if (srq_destroy(container_of(obj, struct devx_rmp, obj)->srq) < 0)
		log_error("devx: a receive memory pool without users is in use");
}

/* Counts shared receive queues of verbs as pools, except those of XRC. */
static bool devx_rmp_is(struct uobj *obj, uint32_t number)
{
	const struct usrq *srq;

	if (obj->type != UOBJ_SRQ)
		return false;
	srq = container_of(obj, struct usrq, uobj);
	return !srq->xrcd && srq_number(srq->srq) == number;
}

const struct devx_class devx_rmp_class = {.is = devx_rmp_is, .free = devx_rmp_free};

static int devx_rmp_make(struct devx_call *c, struct devx_rmp *rmp)
{
	const uint8_t *wq = rmp->context + RMPC_WQ;
	struct srq_attr attr = {
		.pdn = prm_get32(wq, WQ_PD),
		.wqe_count = 1u << prm_get32(wq, WQ_LOG_SIZE),
		.wqe_bytes = 1u << prm_get32(wq, WQ_LOG_STRIDE),
		.cyclic = prm_get(wq, WQ_TYPE) == WQ_CYCLIC,
		.limit = prm_get32(wq, WQ_LWM),
		.async = devx_rmp_on_async,
		.user = &rmp->obj,
	};
	const struct devx_part at = devx_wq_ring(wq), record = devx_wq_record(wq, sizeof(be32));
	struct uobj *pd = NULL, *ring, *dbr;
	int ret = devx_rmp_check_features(rmp->context);

	if (ret == 0)
		ret = devx_rmp_check_sizes(&attr);
	if (ret == 0)
		ret = devx_pd(c->file, attr.pdn, &pd);
	if (ret < 0)
		return ret;
	attr.buf = devx_umem_part(c->file, &at, false, &ring);
	if (!attr.buf)
		return -EINVAL;
	attr.dbrec = devx_umem_part(c->file, &record, false, &dbr);
	if (!attr.dbrec)
		return -EINVAL;
	attr.max_sge = (attr.wqe_bytes - (uint32_t)sizeof(struct wqe_srq_next)) /
		       (uint32_t)sizeof(struct wqe_data);
	ret = srq_create(c->file->hca->adapter, &attr, &rmp->srq);
	if (ret < 0)
		return ret;
	devx_obj_init(&rmp->obj, &devx_rmp_class, srq_number(rmp->srq));
	devx_obj_uses(&rmp->obj, pd);
	devx_obj_uses(&rmp->obj, ring);
	devx_obj_uses(&rmp->obj, dbr);
	return 0;
}

static int devx_create_rmp(struct devx_call *c, struct devx_obj **out)
{
	struct devx_rmp *rmp = calloc(1, sizeof(*rmp));
	int ret;

	if (!rmp)
		return -ENOMEM;
	memcpy(rmp->context, c->in + CREATE_RMP_CONTEXT, sizeof(rmp->context));
	ret = devx_rmp_make(c, rmp);
	if (ret < 0) {
		free(rmp);
		return ret;
	}
	prm_set(c->out, CMD_OUT_NUMBER, rmp->obj.number);
	*out = &rmp->obj;
	return 0;
}

/* Changes the limit; a pool is always ready. */
static int devx_modify_rmp(struct devx_call *c)
{
	const uint8_t *wq = c->in + MODIFY_RMP_CONTEXT + RMPC_WQ;

	if (prm_get(c->in, MODIFY_RMP_BITMASK) & ~(uint64_t)MODIFY_RMP_LWM ||
	    prm_get(c->in, MODIFY_RMP_STATE) != RMPC_STATE_RDY) {
		log_info("devx: MODIFY_RMP changes the limit only");
		return -EOPNOTSUPP;
	}
	if (prm_get(c->in, MODIFY_RMP_BITMASK) & MODIFY_RMP_LWM)
		srq_set_limit(devx_srq_of(c->target), prm_get32(wq, WQ_LWM));
	return 0;
}

static int devx_query_rmp(struct devx_call *c)
{
	uint8_t *rmpc = c->out + QUERY_RMP_CONTEXT;

	if (c->target->type == UOBJ_DEVX)
		memcpy(rmpc, container_of(c->target, struct devx_rmp, obj.uobj)->context,
		       RMPC_BYTES);
	prm_set(rmpc, RMPC_STATE, RMPC_STATE_RDY);
	prm_set(rmpc + RMPC_WQ, WQ_LWM, srq_limit(devx_srq_of(c->target)));
	return 0;
}

static const struct devx_op ops[] = {
	DEVX_CREATE(CREATE_RMP, CREATE_RMP_IN_BYTES, CMD_OUT_BYTES, devx_create_rmp),
	DEVX_MODIFY(MODIFY_RMP, &devx_rmp_class, MODIFY_RMP_IN_BYTES, CMD_OUT_BYTES,
		    devx_modify_rmp),
	DEVX_QUERY(QUERY_RMP, &devx_rmp_class, CMD_IN_BYTES, QUERY_RMP_OUT_BYTES, devx_query_rmp),
};

const struct devx_family devx_rmp_family = DEVX_FAMILY(ops);
