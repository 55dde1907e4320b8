// SPDX-License-Identifier: BSD-2-Clause
/* What the objects of DEVX share: identity, what they were made of, destruction. */
#include <errno.h>
#include <stdlib.h>

#include "driver/devx/devx.h"
#include "driver/uverbs/objects/qp.h"
#include "driver/uverbs/objects/wq.h"

static void (*const free_kind[DEVX_KINDS])(struct devx_obj *obj) = {
	[DEVX_MKEY] = devx_mkey_free,
	[DEVX_PSV] = devx_psv_free,
	[DEVX_PD] = devx_pd_free,
	[DEVX_XRCD] = devx_xrcd_free,
	[DEVX_CQ] = devx_cq_free,
	[DEVX_QP] = devx_qp_free,
	[DEVX_DCT] = devx_dct_free,
	[DEVX_RESERVED_QPNS] = devx_reserved_qpns_free,
	[DEVX_AV_QP_MAPPING] = devx_av_qp_mapping_free,
	[DEVX_RMP] = devx_rmp_free,
};

void devx_obj_init(struct devx_obj *obj, enum devx_kind kind, uint32_t number)
{
	obj->kind = kind;
	obj->number = number;
}

void devx_obj_uses(struct devx_obj *obj, struct uobj *used)
{
	for (unsigned i = 0; i < DEVX_USES; i++)
		if (!obj->uses[i]) {
			obj->uses[i] = used;
			used->users++;
			return;
		}
}

void devx_obj_release(struct devx_obj *obj)
{
	for (unsigned i = 0; i < DEVX_USES && obj->uses[i]; i++)
		obj->uses[i]->users--;
}

static void udevx_free(struct uobj *uobj)
{
	struct devx_obj *obj = container_of(uobj, struct devx_obj, uobj);

	free_kind[obj->kind](obj);
	devx_events_drop(obj);
	devx_obj_release(obj);
}

const struct uobj_class udevx_class = {
	.type = UOBJ_DEVX,
	.free = udevx_free,
};

void devx_discard(struct ufile *f, struct devx_obj *obj)
{
	obj->uobj.file = f;
	udevx_free(&obj->uobj);
	free(obj);
}

/* Queues of raw packet QPs have numbers of their own kinds, see uraw_numbers. */
static bool qp_is(const struct uqp *qp, enum devx_kind kind, uint32_t number)
{
	if (qp->ind_table)
		return false;
	if (qp->type == IB_QPT_RAW_PACKET)
		return kind == DEVX_SQ || kind == DEVX_RQ || kind == DEVX_TIR || kind == DEVX_TIS
			       ? number == qp_number(qp->qp)
			       : false;
	return kind == (qp->type == IB_QPT_DCT ? DEVX_DCT : DEVX_QP) && number == qp_number(qp->qp);
}

bool devx_is(struct uobj *obj, enum devx_kind kind, uint32_t number)
{
	switch (obj->type) {
	case UOBJ_DEVX: {
		const struct devx_obj *d = container_of(obj, struct devx_obj, uobj);

		return d->kind == kind && d->number == number;
	}
	case UOBJ_PD:
		return kind == DEVX_PD && container_of(obj, struct upd, uobj)->pdn == number;
	case UOBJ_CQ:
		return kind == DEVX_CQ &&
		       cq_number(container_of(obj, struct ucq, uobj)->cq) == number;
	case UOBJ_SRQ: {
		const struct usrq *srq = container_of(obj, struct usrq, uobj);

		return kind == (srq->xrcd ? DEVX_XRC_SRQ : DEVX_RMP) &&
		       srq_number(srq->srq) == number;
	}
	case UOBJ_WQ:
		return kind == DEVX_RQ &&
		       wq_number(container_of(obj, struct uwq, uobj)->wq) == number;
	case UOBJ_QP:
		return qp_is(container_of(obj, struct uqp, uobj), kind, number);
	default:
		return false;
	}
}

struct uobj *devx_find(struct ufile *f, enum devx_kind kind, uint32_t number)
{
	for (uint32_t handle = 0; handle < f->objects.limit; handle++) {
		struct uobj *obj = uobj_any(f, handle);

		if (obj && devx_is(obj, kind, number))
			return obj;
	}
	return NULL;
}
