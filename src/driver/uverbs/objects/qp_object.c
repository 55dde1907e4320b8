// SPDX-License-Identifier: BSD-2-Clause
/* Handles of queue pairs: their class, the counts of users, OPEN_QP and destruction. */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>

#include "base/hazard.h"
#include "driver/uverbs/objects/families.h"
#include "driver/uverbs/objects/qp.h"
#include "driver/uverbs/objects/uar.h"
#include "driver/uverbs/objects/wq.h"
#include "driver/uverbs/objects/xrc.h"

void uqp_count_users(struct uqp *qp, int by)
{
	struct uobj *used[] = {
		qp->pd ? &qp->pd->uobj : NULL,
		qp->send_cq ? &qp->send_cq->uobj : NULL,
		qp->recv_cq ? &qp->recv_cq->uobj : NULL,
		qp->srq ? &qp->srq->uobj : NULL,
		qp->xrcd ? &qp->xrcd->uobj : NULL,
		qp->ind_table ? &qp->ind_table->uobj : NULL,
	};

	for (size_t i = 0; i < array_size(used); i++)
		if (used[i])
			used[i]->users += (uint32_t)by;
}

static void uqp_rung(struct doorbell_user *u)
{
	hazard_enter();
	qp_doorbell(container_of(u, struct uqp, bell)->qp);
	hazard_leave();
}

void uqp_bell(struct uqp *qp, struct ufile *f, uint32_t uar_page)
{
	doorbell_user_init(&qp->bell, DOORBELL_SQ, uuar_regs(f, uar_page), uqp_rung);
}

void uqp_destroy_device(struct hca *hca, struct uqp *qp)
{
	if (qp->target)
		xrc_target_close(qp, hca);
	else
		qp_destroy(qp->qp);
}

static void uqp_free(struct uobj *obj)
{
	struct uqp *qp = container_of(obj, struct uqp, uobj);

	doorbell_user_release(&qp->bell);
	uqp_destroy_device(obj->file->hca, qp);
	uqp_count_users(qp, -1);
}

static struct qp *uqp_takes_frames(struct uobj *obj)
{
	const struct uqp *qp = container_of(obj, struct uqp, uobj);

	return qp->type == IB_QPT_RAW_PACKET ? qp->qp : NULL;
}

const struct uobj_class uqp_class = {
	.type = UOBJ_QP,
	.free = uqp_free,
	.takes_frames = uqp_takes_frames,
};

/* Gives out a handle of a target QP that exists. */
static int cmd_open_qp(struct ureq *req)
{
	struct ib_uverbs_open_qp cmd;
	struct ib_uverbs_create_qp_resp resp = {0};
	struct hca *hca = req->file->hca;
	struct uobj *obj;
	struct uqp *qp;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	if (cmd.qp_type != IB_QPT_XRC_TGT)
		return -EINVAL;
	obj = uobj_find(req->file, UOBJ_XRCD, cmd.pd_handle, &ret);
	if (!obj)
		return -EINVAL;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->uobj.user_handle = cmd.user_handle;
	qp->type = IB_QPT_XRC_TGT;
	qp->xrcd = container_of(obj, struct uxrcd, uobj);
	uobj_bind_async(&qp->uobj, req->file, NULL);
	ret = xrc_target_open(qp, hca, qp->xrcd, cmd.qpn);
	if (ret < 0)
		goto free_qp;
	ret = uobj_publish(req->file, &qp->uobj, &uqp_class);
	if (ret < 0)
		goto close_target;
	obj->users++;
	resp.qp_handle = qp->uobj.handle;
	resp.qpn = cmd.qpn;
	ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		(void)uobj_destroy(&qp->uobj, NULL);
	return ret;

close_target:
	xrc_target_close(qp, hca);
free_qp:
	uobj_unbind_async(&qp->uobj);
	free(qp);
	return ret;
}

static int uqp_destroy(struct uobj *obj, struct ib_uverbs_destroy_qp_resp *resp)
{
	struct uevents events = {0};
	int ret;

	/* it has to leave its multicast groups first */
	if (container_of(obj, struct uqp, uobj)->groups)
		return -EBUSY;
	ret = uobj_destroy(obj, &events);
	if (ret == 0)
		resp->events_reported = events.async;
	return ret;
}

static int method_qp_destroy(struct ureq *req)
{
	struct ib_uverbs_destroy_qp_resp resp;
	int ret = uqp_destroy(ureq_obj(req, UVERBS_ATTR_DESTROY_QP_HANDLE), &resp);

	return ret < 0 ? ret : ureq_put(req, UVERBS_ATTR_DESTROY_QP_RESP, &resp, sizeof(resp));
}

static int cmd_destroy_qp(struct ureq *req)
{
	struct ib_uverbs_destroy_qp cmd;
	struct ib_uverbs_destroy_qp_resp resp;
	struct uobj *obj;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	obj = uobj_find(req->file, UOBJ_QP, cmd.qp_handle, &ret);
	if (!obj)
		return ret;
	ret = uqp_destroy(obj, &resp);
	return ret < 0 ? ret : ubuf_write(&req->core_out, &resp, sizeof(resp));
}

/* ---- what requests reach this family ---- */

static const struct attr_spec qp_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_QP_HANDLE, IDR(UOBJ_QP)},
	{UVERBS_ATTR_DESTROY_QP_RESP, OUT(sizeof(struct ib_uverbs_destroy_qp_resp))},
};

static const struct method_spec methods[] = {
	METHOD(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, method_qp_destroy, qp_destroy_attrs),
};

static const struct command_spec commands[] = {
	CMD_RESP_UHW(OPEN_QP, cmd_open_qp, ib_uverbs_open_qp, ib_uverbs_create_qp_resp),
	CMD_RESP(DESTROY_QP, cmd_destroy_qp, ib_uverbs_destroy_qp, ib_uverbs_destroy_qp_resp),
};

const struct uverbs_family uqp_object_family = {METHODS(methods), COMMANDS(commands)};
