// SPDX-License-Identifier: BSD-2-Clause
/*
 * Receive work queues, the indirection tables over them, and queue pairs over a table (RSS); who
 * may use raw packet QPs at all.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter/ste/icm.h"
#include "base/capability.h"
#include "base/log.h"
#include "driver/uverbs/core/file.h"
#include "driver/uverbs/objects/objects.h"
#include "prm/wqe.h"
#include "usermem/usermem.h"

/* ---- work queues and tables ---- */

#define UIDX_MASK   0xffffffu
#define RQ_DESC_MAX 512u /* max_rq_desc_sz of the context */

/* enum ib_wq_attr_mask; in no UAPI header. */
enum { WQ_ATTR_STATE = 1 << 0, WQ_ATTR_CUR_STATE = 1 << 1, WQ_ATTR_FLAGS = 1 << 2 };
#define WQ_ATTR_ALL (WQ_ATTR_STATE | WQ_ATTR_CUR_STATE | WQ_ATTR_FLAGS)

struct wq_request {
	uint64_t user_handle;
	struct upd *pd;
	struct ucq *cq;
	struct uchannel *async;
	uint64_t type;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t flags;
};

static int wq_request_check(struct ureq *req, const struct wq_request *r,
			    const struct mlx5_ib_create_wq *uhw)
{
	int ret;

	if (!ufile_port(req->file)->ethernet || r->type != IB_UVERBS_WQT_RQ)
		return -EOPNOTSUPP;
	/* Padding to whole cache lines only helps a bus; memory has none. */
	if (r->flags & ~(uint32_t)(IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING |
				   IB_UVERBS_WQ_FLAGS_PCI_WRITE_END_PADDING)) {
		log_info("uverbs: work queue flags 0x%x are not supported", r->flags);
		return -EOPNOTSUPP;
	}
	/* refuses striding and signed queues */
	if (uhw->comp_mask || uhw->flags)
		return -EOPNOTSUPP;
	if (r->max_wr > ADAPTER_MAX_QP_WR || r->max_sge > ADAPTER_MAX_SGE ||
	    !is_power_of_two(uhw->rq_wqe_count) || uhw->rq_wqe_count > ADAPTER_MAX_QP_WR ||
	    uhw->rq_wqe_shift > 31 || 1u << uhw->rq_wqe_shift < sizeof(struct wqe_data) ||
	    1u << uhw->rq_wqe_shift > RQ_DESC_MAX)
		return -EINVAL;
	if (uhw->user_index > UIDX_MASK || uhw->db_addr % sizeof(uint32_t))
		return -EINVAL;
	ret = umem_populate(uhw->buf_addr, (uint64_t)uhw->rq_wqe_count << uhw->rq_wqe_shift, true);
	return ret ? ret : umem_populate(uhw->db_addr, sizeof(uint32_t), true);
}

static void uwq_free(struct uobj *obj)
{
	struct uwq *wq = container_of(obj, struct uwq, uobj);

	wq_destroy(wq->wq);
	wq->pd->uobj.users--;
	wq->cq->uobj.users--;
}

static uint32_t uwq_number(struct uobj *obj)
{
	return wq_number(container_of(obj, struct uwq, uobj)->wq);
}

static const struct uobj_class uwq_class = {
	.type = UOBJ_WQ,
	.free = uwq_free,
	.number = uwq_number,
};

static int uwq_create_device(struct ureq *req, const struct wq_request *r,
			     const struct mlx5_ib_create_wq *uhw, struct uwq *wq)
{
	const struct wq_attr attr = {
		.pdn = r->pd->pdn,
		.uidx = uhw->user_index,
		.cq = r->cq->cq,
		.buf = (void *)(uintptr_t)uhw->buf_addr,
		.wqes = uhw->rq_wqe_count,
		.wqe_bytes = 1u << uhw->rq_wqe_shift,
		.dbrec = (void *)(uintptr_t)uhw->db_addr,
		.strip_vlan = r->flags & IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING,
		.async = uobj_async,
		.user = &wq->uobj,
	};

	return wq_create(req->file->hca->adapter, &attr, &wq->wq);
}

