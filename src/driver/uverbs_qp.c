// SPDX-License-Identifier: BSD-2-Clause
/* Creation and destruction of queue pairs, by ioctl and by command. */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>

#include "base/log.h"
#include "driver/uverbs_objects.h"
#include "prm/wqe.h"

#define UIDX_MASK      0xffffffu
#define RQ_DESC_MAX    512u	  /* max_rq_desc_sz of the context */
#define BFREG_NOT_OURS (1u << 31) /* bfreg_index: the program brought its own UAR page */

struct qp_request {
	uint64_t user_handle;
	struct upd *pd;
	struct ucq *send_cq;
	struct ucq *recv_cq;
	struct usrq *srq;
	struct uchannel *async;
	struct ib_uverbs_qp_cap cap;
	uint64_t type;
	uint32_t flags; /* enum ib_uverbs_qp_create_flags */
	bool sq_sig_all;
};

static const char *const type_names[] = {
	[IB_UVERBS_QPT_RAW_PACKET] = "RAW_PACKET",
	[IB_UVERBS_QPT_XRC_INI] = "XRC_INI",
	[IB_UVERBS_QPT_XRC_TGT] = "XRC_TGT",
	[IB_UVERBS_QPT_DRIVER] = "DRIVER (DC)",
};

static int check_type(const struct qp_request *r)
{
	switch (r->type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
		break;
	default:
		if (r->type >= array_size(type_names) || !type_names[r->type])
			return -EINVAL;
		log_info("uverbs: QP type %s is not supported", type_names[r->type]);
		return -EOPNOTSUPP;
	}
	if (!r->pd || !r->send_cq || !r->recv_cq)
		return -EINVAL;
	/* There is no multicast to loop back, so blocking it is granted. */
	if (r->flags & ~(uint32_t)IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK)
		return -EINVAL;
	if (r->flags && r->type != IB_QPT_UD)
		return -EINVAL;
	/* UC has no shared receive queues (IBTA 10.2.9). */
	if (r->srq && r->type == IB_QPT_UC)
		return -EINVAL;
	return 0;
}

static int check_uhw_flags(uint32_t flags)
{
	const uint32_t granted = MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_ALLOW_SCATTER_CQE |
				 MLX5_QP_FLAG_UAR_PAGE_INDEX | MLX5_QP_FLAG_BFREG_INDEX;
	const uint32_t lacking = MLX5_QP_FLAG_SIGNATURE | MLX5_QP_FLAG_TYPE_DCT |
				 MLX5_QP_FLAG_TYPE_DCI | MLX5_QP_FLAG_DCI_STREAM;

	if (flags & lacking) {
		log_info("uverbs: mlx5 QP flags 0x%x are not supported", flags & lacking);
		return -EOPNOTSUPP;
	}
	return flags & ~granted ? -EINVAL : 0;
}

static bool power_of_two(uint32_t v)
{
	return v && !(v & (v - 1));
}

/* The rings as libmlx5 laid them out: receive first, send right behind. */
static int check_rings(const struct qp_request *r, const struct mlx5_ib_create_qp *uhw)
{
	uint64_t bytes;

	if (r->cap.max_send_wr > ADAPTER_MAX_QP_WR || r->cap.max_recv_wr > ADAPTER_MAX_QP_WR)
		return -EINVAL;
	if (uhw->sq_wqe_count &&
	    (!power_of_two(uhw->sq_wqe_count) || uhw->sq_wqe_count > ADAPTER_MAX_QP_WR))
		return -EINVAL;
	if (r->srq ? uhw->rq_wqe_count != 0
		   : uhw->rq_wqe_count && (!power_of_two(uhw->rq_wqe_count) ||
					   uhw->rq_wqe_count > ADAPTER_MAX_QP_WR))
		return -EINVAL;
	if (!r->srq && r->cap.max_recv_wr > uhw->rq_wqe_count)
		return -EINVAL;
	if (uhw->rq_wqe_count &&
	    (uhw->rq_wqe_shift > 31 || 1u << uhw->rq_wqe_shift < sizeof(struct wqe_data) ||
	     1u << uhw->rq_wqe_shift > RQ_DESC_MAX))
		return -EINVAL;
	if (uhw->uidx > UIDX_MASK || uhw->db_addr % sizeof(uint32_t))
		return -EINVAL;
	bytes = (uint64_t)uhw->sq_wqe_count * WQE_BLOCK;
	if (uhw->rq_wqe_count)
		bytes += (uint64_t)uhw->rq_wqe_count << uhw->rq_wqe_shift;
	if (bytes) {
		int ret = umem_populate(uhw->buf_addr, bytes, true);

		if (ret < 0)
			return ret;
	}
	return umem_populate(uhw->db_addr, 2 * sizeof(uint32_t), true);
}

