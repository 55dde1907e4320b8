// SPDX-License-Identifier: BSD-2-Clause
/* What changes an existing queue pair: modification, query, multicast groups. */
#include <assert.h>
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stddef.h>
#include <string.h>

#include "base/explain.h"
#include "driver/uverbs/core/file.h"
#include "driver/uverbs/objects/objects.h"

/* ---- modification and query ---- */

/*
 * Modify and query of queue pairs: between the ABI's structs and the device's.  This file makes the
 * checks that need the port, the device those of the state machine.
 */

#define ATTR_MASK_STANDARD ((1u << 21) - 1) /* up to IB_QP_DEST_QPN */
#define QKEY_PRIVILEGED	   (1u << 31)

static void dest_to_ah(const struct ib_uverbs_qp_dest *dest, struct ib_uverbs_ah_attr *ah)
{
	*ah = (struct ib_uverbs_ah_attr){
		.grh.flow_label = dest->flow_label,
		.grh.sgid_index = dest->sgid_index,
		.grh.hop_limit = dest->hop_limit,
		.grh.traffic_class = dest->traffic_class,
		.dlid = dest->dlid,
		.sl = dest->sl,
		.src_path_bits = dest->src_path_bits,
		.static_rate = dest->static_rate,
		.is_global = dest->is_global,
		.port_num = dest->port_num,
	};
	memcpy(ah->grh.dgid, dest->dgid, sizeof(ah->grh.dgid));
}

static void ah_to_dest(const struct ib_ah *ah, struct ib_uverbs_qp_dest *dest)
{
	*dest = (struct ib_uverbs_qp_dest){
		.dlid = ah->dlid,
		.sl = ah->sl,
		.src_path_bits = ah->src_path_bits,
		.static_rate = ah->static_rate,
		.is_global = ah->is_global,
		.port_num = ah->port_num,
	};
	if (!ah->is_global)
		return;
	memcpy(dest->dgid, ah->dgid.raw, sizeof(dest->dgid));
	dest->flow_label = ah->flow_label;
	dest->sgid_index = ah->sgid_index;
	dest->hop_limit = ah->hop_limit;
	dest->traffic_class = ah->traffic_class;
}

/* The paths that the mask names.  Only a connected QP needs to know the MAC of its peer. */
static int decode_paths(const struct ufile *f, enum ib_qp_type type,
			const struct ib_uverbs_modify_qp *cmd, struct qp_attr *attr)
{
	struct ib_uverbs_ah_attr ah;
	int ret = 0;

	if (cmd->attr_mask & IB_QP_AV) {
		dest_to_ah(&cmd->dest, &ah);
		ret = uah_decode(f, &ah, &attr->ah);
		if (ret == 0 && type != IB_QPT_DCI && type != IB_QPT_DCT)
			ret = uah_resolve(f, &attr->ah);
	}
	if (ret == 0 && cmd->attr_mask & IB_QP_ALT_PATH) {
		if (ufile_port(f)->ethernet)
			return explained(-EINVAL,
					 "IBV_QP_ALT_PATH: Linux has no alternate paths on RoCE");
		if (cmd->alt_dest.port_num != cmd->alt_port_num)
			return explained(-EINVAL, "alt_ah_attr.port_num is %u, and alt_port_num %u",
					 cmd->alt_dest.port_num, cmd->alt_port_num);
		dest_to_ah(&cmd->alt_dest, &ah);
		ret = uah_decode(f, &ah, &attr->alt_ah);
	}
	return ret;
}

static int qp_attr_decode(const struct ufile *f, enum ib_qp_type type,
			  const struct ib_uverbs_modify_qp *cmd, struct qp_attr *attr)
{
	int ret;

	*attr = (struct qp_attr){
		.state = cmd->qp_state,
		.cur_state = cmd->cur_qp_state,
		.path_mtu = cmd->path_mtu,
		.path_mig_state = cmd->path_mig_state,
		.qkey = cmd->qkey,
		.rq_psn = cmd->rq_psn & IB_PSN_MASK,
		.sq_psn = cmd->sq_psn & IB_PSN_MASK,
		.dest_qpn = cmd->dest_qp_num & IB_QPN_MASK,
		.access = cmd->qp_access_flags,
		.pkey_index = cmd->pkey_index,
		.alt_pkey_index = cmd->alt_pkey_index,
		.en_sqd_async_notify = cmd->en_sqd_async_notify,
		.max_rd_atomic = cmd->max_rd_atomic,
		.max_dest_rd_atomic = cmd->max_dest_rd_atomic,
		.min_rnr_timer = cmd->min_rnr_timer & 0x1f, /* 5 bits each on the wire */
		.port_num = cmd->port_num,
		.timeout = cmd->timeout & 0x1f,
		.retry_cnt = cmd->retry_cnt & 0x7,
		.rnr_retry = cmd->rnr_retry & 0x7,
		.alt_port_num = cmd->alt_port_num,
		.alt_timeout = cmd->alt_timeout & 0x1f,
	};
	ret = ufile_check_qp_attr(f, attr, cmd->attr_mask);
	if (ret < 0)
		return ret;
	if (cmd->attr_mask & IB_QP_QKEY && cmd->qkey & QKEY_PRIVILEGED && !uverbs_may_raw())
		return explained(-EPERM,
				 "a Q_Key whose highest bit is set needs CAP_NET_RAW (IBTA 3.5.3)");
	return decode_paths(f, type, cmd, attr);
}

