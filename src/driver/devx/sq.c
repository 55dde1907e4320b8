// SPDX-License-Identifier: BSD-2-Clause
/*
 * Send queues made by DEVX: raw packet queue pairs that receive nothing.  With a page of registers
 * they have a doorbell record, as queues of verbs do; with a region of a DPA the bell carries the
 * index.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hazard.h"
#include "base/log.h"
#include "driver/devx/devx.h"
#include "driver/devx/raw.h"
#include "driver/uverbs/objects/objects.h"
#include "prm/wqe.h"

struct devx_sq {
	struct devx_obj obj;
	struct qp *qp;
	struct doorbell_user bell;
	uint8_t context[SQC_BYTES];
};

static void devx_sq_on_async(void *user, enum ib_event event)
{
	devx_queue_event(user, event);
}

static void devx_sq_rung(struct doorbell_user *u)
{
	hazard_enter();
	qp_doorbell(container_of(u, struct devx_sq, bell)->qp);
	hazard_leave();
}

/* Refuses the features that this device does not have. */
static int devx_sq_check_features(const uint8_t *sqc)
{
	static const struct devx_lack lacks[] = {
		{SQC_RESERVED_KEY, "rlky"}, {SQC_REG_UMR, "reg_umr"},
		{SQC_SWP, "allow_swp"},	    {SQC_HAIRPIN, "hairpin"},
		{SQC_NON_WIRE, "non_wire"}, {SQC_PACING, "packet_pacing_rate_limit_index"},
	};
	int ret = devx_lacks(sqc, lacks);

	if (ret == 0)
		ret = devx_raw_check_ring(sqc + SQC_WQ);
	if (ret == 0 && !uverbs_may_raw()) {
		log_info("devx: send queues need CAP_NET_RAW");
		return explained(-EOPNOTSUPP, "send queues need CAP_NET_RAW");
	}
	return ret;
}

/* Where bells carry the index, nobody looks at the record; a program may give one all the same. */
static int devx_sq_use_memory(struct devx_call *c, struct devx_sq *sq, struct qp_create_attr *attr)
{
	const uint8_t *wq = sq->context + SQC_WQ;
	const struct devx_part ring = devx_wq_ring(wq),
			       record = devx_wq_record(wq, 2 * sizeof(be32));
	struct uobj *umem;

	attr->sq_buf = devx_umem_part(c->file, &ring, false, &umem);
	if (!attr->sq_buf)
		return -EINVAL;
	devx_obj_uses(&sq->obj, umem);
	if (attr->region && !record.umem_id)
		return 0;
	attr->dbrec = devx_umem_part(c->file, &record, false, &umem);
	if (!attr->dbrec)
		return -EINVAL;
	devx_obj_uses(&sq->obj, umem);
	return 0;
}

static int devx_sq_check_values(const uint8_t *sqc)
{
	const uint8_t *wq = sqc + SQC_WQ;

	if (prm_get(sqc, SQC_TIS_COUNT) != 1)
		return devx_refuse(-EINVAL, "tis_lst_sz", prm_get(sqc, SQC_TIS_COUNT),
				   "a queue sends through one TIS");
	if (prm_get(sqc, SQC_STATE) != RAW_STATE_RST)
		return devx_refuse(-EINVAL, "state", prm_get(sqc, SQC_STATE), "it begins with 0");
	if (prm_get32(wq, WQ_LOG_STRIDE) != log2_of(WQE_BLOCK))
		return devx_refuse(-EINVAL, "log_wq_stride", prm_get(wq, WQ_LOG_STRIDE),
				   "blocks of send queues have 64 bytes (6)");
	return devx_at_most("log_wq_sz", prm_get32(wq, WQ_LOG_SIZE), log2_of(ADAPTER_MAX_QP_WR));
}

/* Finds the objects that the queue sends through, completes to and is rung through. */
static int devx_sq_use_objects(struct devx_call *c, struct devx_sq *sq, struct qp_create_attr *attr)
{
	const uint8_t *sqc = sq->context, *wq = sqc + SQC_WQ;
	struct uobj *tis, *cq, *pd, *duar;

	if (devx_sq_check_values(sqc) < 0 ||
	    devx_named(c->file, &devx_tis_class, prm_get32(sqc, SQC_TIS), "tis_num_0", &tis) < 0 ||
	    devx_named(c->file, &devx_cq_class, prm_get32(sqc, SQC_CQN), "cqn", &cq) < 0 ||
	    devx_pd(c->file, attr->pdn, &pd) < 0 ||
	    devx_uar(c->file, prm_get32(wq, WQ_UAR_PAGE), &duar) < 0)
		return -EINVAL;
	devx_obj_uses(&sq->obj, pd);
	devx_obj_uses(&sq->obj, tis);
	devx_obj_uses(&sq->obj, cq);
	attr->send_cq = attr->recv_cq = devx_cq_of(cq);
	attr->domain = devx_tis_domain(tis);
	if (duar) {
		devx_obj_uses(&sq->obj, duar);
		attr->region = prm_get32(wq, WQ_UAR_PAGE);
	}
	return 0;
}

