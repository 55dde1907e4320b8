// SPDX-License-Identifier: BSD-2-Clause
/* Queue pairs of verbs: handles and creation.  Modification is qp_attr.c. */
#include "driver/uverbs/objects/objects.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>

#include "base/hazard.h"
#include "base/log.h"
#include "driver/uverbs/core/file.h"
#include "driver/uverbs/objects/xrc.h"
#include "prm/wqe.h"

/* ---- handles: their class, the counts of users, OPEN_QP and destruction ---- */

/* Counts qp among the users of its parts (1), or takes it out (-1). */
static void uqp_count_users(struct uqp *qp, int by)
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

/* The queue pair's doorbells come through that page of the file, if the file has it.  Call this
 * before the queue pair is published. */
static void uqp_bell(struct uqp *qp, struct ufile *f, uint32_t uar_page)
{
	doorbell_user_init(&qp->bell, DOORBELL_SQ, uuar_regs(f, uar_page), uqp_rung);
}

/* Destroys the device's part, or lets go of the target that it shares. */
static void uqp_destroy_device(struct hca *hca, struct uqp *qp)
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

/* ---- dynamically connected ones; errors are those of the kernel's mlx5 driver ---- */

/* Replaces the type DRIVER by the one meant; -EINVAL if it is unclear. */
static must_check int uqp_driver_type(const struct mlx5_ib_create_qp *uhw, uint64_t *type)
{
	bool dct = uhw->flags & MLX5_QP_FLAG_TYPE_DCT, dci = uhw->flags & MLX5_QP_FLAG_TYPE_DCI;

	if (*type != IB_UVERBS_QPT_DRIVER)
		return 0;
	if (dct == dci)
		return -EINVAL;
	if (uhw->flags & MLX5_QP_FLAG_DCI_STREAM &&
	    (uhw->dci_streams.log_num_concurent > ADAPTER_LOG_MAX_DC_STREAMS ||
	     uhw->dci_streams.log_num_errored > ADAPTER_LOG_MAX_DC_ERRORED))
		return -EINVAL;
	*type = dct ? IB_QPT_DCT : IB_QPT_DCI;
	return 0;
}

/* -EINVAL if a QP of a DC type has other parts than it takes; 0 for other types. */
static must_check int uqp_check_dc(uint64_t type, const struct usrq *srq,
				   const struct ib_uverbs_qp_cap *cap)
{
	if (type == IB_QPT_DCT)
		return srq ? 0 : -EINVAL;
	if (type == IB_QPT_DCI)
		return cap->max_recv_wr || cap->max_recv_sge ? -EINVAL : 0;
	return 0;
}

/* Private creation flags of a DC type. */
static uint32_t uqp_dc_flags(uint64_t type)
{
	if (type == IB_QPT_DCT)
		return MLX5_QP_FLAG_TYPE_DCT;
	if (type == IB_QPT_DCI)
		return MLX5_QP_FLAG_TYPE_DCI | MLX5_QP_FLAG_DCI_STREAM;
	return 0;
}

static void uqp_dc_attributes(uint64_t type, const struct mlx5_ib_create_qp *uhw,
			      struct qp_create_attr *attr)
{
	if (type == IB_QPT_DCT)
		attr->dc_key = uhw->access_key;
	if (type == IB_QPT_DCI && uhw->flags & MLX5_QP_FLAG_DCI_STREAM) {
		attr->dc_streams = true;
		attr->log_dc_errored = uhw->dci_streams.log_num_errored;
	}
}

uint32_t uqp_number(const struct uqp *qp)
{
	struct qp_attr attr;

	if (qp->type != IB_QPT_DCT)
		return qp_number(qp->qp);
	qp_query(qp->qp, &attr);
	return attr.state == IB_QPS_RTR ? qp_number(qp->qp) : 0;
}

int uqp_check_modify_dc(const struct uqp *qp, const struct ib_uverbs_modify_qp *cmd,
			uint64_t answer_bytes)
{
	if (qp->type == IB_QPT_DCT && cmd->attr_mask & IB_QP_STATE && cmd->qp_state == IB_QPS_RTR &&
	    answer_bytes < offsetof(struct mlx5_ib_modify_qp_resp, ece_options))
		return -EINVAL;
	return 0;
}

