// SPDX-License-Identifier: BSD-2-Clause
/* Shared receive queues, by ioctl and by command: basic and XRC; tag matching is refused. */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>

#include "base/log.h"
#include "driver/uverbs/core/file.h"
#include "driver/uverbs/objects/objects.h"
#include "driver/uverbs/objects/xrc.h"
#include "prm/wqe.h"

#define SRQ_WQE_MIN 32u
#define UIDX_MASK   0xffffffu

/* enum ib_srq_attr_mask; in no UAPI header. */
enum { SRQ_ATTR_MAX_WR = 1 << 0, SRQ_ATTR_LIMIT = 1 << 1 };

struct srq_request {
	uint64_t user_handle;
	uint64_t type; /* enum ib_uverbs_srq_type */
	struct upd *pd;
	struct uxrcd *xrcd;
	struct ucq *cq;
	struct uchannel *async;
	uint32_t max_wr;
	uint32_t max_sge;
};

static uint32_t roundup_power_of_two(uint32_t v)
{
	return v <= 1 ? 1 : 1u << (32 - __builtin_clz(v - 1));
}

static int srq_check_type(const struct srq_request *r)
{
	switch (r->type) {
	case IB_UVERBS_SRQT_BASIC:
		return 0;
	case IB_UVERBS_SRQT_XRC:
		return r->xrcd && r->cq ? 0 : -EINVAL;
	case IB_UVERBS_SRQT_TM:
		log_info("uverbs: tag-matching SRQs are not supported");
		return -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
}

static void usrq_count_users(struct usrq *srq, int by)
{
	srq->pd->uobj.users += (uint32_t)by;
	if (!srq->xrcd)
		return;
	srq->xrcd->uobj.users += (uint32_t)by;
	srq->cq->uobj.users += (uint32_t)by;
}

static void usrq_free(struct uobj *obj)
{
	struct usrq *srq = container_of(obj, struct usrq, uobj);

	/* The object's users were counted, so no QP of ours names it. */
	if (srq_destroy(srq->srq) < 0)
		log_error("uverbs: an SRQ without users is in use");
	usrq_count_users(srq, -1);
}

static uint32_t usrq_number(struct uobj *obj)
{
	return srq_number(container_of(obj, struct usrq, uobj)->srq);
}

static const struct uobj_class usrq_class = {
	.type = UOBJ_SRQ,
	.free = usrq_free,
	.number = usrq_number,
};

struct srq_geometry {
	uint32_t wqes;
	uint32_t bytes; /* bytes of one entry */
};

/* The limits imply it; libmlx5 computes the same. */
static struct srq_geometry srq_geometry_of(const struct srq_request *r)
{
	uint32_t bytes = sizeof(struct wqe_srq_next) + r->max_sge * sizeof(struct wqe_data);

	return (struct srq_geometry){
		.wqes = roundup_power_of_two(r->max_wr + 1),
		.bytes = roundup_power_of_two(bytes < SRQ_WQE_MIN ? SRQ_WQE_MIN : bytes),
	};
}

/* Reads what the library asks for, and checks it before anything is made. */
static int srq_read_uhw(struct ureq *req, const struct srq_request *r,
			struct mlx5_ib_create_srq *uhw, struct srq_geometry *g)
{
	int ret = srq_check_type(r);

	if (ret == 0)
		ret = ubuf_read(&req->uhw_in, uhw, sizeof(*uhw));
	if (ret < 0)
		return ret;
	if (r->max_wr > ADAPTER_MAX_SRQ_WR || r->max_sge > ADAPTER_MAX_SRQ_SGE)
		return -EINVAL;
	if (uhw->flags || uhw->reserved0 || uhw->reserved1 || uhw->uidx > UIDX_MASK ||
	    uhw->db_addr % sizeof(uint32_t))
		return -EINVAL;
	*g = srq_geometry_of(r);
	ret = umem_populate(uhw->buf_addr, (uint64_t)g->wqes * g->bytes, true);
	return ret < 0 ? ret : umem_populate(uhw->db_addr, sizeof(uint32_t), true);
}

static struct usrq *usrq_new(struct ureq *req, const struct srq_request *r, uint32_t wqes)
{
	struct usrq *srq = calloc(1, sizeof(*srq));

	if (!srq)
		return NULL;
	srq->uobj.user_handle = r->user_handle;
	srq->pd = r->pd;
	if (r->type == IB_UVERBS_SRQT_XRC) {
		srq->xrcd = r->xrcd;
		srq->cq = r->cq;
	}
	srq->max_wr = wqes - 1;
	srq->max_sge = r->max_sge;
	uobj_bind_async(&srq->uobj, req->file, r->async);
	return srq;
}

static int usrq_create_device(struct ureq *req, const struct srq_request *r,
			      const struct mlx5_ib_create_srq *uhw, const struct srq_geometry *g,
			      struct usrq *srq)
{
	const struct srq_attr attr = {
		.pdn = r->pd->pdn,
		.buf = (void *)(uintptr_t)uhw->buf_addr,
		.wqe_count = g->wqes,
		.wqe_bytes = g->bytes,
		.max_sge = (g->bytes - (uint32_t)sizeof(struct wqe_srq_next)) /
			   (uint32_t)sizeof(struct wqe_data),
		.dbrec = (void *)(uintptr_t)uhw->db_addr,
		.async = uobj_async,
		.user = &srq->uobj,
		.uidx = uhw->uidx,
		.xrcdn = srq->xrcd ? uxrcd_number(srq->xrcd) : 0,
		.cq = srq->cq ? srq->cq->cq : NULL,
	};

	return srq_create(req->file->hca->adapter, &attr, &srq->srq);
}

static int usrq_create(struct ureq *req, const struct srq_request *r, struct usrq **out)
{
	struct mlx5_ib_create_srq uhw;
	struct mlx5_ib_create_srq_resp uhw_resp = {0};
	struct srq_geometry g;
	struct usrq *srq;
	int ret = srq_read_uhw(req, r, &uhw, &g);

	if (ret < 0)
		return ret;
	srq = usrq_new(req, r, g.wqes);
	if (!srq)
		return -ENOMEM;
	ret = usrq_create_device(req, r, &uhw, &g, srq);
	if (ret < 0)
		goto free_srq;
	ret = uobj_publish(req->file, &srq->uobj, &usrq_class);
	if (ret < 0)
		goto destroy_srq;
	usrq_count_users(srq, 1);
	uhw_resp.srqn = srq_number(srq->srq);
	ret = ubuf_write(&req->uhw_out, &uhw_resp, sizeof(uhw_resp));
	if (ret < 0) {
		(void)uobj_destroy(&srq->uobj, NULL);
		return ret;
	}
	*out = srq;
	return 0;

destroy_srq:
	if (srq_destroy(srq->srq) < 0)
		log_error("uverbs: a fresh SRQ is in use");
free_srq:
	uobj_unbind_async(&srq->uobj);
	free(srq);
	return ret;
}

static int method_srq_create(struct ureq *req)
{
	struct uobj *xrcd = ureq_obj(req, UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE);
	struct uobj *cq = ureq_obj(req, UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE);
	struct srq_request r = {
		.type = ureq_u64(req, UVERBS_ATTR_CREATE_SRQ_TYPE),
		.xrcd = xrcd ? container_of(xrcd, struct uxrcd, uobj) : NULL,
		.cq = cq ? container_of(cq, struct ucq, uobj) : NULL,
		.user_handle = ureq_u64(req, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE),
		.pd = container_of(ureq_obj(req, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE), struct upd,
				   uobj),
		.async = ureq_channel(req, UVERBS_ATTR_CREATE_SRQ_EVENT_FD),
		.max_wr = ureq_u32(req, UVERBS_ATTR_CREATE_SRQ_MAX_WR),
		.max_sge = ureq_u32(req, UVERBS_ATTR_CREATE_SRQ_MAX_SGE),
	};
	struct usrq *srq;
	int ret = usrq_create(req, &r, &srq);

	if (ret < 0)
		return ret;
	ret = ureq_put_u32(req, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, srq->max_wr);
	if (ret == 0)
		ret = ureq_put_u32(req, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, srq->max_sge);
	if (ret == 0)
		ret = ureq_put_u32(req, UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, srq_number(srq->srq));
	if (ret == 0)
		ret = ureq_put_handle(req, UVERBS_ATTR_CREATE_SRQ_HANDLE, srq->uobj.handle);
	if (ret < 0)
		(void)uobj_destroy(&srq->uobj, NULL);
	return ret;
}

/* Serves both commands, because the one for XRC says all that the basic one does. */
static int usrq_create_by_command(struct ureq *req, const struct ib_uverbs_create_xsrq *cmd)
{
	struct ib_uverbs_create_srq_resp resp = {0};
	struct srq_request r = {
		.user_handle = cmd->user_handle,
		.type = cmd->srq_type,
		.max_wr = cmd->max_wr,
		.max_sge = cmd->max_sge,
	};
	struct uobj *obj;
	struct usrq *srq;
	int ret;

	obj = uobj_find(req->file, UOBJ_PD, cmd->pd_handle, &ret);
	if (!obj)
		return ret;
	r.pd = container_of(obj, struct upd, uobj);
	if (r.type == IB_UVERBS_SRQT_XRC) {
		obj = uobj_find(req->file, UOBJ_XRCD, cmd->xrcd_handle, &ret);
		if (!obj)
			return -EINVAL;
		r.xrcd = container_of(obj, struct uxrcd, uobj);
		obj = uobj_find(req->file, UOBJ_CQ, cmd->cq_handle, &ret);
		if (!obj)
			return -EINVAL;
		r.cq = container_of(obj, struct ucq, uobj);
	}
	ret = usrq_create(req, &r, &srq);
	if (ret < 0)
		return ret;
	resp.srq_handle = srq->uobj.handle;
	resp.max_wr = srq->max_wr;
	resp.max_sge = srq->max_sge;
	resp.srqn = srq_number(srq->srq);
	ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		(void)uobj_destroy(&srq->uobj, NULL);
	return ret;
}

static int cmd_create_srq(struct ureq *req)
{
	struct ib_uverbs_create_srq cmd;
	struct ib_uverbs_create_xsrq xcmd = {.srq_type = IB_UVERBS_SRQT_BASIC};
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	xcmd.user_handle = cmd.user_handle;
	xcmd.pd_handle = cmd.pd_handle;
	xcmd.max_wr = cmd.max_wr;
	xcmd.max_sge = cmd.max_sge;
	return usrq_create_by_command(req, &xcmd);
}

static int cmd_create_xsrq(struct ureq *req)
{
	struct ib_uverbs_create_xsrq cmd;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	return ret < 0 ? ret : usrq_create_by_command(req, &cmd);
}

/* Returns NULL if it fails, and then *ret says why. */
static struct usrq *usrq_find(struct ureq *req, uint32_t handle, int *ret)
{
	struct uobj *obj = uobj_find(req->file, UOBJ_SRQ, handle, ret);

	return obj ? container_of(obj, struct usrq, uobj) : NULL;
}

static int cmd_modify_srq(struct ureq *req)
{
	struct ib_uverbs_modify_srq cmd;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));
	struct usrq *srq = ret < 0 ? NULL : usrq_find(req, cmd.srq_handle, &ret);

	if (!srq)
		return ret;
	/* The SRQ cannot be resized, as on the real device. */
	if (cmd.attr_mask & ~(uint32_t)SRQ_ATTR_LIMIT)
		return -EINVAL;
	if (cmd.attr_mask & SRQ_ATTR_LIMIT) {
		if (cmd.srq_limit > srq->max_wr)
			return -EINVAL;
		srq_set_limit(srq->srq, cmd.srq_limit);
	}
	return 0;
}