static int devx_sq_make(struct devx_call *c, struct devx_sq *sq)
{
	const uint8_t *sqc = sq->context, *wq = sqc + SQC_WQ;
	struct qp_create_attr attr = {
		.type = IB_QPT_RAW_PACKET,
		.pdn = prm_get32(wq, WQ_PD),
		.uidx = prm_get32(sqc, SQC_USER_INDEX),
		.sq_blocks = 1u << prm_get32(wq, WQ_LOG_SIZE),
		.silent = !prm_get(sqc, SQC_FLUSH),
		.multi_packet = prm_get(sqc, SQC_MULTI_PACKET),
		.master = prm_get(sqc, SQC_CD_MASTER),
		.async = devx_sq_on_async,
		.user = &sq->obj,
	};
	int ret = devx_raw_check_port(c->file);

	if (ret == 0)
		ret = devx_sq_check_features(sqc);
	if (ret == 0)
		ret = devx_sq_use_objects(c, sq, &attr);
	if (ret == 0)
		ret = devx_sq_use_memory(c, sq, &attr);
	if (ret == 0)
		ret = qp_create(c->file->hca->adapter, &attr, &sq->qp);
	if (ret == 0)
		devx_obj_init(&sq->obj, &devx_sq_class, qp_number(sq->qp));
	return ret;
}

static int devx_create_sq(struct devx_call *c, struct devx_obj **out)
{
	struct devx_sq *sq = calloc(1, sizeof(*sq));
	int ret;

	if (!sq)
		return -ENOMEM;
	memcpy(sq->context, c->in + RAW_CONTEXT, sizeof(sq->context));
	ret = devx_sq_make(c, sq);
	if (ret < 0) {
		devx_obj_release(&sq->obj);
		free(sq);
		return ret;
	}
	doorbell_user_init(&sq->bell, DOORBELL_SQ,
			   uuar_regs(c->file, prm_get32(sq->context + SQC_WQ, WQ_UAR_PAGE)),
			   devx_sq_rung);
	/* No hook announces what a program of DEVX stores. */
	doorbell_taken_over(&sq->bell);
	prm_set(c->out, CMD_OUT_NUMBER, sq->obj.number);
	*out = &sq->obj;
	return 0;
}

static void devx_sq_free(struct devx_obj *obj)
{
	struct devx_sq *sq = container_of(obj, struct devx_sq, obj);

	doorbell_user_release(&sq->bell);
	qp_destroy(sq->qp);
}

const struct devx_class devx_sq_class = {.free = devx_sq_free, .queue = EQE_QUEUE_SQ};

static uint32_t devx_sq_state(const struct devx_sq *sq)
{
	struct qp_attr attr;

	qp_query(sq->qp, &attr);
	switch (attr.state) {
	case IB_QPS_RESET:
		return RAW_STATE_RST;
	case IB_QPS_SQE:
	case IB_QPS_ERR:
		return RAW_STATE_ERR;
	default:
		return RAW_STATE_RDY;
	}
}

/* A queue pair becomes ready in three steps, so this takes all of them. */
static int devx_sq_start(struct qp *qp)
{
	struct qp_attr attr = {.state = IB_QPS_INIT, .port_num = 1};
	int ret = qp_modify(qp, &attr, IB_QP_STATE | IB_QP_PORT);

	attr.state = IB_QPS_RTR;
	if (ret == 0)
		ret = qp_modify(qp, &attr, IB_QP_STATE);
	attr.state = IB_QPS_RTS;
	if (ret == 0)
		ret = qp_modify(qp, &attr, IB_QP_STATE);
	return ret;
}

static int devx_sq_move(struct devx_sq *sq, struct devx_raw_move move)
{
	struct qp_attr attr = {
		.state = move.next == RAW_STATE_RST ? IB_QPS_RESET : IB_QPS_ERR,
	};

	if (move.current != devx_sq_state(sq))
		return -EINVAL;
	if (move.next == RAW_STATE_RST || move.next == RAW_STATE_ERR)
		return qp_modify(sq->qp, &attr, IB_QP_STATE);
	if (move.next != RAW_STATE_RDY || move.current == RAW_STATE_ERR)
		return -EINVAL;
	return move.current == RAW_STATE_RDY ? 0 : devx_sq_start(sq->qp);
}

static int devx_modify_sq(struct devx_call *c)
{
	struct devx_sq *sq = container_of(c->target, struct devx_sq, obj.uobj);
	struct devx_raw_move move = devx_raw_move_of(c);
	int ret;

	if (prm_get(c->in, RAW_MODIFY_BITMASK)) {
		log_info("devx: MODIFY_SQ changes the state only");
		return -EOPNOTSUPP;
	}
	ret = devx_sq_move(sq, move);
	/* In the error state a store to the doorbell means that there is something to flush. */
	if (ret == 0)
		doorbell_live(&sq->bell, move.next != RAW_STATE_RST);
	return ret;
}

static int devx_query_sq(struct devx_call *c)
{
	const struct devx_sq *sq = container_of(c->target, struct devx_sq, obj.uobj);

	memcpy(c->out + RAW_CONTEXT, sq->context, SQC_BYTES);
	prm_set(c->out + RAW_CONTEXT, SQC_STATE, devx_sq_state(sq));
	return 0;
}

static const struct devx_op ops[] = {
	DEVX_CREATE(CREATE_SQ, SQ_BYTES, CMD_OUT_BYTES, devx_create_sq),
	DEVX_MODIFY(MODIFY_SQ, &devx_sq_class, SQ_BYTES, CMD_OUT_BYTES, devx_modify_sq),
	DEVX_QUERY(QUERY_SQ, &devx_sq_class, CMD_IN_BYTES, SQ_BYTES, devx_query_sq),
};

const struct devx_family devx_sq_family = DEVX_FAMILY(ops);