/* ---- creation ---- */

/* Creation of queue pairs, by ioctl and by command. */

#define UIDX_MASK      0xffffffu
#define RQ_DESC_MAX    512u	  /* max_rq_desc_sz of the context */
#define BFREG_NOT_OURS (1u << 31) /* bfreg_index: the program brought its own UAR page */

struct qp_request {
	uint64_t user_handle;
	struct upd *pd;
	struct ucq *send_cq;
	struct ucq *recv_cq;
	struct usrq *srq;
	struct uxrcd *xrcd;
	struct uchannel *async;
	struct ib_uverbs_qp_cap cap;
	uint64_t type;
	uint32_t flags; /* enum ib_uverbs_qp_create_flags */
	bool sq_sig_all;
};

static int qp_check_type(uint64_t type)
{
	switch (type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
	case IB_QPT_XRC_INI:
	case IB_QPT_XRC_TGT:
	case IB_UVERBS_QPT_DRIVER:
		return 0;
	case IB_QPT_RAW_PACKET:
		return uverbs_may_raw() ? 0 : -EPERM;
	default:
		return -EINVAL;
	}
}

static uint32_t flags_of_type(uint64_t type)
{
	/* Padding to whole cache lines only helps a bus; memory has none. */
	const uint32_t any = IB_UVERBS_QP_CREATE_PCI_WRITE_END_PADDING;

	switch (type) {
	case IB_QPT_UD:
		return any | IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	case IB_QPT_RAW_PACKET:
		return any | IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK |
		       IB_UVERBS_QP_CREATE_CVLAN_STRIPPING;
	default:
		return any;
	}
}

static int qp_check_parts(const struct qp_request *r)
{
	bool target = r->type == IB_QPT_XRC_TGT;

	if (!r->pd != target || !r->send_cq != target || !r->xrcd != !target)
		return -EINVAL;
	/* a DCI makes no use of its receiving side, but the library names one */
	if (r->type != IB_QPT_DCI &&
	    (ib_qp_type_receives(r->type) ? !r->recv_cq : r->recv_cq || r->srq))
		return -EINVAL;
	if (r->flags & ~flags_of_type(r->type))
		return -EINVAL;
	/* Those of XRC are named by requests, not by a QP. */
	if (r->srq && r->srq->xrcd)
		return -EINVAL;
	/* Queues of Ethernet have no shared receive queues. */
	if (r->srq && r->type == IB_QPT_RAW_PACKET)
		return -EINVAL;
	return uqp_check_dc(r->type, r->srq, &r->cap);
}

static int qp_check_uhw_flags(uint64_t type, uint32_t flags)
{
	const uint32_t raw = MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC | MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC;
	const uint32_t granted = MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_ALLOW_SCATTER_CQE |
				 MLX5_QP_FLAG_UAR_PAGE_INDEX | MLX5_QP_FLAG_BFREG_INDEX |
				 (type == IB_QPT_RAW_PACKET ? raw : 0) | uqp_dc_flags(type);
	const uint32_t lacking = MLX5_QP_FLAG_SIGNATURE;

	if (flags & lacking) {
		log_info("uverbs: mlx5 QP flags 0x%x are not supported", flags & lacking);
		return -EOPNOTSUPP;
	}
	return flags & ~granted ? -EINVAL : 0;
}

/* Populates the rings as libmlx5 laid them out: receive first, send right behind, or apart. */
static int qp_populate_rings(const struct qp_request *r, const struct mlx5_ib_create_qp *uhw)
{
	uint64_t sq = (uint64_t)uhw->sq_wqe_count * WQE_BLOCK, rq = 0;
	int ret = 0;

	if (uhw->rq_wqe_count)
		rq = (uint64_t)uhw->rq_wqe_count << uhw->rq_wqe_shift;
	if (r->type == IB_QPT_RAW_PACKET) {
		if (sq)
			ret = umem_populate(uhw->sq_buf_addr, sq, true);
		sq = 0;
	}
	if (ret == 0 && sq + rq)
		ret = umem_populate(uhw->buf_addr, sq + rq, true);
	return ret ? ret : umem_populate(uhw->db_addr, 2 * sizeof(uint32_t), true);
}