static int uwq_create(struct ureq *req, const struct wq_request *r, struct uwq **out)
{
	struct mlx5_ib_create_wq uhw;
	struct mlx5_ib_create_wq_resp uhw_resp = {0};
	struct uwq *wq;
	int ret = ubuf_read(&req->uhw_in, &uhw, sizeof(uhw));

	if (ret == 0)
		ret = wq_request_check(req, r, &uhw);
	if (ret < 0)
		return ret;
	wq = calloc(1, sizeof(*wq));
	if (!wq)
		return -ENOMEM;
	wq->uobj.user_handle = r->user_handle;
	wq->pd = r->pd;
	wq->cq = r->cq;
	uobj_bind_async(&wq->uobj, req->file, r->async);
	ret = uwq_create_device(req, r, &uhw, wq);
	if (ret < 0)
		goto free_wq;
	ret = uobj_publish(req->file, &wq->uobj, &uwq_class);
	if (ret < 0)
		goto destroy_wq;
	r->pd->uobj.users++;
	r->cq->uobj.users++;
	uhw_resp.response_length = (uint32_t)min_u64(sizeof(uhw_resp), req->uhw_out.len);
	ret = ubuf_write(&req->uhw_out, &uhw_resp, sizeof(uhw_resp));
	if (ret < 0) {
		(void)uobj_destroy(&wq->uobj, NULL);
		return ret;
	}
	*out = wq;
	return 0;

destroy_wq:
	wq_destroy(wq->wq);
free_wq:
	uobj_unbind_async(&wq->uobj);
	free(wq);
	return ret;
}

static int method_wq_create(struct ureq *req)
{
	struct wq_request r = {
		.user_handle = ureq_u64(req, UVERBS_ATTR_CREATE_WQ_USER_HANDLE),
		.pd = container_of(ureq_obj(req, UVERBS_ATTR_CREATE_WQ_PD_HANDLE), struct upd,
				   uobj),
		.cq = container_of(ureq_obj(req, UVERBS_ATTR_CREATE_WQ_CQ_HANDLE), struct ucq,
				   uobj),
		.async = ureq_channel(req, UVERBS_ATTR_CREATE_WQ_EVENT_FD),
		.type = ureq_u64(req, UVERBS_ATTR_CREATE_WQ_TYPE),
		.max_wr = ureq_u32(req, UVERBS_ATTR_CREATE_WQ_MAX_WR),
		.max_sge = ureq_u32(req, UVERBS_ATTR_CREATE_WQ_MAX_SGE),
	};
	const uint32_t known = IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING | IB_UVERBS_WQ_FLAGS_SCATTER_FCS |
			       IB_UVERBS_WQ_FLAGS_DELAY_DROP |
			       IB_UVERBS_WQ_FLAGS_PCI_WRITE_END_PADDING;
	struct uwq *wq;
	int ret = ureq_flags(req, UVERBS_ATTR_CREATE_WQ_FLAGS, known, &r.flags);

	if (ret == 0)
		ret = uwq_create(req, &r, &wq);
	if (ret)
		return ret;
	ret = ureq_put_u32(req, UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, r.max_wr);
	if (ret == 0)
		ret = ureq_put_u32(req, UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, r.max_sge);
	if (ret == 0)
		ret = ureq_put_u32(req, UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, wq_number(wq->wq));
	if (ret == 0)
		ret = ureq_put_handle(req, UVERBS_ATTR_CREATE_WQ_HANDLE, wq->uobj.handle);
	if (ret < 0)
		(void)uobj_destroy(&wq->uobj, NULL);
	return ret;
}

