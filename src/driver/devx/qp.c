// SPDX-License-Identifier: BSD-2-Clause
/* Queue pairs made by DEVX: CREATE_QP. */
#include "driver/devx/qp.h"
#include "driver/devx/refuse.h"
#include "driver/uverbs/objects/qp.h"
#include "driver/uverbs/objects/uar.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hazard.h"
#include "prm/cmd_qp.h"
#include "prm/wqe.h"

static_assert(sizeof(((struct devx_qp *)0)->created) == QPC_BYTES, "a QP context");

static void devx_qp_on_async(void *user, enum ib_event event)
{
	devx_queue_event(user, event);
}

static void devx_qp_rung(struct doorbell_user *u)
{
	hazard_enter();
	qp_doorbell(container_of(u, struct devx_qp, bell)->qp);
	hazard_leave();
}

struct devx_qp_target devx_qp_target(struct uobj *obj)
{
	if (obj->type == UOBJ_QP) {
		struct uqp *qp = container_of(obj, struct uqp, uobj);

		return (struct devx_qp_target){qp->qp, &qp->bell, qp->type, NULL};
	}
	struct devx_qp *qp = container_of(obj, struct devx_qp, obj.uobj);

	return (struct devx_qp_target){qp->qp, &qp->bell, qp->type, qp->created};
}

static int devx_qp_service(const uint8_t *qpc, enum ib_qp_type *type)
{
	switch (prm_get32(qpc, QPC_SERVICE)) {
	case QPC_SERVICE_RC:
		*type = IB_QPT_RC;
		return 0;
	case QPC_SERVICE_UC:
		*type = IB_QPT_UC;
		return 0;
	case QPC_SERVICE_UD:
		*type = IB_QPT_UD;
		return 0;
	case QPC_SERVICE_DCI:
		*type = IB_QPT_DCI;
		return 0;
	default:
		return devx_refuse(-EOPNOTSUPP, "st", prm_get32(qpc, QPC_SERVICE),
				   "the device has RC (0), UC (1), UD (3) and DCI (5)");
	}
}

static int devx_qp_check_features(const uint8_t *qpc)
{
	static const struct devx_lack lacks[] = {
		{QPC_WQ_SIGNATURE, "wq_signature"},
		{QPC_OFFLOAD, "offload_type"},
		{QPC_PAGE_OFFSET, "page_offset"},
		{QPC_DRAIN_SIGERR, "drain_sigerr"}, /* INIT2INIT_QP switches it on */
	};
	int ret = devx_lacks(qpc, lacks);

	if (ret < 0)
		return ret;
	if (prm_get(qpc, QPC_SLAVE_RECEIVE) && prm_get32(qpc, QPC_RQ_TYPE) != QPC_RQ_REGULAR)
		return devx_refuse(-EINVAL, "cd_slave_receive", 1,
				   "a master enables receives of a queue pair's own queue, and "
				   "none of a shared one");
	return 0;
}

static int devx_qp_check_streams(const uint8_t *qpc)
{
	if (prm_get32(qpc, QPC_SERVICE) != QPC_SERVICE_DCI)
		return 0;
	return devx_at_most("log_num_dci_errored_streams", prm_get32(qpc, QPC_LOG_DCI_ERRORED),
			    ADAPTER_LOG_MAX_DC_ERRORED);
}

/* Finds the CQ and makes sure that it stays. */
static int devx_qp_use_cq(struct devx_call *c, struct devx_qp *qp, const char *field, uint32_t cqn,
			  struct cq **out)
{
	struct uobj *obj;

	if (devx_named(c->file, &devx_cq_class, cqn, field, &obj) < 0)
		return -EINVAL;
	devx_obj_uses(&qp->obj, obj);
	*out = devx_cq_of(obj);
	return 0;
}