static int qp_check_rings(const struct qp_request *r, const struct mlx5_ib_create_qp *uhw)
{

	/* a target does not use the library's rings, and libmlx5 makes none */
	if (!ib_qp_type_sends(r->type))
		return uhw->uidx > UIDX_MASK ? -EINVAL : 0;
	if (r->cap.max_send_wr > ADAPTER_MAX_QP_WR || r->cap.max_recv_wr > ADAPTER_MAX_QP_WR)
		return -EINVAL;
	if (uhw->sq_wqe_count &&
	    (!is_power_of_two(uhw->sq_wqe_count) || uhw->sq_wqe_count > ADAPTER_MAX_QP_WR))
		return -EINVAL;
	if (r->srq ? uhw->rq_wqe_count != 0
		   : uhw->rq_wqe_count && (!is_power_of_two(uhw->rq_wqe_count) ||
					   uhw->rq_wqe_count > ADAPTER_MAX_QP_WR))
		return -EINVAL;
	if (ib_qp_type_receives(r->type) && !r->srq && r->cap.max_recv_wr > uhw->rq_wqe_count)
		return -EINVAL;
	if (uhw->rq_wqe_count &&
	    (uhw->rq_wqe_shift > 31 || 1u << uhw->rq_wqe_shift < sizeof(struct wqe_data) ||
	     1u << uhw->rq_wqe_shift > RQ_DESC_MAX))
		return -EINVAL;
	if (uhw->uidx > UIDX_MASK || uhw->db_addr % sizeof(uint32_t))
		return -EINVAL;
	return qp_populate_rings(r, uhw);
}

/* Reads what the library asks for, and checks it before anything is made. */
static int qp_read_uhw(struct ureq *req, struct qp_request *r, struct mlx5_ib_create_qp *uhw)
{
	int ret = qp_check_type(r->type);

	if (ret == 0)
		ret = ubuf_read(&req->uhw_in, uhw, sizeof(*uhw));
	if (ret == 0)
		ret = uqp_driver_type(uhw, &r->type);
	if (ret == 0)
		ret = qp_check_parts(r);
	if (ret == 0)
		ret = qp_check_uhw_flags(r->type, uhw->flags);
	if (ret == 0)
		ret = qp_check_rings(r, uhw);
	return ret;
}

static struct uqp *uqp_new(struct ureq *req, const struct qp_request *r,
			   const struct mlx5_ib_create_qp *uhw)
{
	struct uqp *qp = calloc(1, sizeof(*qp));

	if (!qp)
		return NULL;
	qp->uobj.user_handle = r->user_handle;
	qp->pd = r->pd;
	qp->send_cq = r->send_cq;
	qp->recv_cq = r->recv_cq;
	qp->srq = r->srq;
	qp->xrcd = r->xrcd;
	qp->type = (enum ib_qp_type)r->type;
	qp->sq_sig_all = r->sq_sig_all;
	qp->max_send_wr = r->cap.max_send_wr;
	qp->max_send_sge = r->cap.max_send_sge;
	qp->max_inline = r->cap.max_inline_data;
	if (uhw->rq_wqe_count && ib_qp_type_receives(r->type) && ib_qp_type_sends(r->type)) {
		qp->max_recv_wr = uhw->rq_wqe_count;
		qp->max_recv_sge = (1u << uhw->rq_wqe_shift) / sizeof(struct wqe_data);
	}
	uobj_bind_async(&qp->uobj, req->file, r->async);
	return qp;
}

/* The send ring lies behind the receives, but raw packet QPs have a buffer for each. */
static void *qp_send_ring(const struct qp_request *r, const struct mlx5_ib_create_qp *uhw)
{
	uint64_t rq_bytes = 0;

	if (r->type == IB_QPT_RAW_PACKET)
		return (void *)(uintptr_t)uhw->sq_buf_addr;
	if (uhw->rq_wqe_count && r->type != IB_QPT_XRC_TGT && r->type != IB_QPT_DCT)
		rq_bytes = (uint64_t)uhw->rq_wqe_count << uhw->rq_wqe_shift;
	return (void *)(uintptr_t)(uhw->buf_addr + rq_bytes);
}