/* Half an XRC connection ignores the other half's attributes, because programs set those of RC. */
static uint32_t qp_attr_mask_for(enum ib_qp_type type, uint32_t mask)
{
	switch (type) {
	case IB_QPT_XRC_INI:
		return mask & ~(uint32_t)(IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	case IB_QPT_XRC_TGT:
		return mask &
		       ~(uint32_t)(IB_QP_MAX_QP_RD_ATOMIC | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY);
	default:
		return mask;
	}
}

static struct uqp *uqp_find(struct ureq *req, uint32_t handle, int *err)
{
	struct uobj *obj = uobj_find(req->file, UOBJ_QP, handle, err);

	return obj ? container_of(obj, struct uqp, uobj) : NULL;
}

static int uqp_modify(struct ureq *req, struct uqp *qp, const struct ib_uverbs_modify_qp *cmd,
		      uint32_t rate_limit)
{
	struct qp_attr attr;
	int ret = uqp_check_modify_dc(qp, cmd, req->uhw_out.len);

	/* Other types of QP have no such attribute. */
	if (cmd->attr_mask & IB_QP_RATE_LIMIT && rate_limit && qp->type == IB_QPT_RAW_PACKET)
		return explained(-EOPNOTSUPP, "rate_limit: the device has no packet pacing");
	if (ret == 0)
		ret = qp_attr_decode(req->file, qp->type, cmd, &attr);
	if (ret)
		return ret;
	if (cmd->attr_mask & IB_QP_STATE && attr.state == IB_QPS_ERR) {
		struct qp_attr old;

		qp_query(qp->qp, &old);
		if (old.state == IB_QPS_RESET)
			return explained(-EINVAL, "a QP cannot go from state RESET to ERR");
	}
	attr.rate_limit = rate_limit;
	ret = qp_modify(qp->qp, &attr, qp_attr_mask_for(qp->type, cmd->attr_mask));
	/* Before RTR a store to the doorbell means nothing; in the error state it means that there
	 * is something to flush. */
	if (ret == 0 && cmd->attr_mask & IB_QP_STATE)
		doorbell_live(&qp->bell, attr.state >= IB_QPS_RTR);
	return ret;
}

static int cmd_modify_qp(struct ureq *req)
{
	struct ib_uverbs_modify_qp cmd;
	struct uqp *qp;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	if (cmd.attr_mask & ~ATTR_MASK_STANDARD)
		return -EOPNOTSUPP;
	qp = uqp_find(req, cmd.qp_handle, &ret);
	return qp ? uqp_modify(req, qp, &cmd, 0) : ret;
}

static int cmd_modify_qp_ex(struct ureq *req)
{
	struct ib_uverbs_ex_modify_qp cmd;
	struct ib_uverbs_ex_modify_qp_resp resp = {0};
	struct mlx5_ib_modify_qp uhw;
	struct mlx5_ib_modify_qp_resp uhw_resp = {0};
	struct uqp *qp;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret == 0)
		ret = ubuf_read(&req->uhw_in, &uhw, sizeof(uhw));
	if (ret)
		return ret;
	if (cmd.base.attr_mask & ~(ATTR_MASK_STANDARD | IB_QP_RATE_LIMIT) || uhw.comp_mask ||
	    uhw.burst_info.reserved)
		return -EOPNOTSUPP;
	qp = uqp_find(req, cmd.base.qp_handle, &ret);
	if (!qp)
		return ret;
	ret = uqp_modify(req, qp, &cmd.base, cmd.rate_limit);
	if (ret)
		return ret;
	if (qp->type == IB_QPT_DCT)
		uhw_resp.dctn = uqp_number(qp);
	resp.response_length = (uint32_t)min_u64(sizeof(resp), req->core_out.len);
	uhw_resp.response_length = (uint32_t)min_u64(sizeof(uhw_resp), req->uhw_out.len);
	ret = ubuf_write(&req->uhw_out, &uhw_resp, sizeof(uhw_resp));
	return ret < 0 ? ret : ubuf_write(&req->core_out, &resp, sizeof(resp));
}