static void count_users(struct uqp *qp, int by)
{
	qp->pd->uobj.users += (uint32_t)by;
	qp->send_cq->uobj.users += (uint32_t)by;
	qp->recv_cq->uobj.users += (uint32_t)by;
	if (qp->srq)
		qp->srq->uobj.users += (uint32_t)by;
}

static int create(struct ureq *req, const struct qp_request *r, struct uqp **out)
{
	struct mlx5_ib_create_qp_resp uhw_resp = {0};
	struct qp_create_attr attr;
	struct mlx5_ib_create_qp uhw;
	uint64_t rq_bytes = 0;
	struct uqp *qp;
	int ret = check_type(r);

	if (ret == 0)
		ret = ubuf_read(&req->uhw_in, &uhw, sizeof(uhw));
	if (ret == 0)
		ret = check_uhw_flags(uhw.flags);
	if (ret == 0)
		ret = check_rings(r, &uhw);
	if (ret < 0)
		return ret;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->uobj.user_handle = r->user_handle;
	qp->pd = r->pd;
	qp->send_cq = r->send_cq;
	qp->recv_cq = r->recv_cq;
	qp->srq = r->srq;
	qp->type = (enum ib_qp_type)r->type;
	qp->sq_sig_all = r->sq_sig_all;
	if (uhw.rq_wqe_count) {
		rq_bytes = (uint64_t)uhw.rq_wqe_count << uhw.rq_wqe_shift;
		qp->max_recv_wr = uhw.rq_wqe_count;
		qp->max_recv_sge = (1u << uhw.rq_wqe_shift) / sizeof(struct wqe_data);
	}
	uobj_bind_async(&qp->uobj, req->file, r->async);
	attr = (struct qp_create_attr){
		.type = qp->type,
		.pdn = r->pd->pdn,
		.uidx = uhw.uidx,
		.send_cq = r->send_cq->cq,
		.recv_cq = r->recv_cq->cq,
		.srq = r->srq ? r->srq->srq : NULL,
		.sq_buf = (void *)(uintptr_t)(uhw.buf_addr + rq_bytes),
		.sq_blocks = uhw.sq_wqe_count,
		.rq_buf = (void *)(uintptr_t)uhw.buf_addr,
		.rq_wqes = uhw.rq_wqe_count,
		.rq_wqe_bytes = uhw.rq_wqe_count ? 1u << uhw.rq_wqe_shift : 0,
		.dbrec = (void *)(uintptr_t)uhw.db_addr,
		.sq_sig_all = r->sq_sig_all,
		.max_recv_sge = qp->max_recv_sge,
		.max_inline = r->cap.max_inline_data,
		.async = uobj_async,
		.user = &qp->uobj,
	};
	ret = qp_create(req->file->hca->adapter, &attr, &qp->qp);
	if (ret < 0)
		goto free_qp;
	ret = uobj_publish(req->file, &qp->uobj, UOBJ_QP);
	if (ret < 0)
		goto destroy_qp;
	count_users(qp, 1);
	uhw_resp.bfreg_index = BFREG_NOT_OURS;
	ret = ubuf_write(&req->uhw_out, &uhw_resp, sizeof(uhw_resp));
	if (ret < 0) {
		(void)uobj_destroy(&qp->uobj, NULL);
		return ret;
	}
	*out = qp;
	return 0;

destroy_qp:
	qp_destroy(qp->qp);
free_qp:
	uobj_unbind_async(&qp->uobj);
	free(qp);
	return ret;
}