static int devx_qp_use_queues(struct devx_call *c, struct devx_qp *qp, struct qp_create_attr *attr)
{
	const uint8_t *qpc = qp->created;
	uint32_t rq_type = prm_get32(qpc, QPC_RQ_TYPE);
	bool sends = !prm_get(qpc, QPC_NO_SQ), receives = rq_type != QPC_RQ_NONE;
	struct uobj *obj;
	int ret = 0;

	/* whatever its context says about receives */
	if (qp->type == IB_QPT_DCI)
		receives = false;
	if (!sends && !receives)
		return devx_refuse(-EINVAL, "no_sq", 1,
				   "a queue pair that receives nothing has to send");
	if (sends)
		ret = devx_qp_use_cq(c, qp, "cqn_snd", prm_get32(qpc, QPC_CQN_SEND),
				     &attr->send_cq);
	if (ret == 0 && receives)
		ret = devx_qp_use_cq(c, qp, "cqn_rcv", prm_get32(qpc, QPC_CQN_RECV),
				     &attr->recv_cq);
	if (qp->type == IB_QPT_DCI)
		return ret;
	if (ret < 0)
		return ret;
	/* The missing side never completes anything. */
	if (!sends)
		attr->send_cq = attr->recv_cq;
	if (!receives)
		attr->recv_cq = attr->send_cq;
	if (rq_type != QPC_RQ_SRQ)
		return 0;
	if (devx_named(c->file, &devx_rmp_class, prm_get32(qpc, QPC_SRQN), "srqn_rmpn_xrqn", &obj) <
	    0)
		return -EINVAL;
	devx_obj_uses(&qp->obj, obj);
	attr->srq = devx_srq_of(obj);
	return 0;
}

/* Finds the rings: the receive ring first, the send ring right behind it. */
static int devx_qp_use_memory(struct devx_call *c, struct devx_qp *qp, struct qp_create_attr *attr)
{
	const uint8_t *qpc = qp->created;
	struct devx_part ring = {
		.field = "wq_umem_offset",
		.umem_id = prm_get32(c->in, CREATE_QP_UMEM),
		.offset = prm_get(c->in, CREATE_QP_OFFSET),
	};
	const struct devx_part record = {
		.field = "dbr_addr",
		.umem_id = prm_get32(qpc, QPC_DBR_UMEM),
		.offset = prm_get(qpc, QPC_DBR_ADDR),
		.length = 2 * sizeof(be32),
	};
	uint64_t rq_bytes = 0, sq_bytes = 0;
	struct uobj *umem;
	uint8_t *rings;

	if (prm_get32(qpc, QPC_RQ_TYPE) == QPC_RQ_REGULAR && qp->type != IB_QPT_DCI) {
		attr->rq_wqes = 1u << prm_get32(qpc, QPC_LOG_RQ_SIZE);
		attr->rq_wqe_bytes = 16u << prm_get32(qpc, QPC_LOG_RQ_STRIDE);
		attr->max_recv_sge = attr->rq_wqe_bytes / (uint32_t)sizeof(struct wqe_data);
		rq_bytes = (uint64_t)attr->rq_wqes * attr->rq_wqe_bytes;
	}
	if (!prm_get(qpc, QPC_NO_SQ)) {
		attr->sq_blocks = 1u << prm_get32(qpc, QPC_LOG_SQ_SIZE);
		sq_bytes = (uint64_t)attr->sq_blocks * WQE_BLOCK;
	}
	if (rq_bytes + sq_bytes) {
		ring.length = rq_bytes + sq_bytes;
		rings = devx_umem_part(c->file, &ring, false, &umem);
		if (!rings)
			return -EINVAL;
		devx_obj_uses(&qp->obj, umem);
		attr->rq_buf = rings;
		attr->sq_buf = rings + rq_bytes;
	}
	attr->dbrec = devx_umem_part(c->file, &record, false, &umem);
	if (!attr->dbrec)
		return -EINVAL;
	devx_obj_uses(&qp->obj, umem);
	return 0;
}