static int uqp_create_device(struct ureq *req, const struct qp_request *r,
			     const struct mlx5_ib_create_qp *uhw, struct uqp *qp)
{
	bool sends = ib_qp_type_sends(r->type), receives = ib_qp_type_receives(r->type);
	struct hca *hca = req->file->hca;
	struct qp_create_attr attr = {
		.type = qp->type,
		.pdn = r->pd ? r->pd->pdn : 0,
		.uidx = uhw->uidx,
		.send_cq = sends ? r->send_cq->cq : NULL,
		.recv_cq = receives ? r->recv_cq->cq : NULL,
		.srq = r->srq && receives ? r->srq->srq : NULL,
		.sq_buf = qp_send_ring(r, uhw),
		.sq_blocks = sends ? uhw->sq_wqe_count : 0,
		.rq_buf = (void *)(uintptr_t)uhw->buf_addr,
		.rq_wqes = qp->max_recv_wr,
		.rq_wqe_bytes = qp->max_recv_wr ? 1u << uhw->rq_wqe_shift : 0,
		.dbrec = (void *)(uintptr_t)uhw->db_addr,
		.sq_sig_all = r->sq_sig_all,
		.max_recv_sge = qp->max_recv_sge,
		.max_inline = r->cap.max_inline_data,
		.block_self_mcast = r->flags & IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK,
		.strip_vlan = r->flags & IB_UVERBS_QP_CREATE_CVLAN_STRIPPING,
		.loopback = uraw_loopback(uhw->flags),
		.domain = req->file,
		.async = uobj_async,
		.user = &qp->uobj,
	};

	uqp_dc_attributes(r->type, uhw, &attr);
	if (qp->type == IB_QPT_XRC_TGT)
		return xrc_target_create(qp, hca, qp->xrcd, &attr);
	return qp_create(hca->adapter, &attr, &qp->qp);
}

static int uqp_create(struct ureq *req, struct qp_request *r, struct uqp **out)
{
	struct mlx5_ib_create_qp_resp uhw_resp = {.bfreg_index = BFREG_NOT_OURS};
	struct mlx5_ib_create_qp uhw;
	struct uqp *qp;
	int ret = qp_read_uhw(req, r, &uhw);

	if (ret)
		return ret;
	qp = uqp_new(req, r, &uhw);
	if (!qp)
		return -ENOMEM;
	ret = uqp_create_device(req, r, &uhw, qp);
	if (ret < 0)
		goto free_qp;
	if (ib_qp_type_sends(r->type) && uhw.flags & MLX5_QP_FLAG_UAR_PAGE_INDEX)
		uqp_bell(qp, req->file, uhw.bfreg_index);
	ret = uobj_publish(req->file, &qp->uobj, &uqp_class);
	if (ret < 0)
		goto destroy_qp;
	uqp_count_users(qp, 1);
	if (qp->type == IB_QPT_RAW_PACKET)
		uraw_numbers(qp->qp, &uhw_resp);
	ret = ubuf_write(&req->uhw_out, &uhw_resp, sizeof(uhw_resp));
	if (ret < 0) {
		(void)uobj_destroy(&qp->uobj, NULL);
		return ret;
	}
	*out = qp;
	return 0;

destroy_qp:
	doorbell_user_release(&qp->bell);
	uqp_destroy_device(req->file->hca, qp);
free_qp:
	uobj_unbind_async(&qp->uobj);
	free(qp);
	return ret;
}

#define RECORD(obj, type) ((obj) ? container_of((obj), struct type, uobj) : NULL)

/* The same, over an indirection table if the program named one. */
static int uqp_create_any(struct ureq *req, struct qp_request *r, struct uind_table *table,
			  struct uqp **out)
{
	const struct urss_request rss = {
		.user_handle = r->user_handle,
		.pd = r->pd,
		.table = table,
		.async = r->async,
		.type = r->type,
		.flags = r->flags,
		.has_queues = r->send_cq || r->recv_cq || r->srq || r->cap.max_recv_wr ||
			      r->cap.max_recv_sge,
	};

	return table ? urss_create(req, &rss, out) : uqp_create(req, r, out);
}