static int cmd_query_qp(struct ureq *req)
{
	struct ib_uverbs_query_qp cmd;
	struct ib_uverbs_query_qp_resp resp = {0};
	struct qp_attr attr;
	struct uobj *obj;
	struct uqp *qp;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret < 0)
		return ret;
	obj = uobj_find(req->file, UOBJ_QP, cmd.qp_handle, &ret);
	if (!obj)
		return ret;
	qp = container_of(obj, struct uqp, uobj);
	/* it distributes frames and has no state */
	if (qp->ind_table)
		return -ENOSYS;
	qp_query(qp->qp, &attr);

	ah_to_dest(&attr.ah, &resp.dest);
	ah_to_dest(&attr.alt_ah, &resp.alt_dest);
	/* Only the library knows the limits of the send side, and fills them in. */
	resp.max_recv_wr = qp->max_recv_wr;
	resp.max_recv_sge = qp->max_recv_sge;
	resp.qkey = attr.qkey;
	resp.rq_psn = attr.rq_psn;
	resp.sq_psn = attr.sq_psn;
	resp.dest_qp_num = attr.dest_qpn;
	resp.qp_access_flags = attr.access;
	resp.pkey_index = attr.pkey_index;
	resp.alt_pkey_index = attr.alt_pkey_index;
	resp.qp_state = (uint8_t)attr.state;
	resp.cur_qp_state = (uint8_t)attr.cur_state;
	resp.path_mtu = (uint8_t)attr.path_mtu;
	resp.path_mig_state = (uint8_t)attr.path_mig_state;
	resp.sq_draining = attr.sq_draining;
	resp.max_rd_atomic = attr.max_rd_atomic;
	resp.max_dest_rd_atomic = attr.max_dest_rd_atomic;
	resp.min_rnr_timer = attr.min_rnr_timer;
	resp.port_num = attr.port_num;
	resp.timeout = attr.timeout;
	resp.retry_cnt = attr.retry_cnt;
	resp.rnr_retry = attr.rnr_retry;
	resp.alt_port_num = attr.alt_port_num;
	resp.alt_timeout = attr.alt_timeout;
	resp.sq_sig_all = qp->sq_sig_all;
	return ubuf_write(&req->core_out, &resp, sizeof(resp));
}

/* ---- multicast groups ---- */

/* Datagram QPs join and leave multicast groups. */

/* IBTA 4.1.3: multicast LIDs, and the permissive one, which is not one of them. */
#define MLID_FIRST     0xc000u
#define LID_PERMISSIVE 0xffffu

/* Returns the QP, or NULL, and then *ret says why. */
static struct uqp *mcast_decode(struct ureq *req, const struct ib_uverbs_attach_mcast *cmd,
				union ib_gid *gid, int *ret)
{
	struct uobj *obj = uobj_find(req->file, UOBJ_QP, cmd->qp_handle, ret);
	struct uqp *qp;

	if (!obj)
		return NULL;
	*ret = -EINVAL;
	qp = container_of(obj, struct uqp, uobj);
	memcpy(gid->raw, cmd->gid, sizeof(gid->raw));
	if (qp->type != IB_QPT_UD || !ib_gid_is_multicast(gid))
		return NULL;
	/* RoCE has no LIDs (annex A16). */
	if (!ufile_port(req->file)->ethernet &&
	    (cmd->mlid < MLID_FIRST || cmd->mlid == LID_PERMISSIVE))
		return NULL;
	return qp;
}

static_assert(sizeof(struct ib_uverbs_attach_mcast) == sizeof(struct ib_uverbs_detach_mcast) &&
		      offsetof(struct ib_uverbs_attach_mcast, mlid) ==
			      offsetof(struct ib_uverbs_detach_mcast, mlid),
	      "one layout for both commands");

static struct uqp *mcast_read(struct ureq *req, struct ib_uverbs_attach_mcast *cmd,
			      union ib_gid *gid, int *ret)
{
	*ret = ubuf_read(&req->core_in, cmd, sizeof(*cmd));
	return *ret < 0 ? NULL : mcast_decode(req, cmd, gid, ret);
}

static int cmd_attach_mcast(struct ureq *req)
{
	struct ib_uverbs_attach_mcast cmd;
	union ib_gid gid;
	int ret;
	struct uqp *qp = mcast_read(req, &cmd, &gid, &ret);

	if (!qp)
		return ret;
	ret = qp_attach_mcast(qp->qp, &gid, cmd.mlid);
	/* attaching once more is no error, and does not count */
	if (ret > 0)
		qp->groups++;
	return ret < 0 ? ret : 0;
}

static int cmd_detach_mcast(struct ureq *req)
{
	struct ib_uverbs_attach_mcast cmd;
	union ib_gid gid;
	int ret;
	struct uqp *qp = mcast_read(req, &cmd, &gid, &ret);

	if (!qp)
		return ret;
	ret = qp_detach_mcast(qp->qp, &gid, cmd.mlid);
	if (ret == 0)
		qp->groups--;
	return ret;
}

/* ---- what requests reach this family ---- */

static const struct command_spec commands[] = {
	CMD_RESP(QUERY_QP, cmd_query_qp, ib_uverbs_query_qp, ib_uverbs_query_qp_resp),
	CMD(MODIFY_QP, cmd_modify_qp, ib_uverbs_modify_qp),
	EX(MODIFY_QP, cmd_modify_qp_ex, offsetof(struct ib_uverbs_ex_modify_qp, rate_limit), 0),
	CMD(ATTACH_MCAST, cmd_attach_mcast, ib_uverbs_attach_mcast),
	CMD(DETACH_MCAST, cmd_detach_mcast, ib_uverbs_detach_mcast),
};

const struct uverbs_family uqp_attr_family = {COMMANDS(commands)};