static int cmd_create_wq_ex(struct ureq *req)
{
	struct ib_uverbs_ex_create_wq cmd;
	struct ib_uverbs_ex_create_wq_resp resp = {0};
	struct wq_request r = {0};
	struct uobj *pd, *cq;
	struct uwq *wq;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	if (cmd.comp_mask)
		return -EOPNOTSUPP;
	pd = uobj_find(req->file, UOBJ_PD, cmd.pd_handle, &ret);
	if (!pd)
		return ret;
	cq = uobj_find(req->file, UOBJ_CQ, cmd.cq_handle, &ret);
	if (!cq)
		return ret;
	r.user_handle = cmd.user_handle;
	r.pd = container_of(pd, struct upd, uobj);
	r.cq = container_of(cq, struct ucq, uobj);
	r.type = cmd.wq_type;
	r.max_wr = cmd.max_wr;
	r.max_sge = cmd.max_sge;
	r.flags = cmd.create_flags;
	ret = uwq_create(req, &r, &wq);
	if (ret < 0)
		return ret;
	resp.wq_handle = wq->uobj.handle;
	resp.max_wr = cmd.max_wr;
	resp.max_sge = cmd.max_sge;
	resp.wqn = wq_number(wq->wq);
	resp.response_length = (uint32_t)min_u64(sizeof(resp), req->core_out.len);
	ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		(void)uobj_destroy(&wq->uobj, NULL);
	return ret;
}

static int cmd_modify_wq_ex(struct ureq *req)
{
	struct ib_uverbs_ex_modify_wq cmd;
	enum ib_wq_state now, cur, next;
	struct uobj *obj;
	struct wq *wq;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	if (!cmd.attr_mask || cmd.attr_mask & ~(uint32_t)WQ_ATTR_ALL)
		return -EINVAL;
	obj = uobj_find(req->file, UOBJ_WQ, cmd.wq_handle, &ret);
	if (!obj)
		return ret;
	wq = container_of(obj, struct uwq, uobj)->wq;
	if ((cmd.attr_mask & WQ_ATTR_CUR_STATE && cmd.curr_wq_state > IB_WQS_ERR) ||
	    (cmd.attr_mask & WQ_ATTR_STATE && cmd.wq_state > IB_WQS_ERR))
		return -EINVAL;
	if (cmd.attr_mask & WQ_ATTR_FLAGS &&
	    cmd.flags_mask & ~(uint32_t)IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING)
		return -EOPNOTSUPP;
	now = wq_state(wq);
	cur = cmd.attr_mask & WQ_ATTR_CUR_STATE ? cmd.curr_wq_state : now;
	next = cmd.attr_mask & WQ_ATTR_STATE ? cmd.wq_state : cur;
	if (next != cur || cur != now || cmd.attr_mask & WQ_ATTR_STATE)
		ret = wq_modify(wq, cur, next);
	if (ret == 0 && cmd.attr_mask & WQ_ATTR_FLAGS && cmd.flags_mask)
		wq_strip_vlan(wq, cmd.flags & IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING);
	return ret;
}

static int method_wq_destroy(struct ureq *req)
{
	struct uevents events = {0};
	int ret = uobj_destroy(ureq_obj(req, UVERBS_ATTR_DESTROY_WQ_HANDLE), &events);

	return ret < 0 ? ret : ureq_put_u32(req, UVERBS_ATTR_DESTROY_WQ_RESP, events.async);
}

static int cmd_destroy_wq_ex(struct ureq *req)
{
	struct ib_uverbs_ex_destroy_wq cmd;
	struct ib_uverbs_ex_destroy_wq_resp resp = {0};
	struct uevents events = {0};
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	if (cmd.comp_mask)
		return -EOPNOTSUPP;
	ret = ureq_destroy(req, UOBJ_WQ, cmd.wq_handle, &events);
	if (ret < 0)
		return ret;
	resp.response_length = (uint32_t)min_u64(sizeof(resp), req->core_out.len);
	resp.events_reported = events.async;
	return ubuf_write(&req->core_out, &resp, sizeof(resp));
}

