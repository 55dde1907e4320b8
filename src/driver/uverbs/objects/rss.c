// SPDX-License-Identifier: BSD-2-Clause
/* Queue pairs over an indirection table (RSS), and who may use raw packet QPs at all. */
#include <errno.h>
#include <linux/capability.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "adapter/ste/icm.h"
#include "driver/uverbs/objects/rss.h"

bool uverbs_may_raw(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	if (geteuid() == 0)
		return true;
	return syscall(SYS_capget, &head, data) == 0 && data[0].effective & 1u << CAP_NET_RAW;
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