#define RECORD(obj, type) ((obj) ? container_of((obj), struct type, uobj) : NULL)

int method_qp_create(struct ureq *req)
{
	const uint32_t known =
		IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK | IB_UVERBS_QP_CREATE_SCATTER_FCS |
		IB_UVERBS_QP_CREATE_CVLAN_STRIPPING | IB_UVERBS_QP_CREATE_PCI_WRITE_END_PADDING |
		IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
	struct ubuf cap = ureq_buf(req, UVERBS_ATTR_CREATE_QP_CAP);
	struct qp_request r = {
		.user_handle = ureq_u64(req, UVERBS_ATTR_CREATE_QP_USER_HANDLE),
		.pd = RECORD(ureq_obj(req, UVERBS_ATTR_CREATE_QP_PD_HANDLE), upd),
		.send_cq = RECORD(ureq_obj(req, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE), ucq),
		.recv_cq = RECORD(ureq_obj(req, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE), ucq),
		.srq = RECORD(ureq_obj(req, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE), usrq),
		.async = ureq_channel(req, UVERBS_ATTR_CREATE_QP_EVENT_FD),
		.type = ureq_u64(req, UVERBS_ATTR_CREATE_QP_TYPE),
	};
	struct uqp *qp;
	int ret = ubuf_read(&cap, &r.cap, sizeof(r.cap));

	if (ret == 0)
		ret = ureq_flags(req, UVERBS_ATTR_CREATE_QP_FLAGS, known, &r.flags);
	if (ret < 0)
		return ret;
	/* Sends under another QP's number are for the special QPs of the kernel. */
	if (ureq_attr(req, UVERBS_ATTR_CREATE_QP_SOURCE_QPN))
		return -EOPNOTSUPP;
	r.sq_sig_all = r.flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
	r.flags &= ~(uint32_t)IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
	ret = create(req, &r, &qp);
	if (ret < 0)
		return ret;
	ret = ureq_put(req, UVERBS_ATTR_CREATE_QP_RESP_CAP, &r.cap, sizeof(r.cap));
	if (ret == 0)
		ret = ureq_put_u32(req, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, qp_number(qp->qp));
	if (ret == 0)
		ret = ureq_put_handle(req, UVERBS_ATTR_CREATE_QP_HANDLE, qp->uobj.handle);
	if (ret < 0)
		(void)uobj_destroy(&qp->uobj, NULL);
	return ret;
}

/* The extended command begins with the fields of the legacy one. */
static int create_by_command(struct ureq *req, const struct ib_uverbs_ex_create_qp *cmd,
			     struct ib_uverbs_create_qp_resp *resp, struct uqp **out)
{
	struct qp_request r = {
		.user_handle = cmd->user_handle,
		.cap = {cmd->max_send_wr, cmd->max_recv_wr, cmd->max_send_sge, cmd->max_recv_sge,
			cmd->max_inline_data},
		.type = cmd->qp_type,
		.flags = cmd->create_flags,
		.sq_sig_all = cmd->sq_sig_all,
	};
	struct uobj *obj;
	int ret;