/* ---- indirection tables ---- */

static int ind_table_fill(struct ureq *req, struct uind_table *t)
{
	const uint8_t *handles = (const uint8_t *)req->core_in.ptr +
				 offsetof(struct ib_uverbs_ex_create_rwq_ind_table, wq_handles);

	for (uint32_t i = 0; i < 1u << t->log_size; i++) {
		uint32_t handle;
		struct uobj *obj;
		int ret;

		if (!usermem_copy(&handle, handles + i * sizeof(handle), sizeof(handle)))
			return -EFAULT;
		obj = uobj_find(req->file, UOBJ_WQ, handle, &ret);
		if (!obj)
			return -EINVAL;
		t->wqs[i] = container_of(obj, struct uwq, uobj);
	}
	return 0;
}

static void uind_table_free(struct uobj *obj)
{
	struct uind_table *t = container_of(obj, struct uind_table, uobj);

	for (uint32_t i = 0; i < 1u << t->log_size; i++)
		t->wqs[i]->uobj.users--;
}

static const struct uobj_class uind_table_class = {
	.type = UOBJ_IND_TABLE,
	.free = uind_table_free,
};

static int cmd_create_rwq_ind_tbl_ex(struct ureq *req)
{
	struct ib_uverbs_ex_create_rwq_ind_table cmd;
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {0};
	struct mlx5_ib_create_rwq_ind_tbl_resp uhw_resp = {0};
	struct ubuf head = {req->core_in.ptr, sizeof(cmd)};
	struct uind_table *t;
	size_t n;
	int ret = ubuf_read(&head, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	if (cmd.comp_mask)
		return -EOPNOTSUPP;
	if (cmd.log_ind_tbl_size > ADAPTER_MAX_LOG_IND_TBL)
		return -EINVAL;
	n = (size_t)1 << cmd.log_ind_tbl_size;
	if (!range_inside(sizeof(cmd), n * sizeof(uint32_t), req->core_in.len))
		return -ENOSPC;
	t = calloc(1, sizeof(*t) + n * sizeof(t->wqs[0]));
	if (!t)
		return -ENOMEM;
	t->log_size = cmd.log_ind_tbl_size;
	ret = ind_table_fill(req, t);
	if (ret == 0)
		ret = uobj_publish(req->file, &t->uobj, &uind_table_class);
	if (ret < 0) {
		free(t);
		return ret;
	}
	for (size_t i = 0; i < n; i++)
		t->wqs[i]->uobj.users++;
	resp.ind_tbl_handle = t->uobj.handle;
	resp.ind_tbl_num = t->uobj.handle;
	resp.response_length = (uint32_t)min_u64(sizeof(resp), req->core_out.len);
	uhw_resp.response_length = (uint32_t)min_u64(sizeof(uhw_resp), req->uhw_out.len);
	ret = ubuf_write(&req->uhw_out, &uhw_resp, sizeof(uhw_resp));
	if (ret == 0)
		ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		(void)uobj_destroy(&t->uobj, NULL);
	return ret;
}

static int cmd_destroy_rwq_ind_tbl_ex(struct ureq *req)
{
	struct ib_uverbs_ex_destroy_rwq_ind_table cmd;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	if (cmd.comp_mask)
		return -EOPNOTSUPP;
	return ureq_destroy(req, UOBJ_IND_TABLE, cmd.ind_tbl_handle, NULL);
}

/* ---- queue pairs over a table ---- */

bool uverbs_may_raw(void)
{
	return geteuid() == 0 || capability_is_effective(CAP_NET_RAW);
}

static int rss_attr_decode(const struct mlx5_ib_create_qp_rss *uhw, uint32_t log_size,
			   struct rss_attr *rss)
{
	const uint32_t granted =
		MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC | MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC;

	/* refuses tunnels, and hashes of what is inside them */
	if (uhw->comp_mask || uhw->flags & ~granted ||
	    uhw->rx_hash_fields_mask & ~(uint64_t)RSS_ALL_FIELDS)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < array_size(uhw->reserved); i++)
		if (uhw->reserved[i])
			return -EOPNOTSUPP;
	if (uhw->rx_hash_function != MLX5_RX_HASH_FUNC_TOEPLITZ)
		return -EOPNOTSUPP;
	if (uhw->rx_key_len != RSS_KEY_BYTES)
		return -EINVAL;
	rss->fields = (uint32_t)uhw->rx_hash_fields_mask;
	rss->log_size = log_size;
	memcpy(rss->key, uhw->rx_hash_key, RSS_KEY_BYTES);
	return 0;
}