static int devx_qp_make(struct devx_call *c, struct devx_qp *qp)
{
	const uint8_t *qpc = qp->created;
	struct qp_create_attr attr = {
		.pdn = prm_get32(qpc, QPC_PD),
		.uidx = prm_get32(qpc, QPC_USER_INDEX),
		.block_self_mcast = prm_get(qpc, QPC_BLOCK_LB_MC),
		.master = prm_get(qpc, QPC_MASTER),
		.slave_send = prm_get(qpc, QPC_SLAVE_SEND),
		.slave_receive = prm_get(qpc, QPC_SLAVE_RECEIVE),
		.domain = c->file,
		.async = devx_qp_on_async,
		.user = &qp->obj,
	};
	struct uobj *pd = NULL, *duar = NULL;
	int ret = devx_qp_service(qpc, &qp->type);

	if (ret == 0)
		ret = devx_qp_check_features(qpc);
	if (ret == 0)
		ret = devx_qp_check_streams(qpc);
	if (ret == 0)
		ret = devx_pd(c->file, attr.pdn, &pd);
	if (ret < 0)
		return ret;
	devx_obj_uses(&qp->obj, pd);
	if (!prm_get(qpc, QPC_NO_SQ) && devx_uar(c->file, prm_get32(qpc, QPC_UAR_PAGE), &duar) < 0)
		return -EINVAL;
	/* The bells of this queue pair carry the send index. */
	if (duar) {
		devx_obj_uses(&qp->obj, duar);
		attr.region = prm_get32(qpc, QPC_UAR_PAGE);
	}
	attr.type = qp->type;
	if (qp->type == IB_QPT_DCI) {
		attr.log_dc_errored = (uint8_t)prm_get(qpc, QPC_LOG_DCI_ERRORED);
		attr.dc_streams = attr.log_dc_errored || prm_get(qpc, QPC_LOG_DCI_STREAMS);
	}
	ret = devx_qp_use_queues(c, qp, &attr);
	if (ret == 0)
		ret = devx_qp_use_memory(c, qp, &attr);
	return ret < 0 ? ret : qp_create(c->file->hca->adapter, &attr, &qp->qp);
}

static void devx_qp_free(struct devx_obj *obj)
{
	struct devx_qp *qp = container_of(obj, struct devx_qp, obj);

	doorbell_user_release(&qp->bell);
	qp_destroy(qp->qp);
}

/* A raw packet QP is made of queues, which have numbers of their own kinds (uraw_numbers). */
static bool devx_qp_is(struct uobj *obj, uint32_t number)
{
	const struct uqp *qp;

	if (obj->type != UOBJ_QP)
		return false;
	qp = container_of(obj, struct uqp, uobj);
	return !qp->ind_table && qp->type != IB_QPT_DCT && qp->type != IB_QPT_RAW_PACKET &&
	       qp_number(qp->qp) == number;
}

const struct devx_class devx_qp_class = {.is = devx_qp_is, .free = devx_qp_free};

static int devx_create_qp(struct devx_call *c, struct devx_obj **out)
{
	struct devx_qp *qp = calloc(1, sizeof(*qp));
	int ret;

	if (!qp)
		return -ENOMEM;
	memcpy(qp->created, c->in + CREATE_QP_CONTEXT, sizeof(qp->created));
	ret = devx_qp_make(c, qp);
	if (ret < 0) {
		devx_obj_release(&qp->obj);
		free(qp);
		return ret;
	}
	devx_obj_init(&qp->obj, &devx_qp_class, qp_number(qp->qp));
	doorbell_user_init(&qp->bell, DOORBELL_SQ,
			   uuar_regs(c->file, prm_get32(qp->created, QPC_UAR_PAGE)), devx_qp_rung);
	/* No hook announces what a program of DEVX stores. */
	doorbell_taken_over(&qp->bell);
	prm_set(c->out, CMD_OUT_NUMBER, qp->obj.number);
	*out = &qp->obj;
	return 0;
}

static const struct devx_op ops[] = {
	DEVX_CREATE(CREATE_QP, CREATE_QP_IN_BYTES, CMD_OUT_BYTES, devx_create_qp),
};

const struct devx_family devx_qp_family = DEVX_FAMILY(ops);
