// SPDX-License-Identifier: BSD-2-Clause
/*
 * Targets of dynamically connected transport made by DEVX.  CREATE_DCT does at once what verbs do
 * by creation and two transitions.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "driver/devx/devx.h"
#include "driver/uverbs/objects/objects.h"
#include "prm/cmd_qp.h"

struct devx_dct {
	struct devx_obj obj;
	struct qp *qp;
	uint8_t created[DCTC_BYTES]; /* what a query repeats */
};

static const struct {
	struct prm_field field;
	uint32_t access;
} rights[] = {
	{DCTC_RRE, IB_ACCESS_REMOTE_READ},
	{DCTC_RWE, IB_ACCESS_REMOTE_WRITE},
	{DCTC_RAE, IB_ACCESS_REMOTE_ATOMIC},
};

static void devx_dct_on_async(void *user, enum ib_event event)
{
	devx_queue_event(user, event);
}

/* Finds the object of that number, and lets the target use it. */
static struct uobj *devx_dct_use(struct devx_call *c, struct devx_dct *d,
				 const struct devx_class *class, struct prm_field number)
{
	struct uobj *obj = devx_find(c->file, class, prm_get32(d->created, number));

	if (obj)
		devx_obj_uses(&d->obj, obj);
	return obj;
}

static int devx_dct_activate(struct devx_call *c, struct devx_dct *d)
{
	const uint8_t *dctc = d->created;
	struct qp_attr attr = {
		.state = IB_QPS_INIT,
		.port_num = (uint8_t)prm_get(dctc, DCTC_PORT),
		.pkey_index = (uint16_t)prm_get(dctc, DCTC_PKEY_INDEX),
		.path_mtu = (enum ib_mtu)prm_get(dctc, DCTC_MTU),
		.min_rnr_timer = (uint8_t)prm_get(dctc, DCTC_MIN_RNR_NAK),
		/* each initiator has its address; this says how the target marks answers */
		.ah = {.is_global = ufile_port(c->file)->ethernet,
		       .sgid_index = (uint8_t)prm_get(dctc, DCTC_SRC_INDEX),
		       .hop_limit = (uint8_t)prm_get(dctc, DCTC_HOP_LIMIT),
		       .traffic_class = (uint8_t)prm_get(dctc, DCTC_TCLASS),
		       .flow_label = prm_get32(dctc, DCTC_FLOW_LABEL),
		       .port_num = ADAPTER_QP_PORTS},
	};
	int ret;

	for (size_t i = 0; i < array_size(rights); i++)
		if (prm_get(dctc, rights[i].field))
			attr.access |= rights[i].access;
	if (attr.pkey_index >= subnet_port_pkeys(ufile_port(c->file)))
		return -EINVAL;
	ret = qp_modify(d->qp, &attr,
			IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS);
	if (ret < 0)
		return ret;
	attr.state = IB_QPS_RTR;
	return qp_modify(d->qp, &attr,
			 IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_MIN_RNR_TIMER);
}

static int devx_dct_make(struct devx_call *c, struct devx_dct *d)
{
	struct uobj *pd = devx_dct_use(c, d, &devx_pd_class, DCTC_PD);
	struct uobj *cq = devx_dct_use(c, d, &devx_cq_class, DCTC_CQN);
	struct uobj *srq = devx_dct_use(c, d, &devx_rmp_class, DCTC_SRQN);
	struct qp_create_attr attr = {
		.type = IB_QPT_DCT,
		.pdn = prm_get32(d->created, DCTC_PD),
		.uidx = prm_get32(d->created, DCTC_USER_INDEX),
		.dc_key = prm_get(d->created, DCTC_ACCESS_KEY),
		.async = devx_dct_on_async,
		.user = &d->obj,
	};
	int ret;

	if (!pd || !cq || !srq)
		return -EINVAL;
	attr.recv_cq = devx_cq_of(cq);
	attr.srq = devx_srq_of(srq);
	ret = qp_create(c->file->hca->adapter, &attr, &d->qp);
	if (ret < 0)
		return ret;
	ret = devx_dct_activate(c, d);
	if (ret < 0)
		qp_destroy(d->qp);
	return ret;
}

static void devx_dct_free(struct devx_obj *obj)
{
	qp_destroy(container_of(obj, struct devx_dct, obj)->qp);
}

static bool devx_dct_is(struct uobj *obj, uint32_t number)
{
	const struct uqp *qp;

	if (obj->type != UOBJ_QP)
		return false;
	qp = container_of(obj, struct uqp, uobj);
	return !qp->ind_table && qp->type == IB_QPT_DCT && qp_number(qp->qp) == number;
}

static const struct devx_class devx_dct_class = {.is = devx_dct_is, .free = devx_dct_free};

static int devx_create_dct(struct devx_call *c, struct devx_obj **out)
{
	struct devx_dct *d = calloc(1, sizeof(*d));
	int ret;

	if (!d)
		return -ENOMEM;
	memcpy(d->created, c->in + CREATE_DCT_CONTEXT, sizeof(d->created));
	ret = devx_dct_make(c, d);
	if (ret < 0) {
		devx_obj_release(&d->obj);
		free(d);
		return ret;
	}
	devx_obj_init(&d->obj, &devx_dct_class, qp_number(d->qp));
	prm_set(c->out, CMD_OUT_NUMBER, d->obj.number);
	*out = &d->obj;
	return 0;
}

/* For a target of verbs this answers little, because the library knows the rest. */
static int devx_query_dct(struct devx_call *c)
{
	uint8_t *dctc = c->out + QUERY_DCT_CONTEXT;
	struct qp_attr attr;
	struct qp *qp;

	if (c->target->type == UOBJ_QP) {
		qp = container_of(c->target, struct uqp, uobj)->qp;
	} else {
		const struct devx_dct *d = container_of(c->target, struct devx_dct, obj.uobj);

		qp = d->qp;
		memcpy(dctc, d->created, sizeof(d->created));
	}
	qp_query(qp, &attr);
	prm_set(dctc, DCTC_STATE, 0);
	prm_set(dctc, DCTC_MTU, attr.path_mtu);
	prm_set(dctc, DCTC_PORT, attr.port_num);
	prm_set(dctc, DCTC_PKEY_INDEX, attr.pkey_index);
	prm_set(dctc, DCTC_MIN_RNR_NAK, attr.min_rnr_timer);
	for (size_t i = 0; i < array_size(rights); i++)
		prm_set(dctc, rights[i].field, (attr.access & rights[i].access) != 0);
	return 0;
}

static const struct devx_op ops[] = {
	DEVX_CREATE(CREATE_DCT, CREATE_DCT_IN_BYTES, CMD_OUT_BYTES, devx_create_dct),
	DEVX_QUERY(QUERY_DCT, &devx_dct_class, CMD_IN_BYTES, QUERY_DCT_OUT_BYTES, devx_query_dct),
};

const struct devx_family devx_dct_family = DEVX_FAMILY(ops);