uint32_t uraw_loopback(uint32_t flags)
{
	return (flags & MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC ? QP_LOOPBACK_UC : 0) |
	       (flags & MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC ? QP_LOOPBACK_MC : 0);
}

void uraw_numbers(const struct qp *qp, struct mlx5_ib_create_qp_resp *resp)
{
	resp->comp_mask = MLX5_IB_CREATE_QP_RESP_MASK_TIRN | MLX5_IB_CREATE_QP_RESP_MASK_TISN |
			  MLX5_IB_CREATE_QP_RESP_MASK_RQN | MLX5_IB_CREATE_QP_RESP_MASK_SQN |
			  MLX5_IB_CREATE_QP_RESP_MASK_TIR_ICM_ADDR;
	resp->tir_icm_addr = steer_address(STEER_TIR, qp_number(qp));
	resp->tirn = resp->tisn = resp->rqn = resp->sqn = qp_number(qp);
}

static int urss_create_device(struct ureq *req, const struct urss_request *r,
			      const struct rss_attr *template, uint32_t flags, struct uqp *qp)
{
	size_t n = (size_t)1 << r->table->log_size;
	struct rss_attr rss = *template;
	struct wq **wqs = calloc(n, sizeof(struct wq *));
	struct qp_create_attr attr = {
		.type = IB_QPT_RAW_PACKET,
		.pdn = r->pd->pdn,
		.loopback = uraw_loopback(flags),
		.domain = req->file,
		.rss = &rss,
		.async = uobj_async,
		.user = &qp->uobj,
	};
	int ret;

	if (!wqs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		wqs[i] = r->table->wqs[i]->wq;
	rss.wqs = wqs;
	ret = qp_create(req->file->hca->adapter, &attr, &qp->qp);
	free(wqs);
	return ret;
}

int urss_create(struct ureq *req, const struct urss_request *r, struct uqp **out)
{
	struct mlx5_ib_create_qp_resp uhw_resp = {0};
	struct mlx5_ib_create_qp_rss uhw;
	struct rss_attr rss = {0};
	struct uqp *qp;
	int ret;

	if (r->type != IB_QPT_RAW_PACKET)
		return -EOPNOTSUPP;
	if (!uverbs_may_raw())
		return -EPERM;
	if (!r->pd || r->flags || r->has_queues)
		return -EINVAL;
	ret = ubuf_read(&req->uhw_in, &uhw, sizeof(uhw));
	if (ret == 0)
		ret = rss_attr_decode(&uhw, r->table->log_size, &rss);
	if (ret < 0)
		return ret;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp->uobj.user_handle = r->user_handle;
	qp->pd = r->pd;
	qp->ind_table = r->table;
	qp->type = IB_QPT_RAW_PACKET;
	uobj_bind_async(&qp->uobj, req->file, r->async);
	ret = urss_create_device(req, r, &rss, uhw.flags, qp);
	if (ret < 0)
		goto free_qp;
	ret = uobj_publish(req->file, &qp->uobj, &uqp_class);
	if (ret < 0)
		goto destroy_qp;
	r->pd->uobj.users++;
	r->table->uobj.users++;
	uhw_resp.comp_mask =
		MLX5_IB_CREATE_QP_RESP_MASK_TIRN | MLX5_IB_CREATE_QP_RESP_MASK_TIR_ICM_ADDR;
	uhw_resp.tir_icm_addr = steer_address(STEER_TIR, qp_number(qp->qp));
	uhw_resp.tirn = qp_number(qp->qp);
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

/* ---- what requests reach this family ---- */

static const struct attr_spec wq_create_attrs[] = {
	{UVERBS_ATTR_CREATE_WQ_HANDLE, ATTR_IDR_NEW},
	{UVERBS_ATTR_CREATE_WQ_PD_HANDLE, IDR(UOBJ_PD)},
	{UVERBS_ATTR_CREATE_WQ_CQ_HANDLE, IDR(UOBJ_CQ)},
	{UVERBS_ATTR_CREATE_WQ_USER_HANDLE, IN(8)},
	{UVERBS_ATTR_CREATE_WQ_TYPE, CONST_IN},
	{UVERBS_ATTR_CREATE_WQ_EVENT_FD, CHANNEL(UCHANNEL_ASYNC), OPT},
	{UVERBS_ATTR_CREATE_WQ_MAX_WR, IN(4)},
	{UVERBS_ATTR_CREATE_WQ_MAX_SGE, IN(4)},
	{UVERBS_ATTR_CREATE_WQ_FLAGS, FLAGS_IN},
	{UVERBS_ATTR_CREATE_WQ_RESP_MAX_WR, OUT(4)},
	{UVERBS_ATTR_CREATE_WQ_RESP_MAX_SGE, OUT(4)},
	{UVERBS_ATTR_CREATE_WQ_RESP_WQ_NUM, OUT(4), OPT},
};

static const struct attr_spec wq_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_WQ_HANDLE, IDR(UOBJ_WQ)},
	{UVERBS_ATTR_DESTROY_WQ_RESP, OUT(4)},
};