	if (cmd->comp_mask & IB_UVERBS_CREATE_QP_MASK_IND_TABLE || cmd->source_qpn)
		return -EOPNOTSUPP;
	if (cmd->comp_mask)
		return -EINVAL;
	/* Of an XRC QP the handles name other things; its type is refused before they matter. */
	if (cmd->qp_type == IB_QPT_RC || cmd->qp_type == IB_QPT_UC || cmd->qp_type == IB_QPT_UD) {
		obj = uobj_find(req->file, UOBJ_PD, cmd->pd_handle, &ret);
		if (!obj)
			return ret;
		r.pd = container_of(obj, struct upd, uobj);
		obj = uobj_find(req->file, UOBJ_CQ, cmd->send_cq_handle, &ret);
		if (!obj)
			return ret;
		r.send_cq = container_of(obj, struct ucq, uobj);
		obj = uobj_find(req->file, UOBJ_CQ, cmd->recv_cq_handle, &ret);
		if (!obj)
			return ret;
		r.recv_cq = container_of(obj, struct ucq, uobj);
		if (cmd->is_srq) {
			obj = uobj_find(req->file, UOBJ_SRQ, cmd->srq_handle, &ret);
			if (!obj)
				return ret;
			r.srq = container_of(obj, struct usrq, uobj);
		}
	}
	ret = create(req, &r, out);
	if (ret < 0)
		return ret;
	*resp = (struct ib_uverbs_create_qp_resp){
		.qp_handle = (*out)->uobj.handle,
		.qpn = qp_number((*out)->qp),
		.max_send_wr = r.cap.max_send_wr,
		.max_recv_wr = r.cap.max_recv_wr,
		.max_send_sge = r.cap.max_send_sge,
		.max_recv_sge = r.cap.max_recv_sge,
		.max_inline_data = r.cap.max_inline_data,
	};
	return 0;
}

int cmd_create_qp(struct ureq *req)
{
	struct ib_uverbs_create_qp cmd;
	struct ib_uverbs_ex_create_qp ex = {0};
	struct ib_uverbs_create_qp_resp resp;
	struct uqp *qp;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	ex.user_handle = cmd.user_handle;
	ex.pd_handle = cmd.pd_handle;
	ex.send_cq_handle = cmd.send_cq_handle;
	ex.recv_cq_handle = cmd.recv_cq_handle;
	ex.srq_handle = cmd.srq_handle;
	ex.max_send_wr = cmd.max_send_wr;
	ex.max_recv_wr = cmd.max_recv_wr;
	ex.max_send_sge = cmd.max_send_sge;
	ex.max_recv_sge = cmd.max_recv_sge;
	ex.max_inline_data = cmd.max_inline_data;
	ex.sq_sig_all = cmd.sq_sig_all;
	ex.qp_type = cmd.qp_type;
	ex.is_srq = cmd.is_srq;
	ret = create_by_command(req, &ex, &resp, &qp);
	if (ret < 0)
		return ret;
	ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		(void)uobj_destroy(&qp->uobj, NULL);
	return ret;
}

int cmd_create_qp_ex(struct ureq *req)
{
	struct ib_uverbs_ex_create_qp cmd;
	struct ib_uverbs_ex_create_qp_resp resp = {0};
	struct uqp *qp;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret == 0)
		ret = create_by_command(req, &cmd, &resp.base, &qp);
	if (ret < 0)
		return ret;
	resp.response_length = (uint32_t)min_u64(sizeof(resp), req->core_out.len);
	ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		(void)uobj_destroy(&qp->uobj, NULL);
	return ret;
}

void uqp_free(struct uobj *obj)
{
	struct uqp *qp = container_of(obj, struct uqp, uobj);

	qp_destroy(qp->qp);
	count_users(qp, -1);
}

static int destroy(struct uobj *obj, struct ib_uverbs_destroy_qp_resp *resp)
{
	struct uevents events;
	int ret = uobj_destroy(obj, &events);

	if (ret == 0)
		resp->events_reported = events.async;
	return ret;
}

int method_qp_destroy(struct ureq *req)
{
	struct ib_uverbs_destroy_qp_resp resp;
	int ret = destroy(ureq_obj(req, UVERBS_ATTR_DESTROY_QP_HANDLE), &resp);

	return ret < 0 ? ret : ureq_put(req, UVERBS_ATTR_DESTROY_QP_RESP, &resp, sizeof(resp));
}

int cmd_destroy_qp(struct ureq *req)
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
	ret = destroy(obj, &resp);
	return ret < 0 ? ret : ubuf_write(&req->core_out, &resp, sizeof(resp));
}