static int method_qp_create(struct ureq *req)
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
		.xrcd = RECORD(ureq_obj(req, UVERBS_ATTR_CREATE_QP_XRCD_HANDLE), uxrcd),
		.async = ureq_channel(req, UVERBS_ATTR_CREATE_QP_EVENT_FD),
		.type = ureq_u64(req, UVERBS_ATTR_CREATE_QP_TYPE),
	};
	struct uind_table *table =
		RECORD(ureq_obj(req, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE), uind_table);
	struct uqp *qp;
	int ret = ubuf_read(&cap, &r.cap, sizeof(r.cap));

	if (ret == 0)
		ret = ureq_flags(req, UVERBS_ATTR_CREATE_QP_FLAGS, known, &r.flags);
	if (ret < 0)
		return ret;
	/* Only the kernel's special QPs send under another QP's number. */
	if (ureq_attr(req, UVERBS_ATTR_CREATE_QP_SOURCE_QPN))
		return -EOPNOTSUPP;
	r.sq_sig_all = r.flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
	r.flags &= ~(uint32_t)IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
	ret = uqp_create_any(req, &r, table, &qp);
	if (ret < 0)
		return ret;
	ret = ureq_put(req, UVERBS_ATTR_CREATE_QP_RESP_CAP, &r.cap, sizeof(r.cap));
	if (ret == 0)
		ret = ureq_put_u32(req, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, uqp_number(qp));
	if (ret == 0)
		ret = ureq_put_handle(req, UVERBS_ATTR_CREATE_QP_HANDLE, qp->uobj.handle);
	if (ret < 0)
		(void)uobj_destroy(&qp->uobj, NULL);
	return ret;
}

/* Finds the objects that a command names.  An XRC target names its domain in the place of a PD. */
static int qp_find_parts(struct ufile *f, const struct ib_uverbs_ex_create_qp *cmd,
			 struct qp_request *r)
{
	struct uobj *obj;
	int ret;

	if (cmd->qp_type == IB_QPT_XRC_TGT) {
		obj = uobj_find(f, UOBJ_XRCD, cmd->pd_handle, &ret);
		if (!obj)
			return -EINVAL;
		r->xrcd = container_of(obj, struct uxrcd, uobj);
		return 0;
	}
	obj = uobj_find(f, UOBJ_PD, cmd->pd_handle, &ret);
	if (!obj)
		return ret;
	r->pd = container_of(obj, struct upd, uobj);
	if (cmd->comp_mask & IB_UVERBS_CREATE_QP_MASK_IND_TABLE)
		return 0;
	obj = uobj_find(f, UOBJ_CQ, cmd->send_cq_handle, &ret);
	if (!obj)
		return ret;
	r->send_cq = container_of(obj, struct ucq, uobj);
	if (!ib_qp_type_receives(cmd->qp_type))
		return 0;
	obj = uobj_find(f, UOBJ_CQ, cmd->recv_cq_handle, &ret);
	if (!obj)
		return ret;
	r->recv_cq = container_of(obj, struct ucq, uobj);
	if (!cmd->is_srq)
		return 0;
	obj = uobj_find(f, UOBJ_SRQ, cmd->srq_handle, &ret);
	if (!obj)
		return ret;
	r->srq = container_of(obj, struct usrq, uobj);
	return 0;
}

/* Serves both commands, because the extended one begins with the fields of the legacy one. */
static int uqp_create_by_command(struct ureq *req, const struct ib_uverbs_ex_create_qp *cmd,
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
	struct uobj *table = NULL;
	int ret;

	if (cmd->source_qpn)
		return -EOPNOTSUPP;
	if (cmd->comp_mask & ~(uint32_t)IB_UVERBS_CREATE_QP_MASK_IND_TABLE)
		return -EINVAL;
	ret = qp_check_type(r.type);
	if (ret == 0)
		ret = qp_find_parts(req->file, cmd, &r);
	if (ret == 0 && cmd->comp_mask) {
		table = uobj_find(req->file, UOBJ_IND_TABLE, cmd->rwq_ind_tbl_handle, &ret);
		if (table && cmd->is_srq)
			return -EINVAL;
	}
	if (ret == 0)
		ret = uqp_create_any(req, &r, RECORD(table, uind_table), out);
	if (ret)
		return ret;
	*resp = (struct ib_uverbs_create_qp_resp){
		.qp_handle = (*out)->uobj.handle,
		.qpn = uqp_number(*out),
		.max_send_wr = r.cap.max_send_wr,
		.max_recv_wr = r.cap.max_recv_wr,
		.max_send_sge = r.cap.max_send_sge,
		.max_recv_sge = r.cap.max_recv_sge,
		.max_inline_data = r.cap.max_inline_data,
	};
	return 0;
}