static const struct attr_spec ind_table_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_RWQ_IND_TBL_HANDLE, IDR(UOBJ_IND_TABLE)},
};

static const struct method_spec methods[] = {
	UHW_METHOD(UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_CREATE, method_wq_create, wq_create_attrs),
	METHOD(UVERBS_OBJECT_WQ, UVERBS_METHOD_WQ_DESTROY, method_wq_destroy, wq_destroy_attrs),
	METHOD(UVERBS_OBJECT_RWQ_IND_TBL, UVERBS_METHOD_RWQ_IND_TBL_DESTROY, method_destroy,
	       ind_table_destroy_attrs),
};

static const struct command_spec commands[] = {
	EX(CREATE_WQ, cmd_create_wq_ex, END_OF(struct ib_uverbs_ex_create_wq, max_sge),
	   END_OF(struct ib_uverbs_ex_create_wq_resp, wqn)),
	EX(MODIFY_WQ, cmd_modify_wq_ex, END_OF(struct ib_uverbs_ex_modify_wq, curr_wq_state), 0),
	EX(DESTROY_WQ, cmd_destroy_wq_ex, sizeof(struct ib_uverbs_ex_destroy_wq),
	   END_OF(struct ib_uverbs_ex_destroy_wq_resp, events_reported)),
	EX(CREATE_RWQ_IND_TBL, cmd_create_rwq_ind_tbl_ex,
	   sizeof(struct ib_uverbs_ex_create_rwq_ind_table),
	   END_OF(struct ib_uverbs_ex_create_rwq_ind_table_resp, ind_tbl_num)),
	EX(DESTROY_RWQ_IND_TBL, cmd_destroy_rwq_ind_tbl_ex,
	   sizeof(struct ib_uverbs_ex_destroy_rwq_ind_table), 0),
};

const struct uverbs_family uwq_family = {METHODS(methods), COMMANDS(commands)};