static int cmd_query_srq(struct ureq *req)
{
	struct ib_uverbs_query_srq cmd;
	struct ib_uverbs_query_srq_resp resp = {0};
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));
	struct usrq *srq = ret < 0 ? NULL : usrq_find(req, cmd.srq_handle, &ret);

	if (!srq)
		return ret;
	resp.max_wr = srq->max_wr;
	resp.max_sge = srq->max_sge;
	resp.srq_limit = srq_limit(srq->srq);
	return ubuf_write(&req->core_out, &resp, sizeof(resp));
}

static int method_srq_destroy(struct ureq *req)
{
	struct ib_uverbs_destroy_srq_resp resp;
	struct uevents events = {0};
	int ret = uobj_destroy(ureq_obj(req, UVERBS_ATTR_DESTROY_SRQ_HANDLE), &events);

	if (ret < 0)
		return ret;
	resp.events_reported = events.async;
	return ureq_put(req, UVERBS_ATTR_DESTROY_SRQ_RESP, &resp, sizeof(resp));
}

static int cmd_destroy_srq(struct ureq *req)
{
	struct ib_uverbs_destroy_srq cmd;
	struct ib_uverbs_destroy_srq_resp resp;
	struct uevents events = {0};
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret == 0)
		ret = ureq_destroy(req, UOBJ_SRQ, cmd.srq_handle, &events);
	if (ret < 0)
		return ret;
	resp.events_reported = events.async;
	return ubuf_write(&req->core_out, &resp, sizeof(resp));
}