static int cmd_create_qp(struct ureq *req)
{
	struct ib_uverbs_create_qp cmd;
	struct ib_uverbs_ex_create_qp ex = {0};
	struct ib_uverbs_create_qp_resp resp;
	struct uqp *qp;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret)
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
	ret = uqp_create_by_command(req, &ex, &resp, &qp);
	if (ret)
		return ret;
	ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		(void)uobj_destroy(&qp->uobj, NULL);
	return ret;
}

static int cmd_create_qp_ex(struct ureq *req)
{
	struct ib_uverbs_ex_create_qp cmd;
	struct ib_uverbs_ex_create_qp_resp resp = {0};
	struct uqp *qp;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret == 0)
		ret = uqp_create_by_command(req, &cmd, &resp.base, &qp);
	if (ret)
		return ret;
	resp.response_length = (uint32_t)min_u64(sizeof(resp), req->core_out.len);
	ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		(void)uobj_destroy(&qp->uobj, NULL);
	return ret;
}

/* ---- what requests reach this family ---- */

static const struct attr_spec qp_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_QP_HANDLE, IDR(UOBJ_QP)},
	{UVERBS_ATTR_DESTROY_QP_RESP, OUT(sizeof(struct ib_uverbs_destroy_qp_resp))},
};

static const struct attr_spec qp_create_attrs[] = {
	{UVERBS_ATTR_CREATE_QP_HANDLE, ATTR_IDR_NEW},
	{UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, IDR(UOBJ_XRCD), OPT},
	{UVERBS_ATTR_CREATE_QP_PD_HANDLE, IDR(UOBJ_PD), OPT},
	{UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, IDR(UOBJ_SRQ), OPT},
	{UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, IDR(UOBJ_CQ), OPT},
	{UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, IDR(UOBJ_CQ), OPT},
	{UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE, IDR(UOBJ_IND_TABLE), OPT},
	{UVERBS_ATTR_CREATE_QP_USER_HANDLE, IN(8)},
	{UVERBS_ATTR_CREATE_QP_CAP, ATTR_PTR_IN, .zero_trailing = 1,
	 .min = sizeof(struct ib_uverbs_qp_cap), .max = sizeof(struct ib_uverbs_qp_cap)},
	{UVERBS_ATTR_CREATE_QP_TYPE, CONST_IN},
	{UVERBS_ATTR_CREATE_QP_FLAGS, FLAGS_IN, OPT},
	{UVERBS_ATTR_CREATE_QP_SOURCE_QPN, IN(4), OPT},
	{UVERBS_ATTR_CREATE_QP_EVENT_FD, CHANNEL(UCHANNEL_ASYNC), OPT},
	{UVERBS_ATTR_CREATE_QP_RESP_CAP, ATTR_PTR_OUT, .min = sizeof(struct ib_uverbs_qp_cap),
	 .max = UINT16_MAX},
	{UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, OUT(4)},
};

static const struct method_spec methods[] = {
	METHOD(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, method_qp_destroy, qp_destroy_attrs),
	UHW_METHOD(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, method_qp_create, qp_create_attrs),
};

static const struct command_spec commands[] = {
	CMD_RESP_UHW(OPEN_QP, cmd_open_qp, ib_uverbs_open_qp, ib_uverbs_create_qp_resp),
	CMD_RESP(DESTROY_QP, cmd_destroy_qp, ib_uverbs_destroy_qp, ib_uverbs_destroy_qp_resp),
	CMD_RESP_UHW(CREATE_QP, cmd_create_qp, ib_uverbs_create_qp, ib_uverbs_create_qp_resp),
	EX(CREATE_QP, cmd_create_qp_ex, END_OF(struct ib_uverbs_ex_create_qp, create_flags),
	   END_OF(struct ib_uverbs_ex_create_qp_resp, response_length)),
};

const struct uverbs_family uqp_family = {METHODS(methods), COMMANDS(commands)};
