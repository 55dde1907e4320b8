// SPDX-License-Identifier: BSD-2-Clause
/* See uverbs/objects/dc.h.  Checks and their errors are those of the kernel's mlx5 driver. */
#include "driver/uverbs/objects/dc.h"

#include <errno.h>

int uqp_driver_type(const struct mlx5_ib_create_qp *uhw, uint64_t *type)
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

int uqp_check_dc(uint64_t type, const struct usrq *srq, const struct ib_uverbs_qp_cap *cap)
{
	if (type == IB_QPT_DCT)
		return srq ? 0 : -EINVAL;
	if (type == IB_QPT_DCI)
		return cap->max_recv_wr || cap->max_recv_sge ? -EINVAL : 0;
	return 0;
}

uint32_t uqp_dc_flags(uint64_t type)
{
	if (type == IB_QPT_DCT)
		return MLX5_QP_FLAG_TYPE_DCT;
	if (type == IB_QPT_DCI)
		return MLX5_QP_FLAG_TYPE_DCI | MLX5_QP_FLAG_DCI_STREAM;
	return 0;
}

void uqp_dc_attributes(uint64_t type, const struct mlx5_ib_create_qp *uhw,
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