/* ---- what requests reach this family ---- */

static const struct attr_spec srq_create_attrs[] = {
	{UVERBS_ATTR_CREATE_SRQ_HANDLE, ATTR_IDR_NEW},
	{UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, IDR(UOBJ_PD)},
	{UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, IDR(UOBJ_XRCD), OPT},
	{UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, IDR(UOBJ_CQ), OPT},
	{UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, IN(8)},
	{UVERBS_ATTR_CREATE_SRQ_MAX_WR, IN(4)},
	{UVERBS_ATTR_CREATE_SRQ_MAX_SGE, IN(4)},
	{UVERBS_ATTR_CREATE_SRQ_LIMIT, IN(4)},
	{UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS, IN(4), OPT},
	{UVERBS_ATTR_CREATE_SRQ_TYPE, CONST_IN},
	{UVERBS_ATTR_CREATE_SRQ_EVENT_FD, CHANNEL(UCHANNEL_ASYNC), OPT},
	{UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, OUT(4)},
	{UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, OUT(4)},
	{UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, OUT(4), OPT},
};

static const struct attr_spec srq_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_SRQ_HANDLE, IDR(UOBJ_SRQ)},
	{UVERBS_ATTR_DESTROY_SRQ_RESP, OUT(sizeof(struct ib_uverbs_destroy_srq_resp))},
};

static const struct method_spec methods[] = {
	UHW_METHOD(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, method_srq_create,
		   srq_create_attrs),
	METHOD(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, method_srq_destroy, srq_destroy_attrs),
};

static const struct command_spec commands[] = {
	CMD_RESP_UHW(CREATE_SRQ, cmd_create_srq, ib_uverbs_create_srq, ib_uverbs_create_srq_resp),
	CMD_UHW(MODIFY_SRQ, cmd_modify_srq, ib_uverbs_modify_srq),
	CMD_RESP(QUERY_SRQ, cmd_query_srq, ib_uverbs_query_srq, ib_uverbs_query_srq_resp),
	CMD_RESP(DESTROY_SRQ, cmd_destroy_srq, ib_uverbs_destroy_srq, ib_uverbs_destroy_srq_resp),
	CMD_RESP_UHW(CREATE_XSRQ, cmd_create_xsrq, ib_uverbs_create_xsrq,
		     ib_uverbs_create_srq_resp),
};

const struct uverbs_family usrq_family = {METHODS(methods), COMMANDS(commands)};
