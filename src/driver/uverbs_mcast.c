// SPDX-License-Identifier: BSD-2-Clause
/* Datagram QPs join and leave multicast groups. */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

#include "driver/uverbs_objects.h"

/* IBTA 4.1.3: multicast LIDs, and the permissive one that is none of them. */
#define MLID_FIRST     0xc000u
#define LID_PERMISSIVE 0xffffu

static int decode(struct ureq *req, const uint8_t raw[16], uint32_t handle, uint16_t mlid,
		  struct uqp **qp, union ib_gid *gid)
{
	struct uobj *obj;
	int ret;

	obj = uobj_find(req->file, UOBJ_QP, handle, &ret);
	if (!obj)
		return ret;
	*qp = container_of(obj, struct uqp, uobj);
	memcpy(gid->raw, raw, sizeof(gid->raw));
	if ((*qp)->type != IB_QPT_UD || !ib_gid_is_multicast(gid))
		return -EINVAL;
	/* RoCE has no LIDs (annex A16). */
	if (!ufile_port(req->file)->ethernet && (mlid < MLID_FIRST || mlid == LID_PERMISSIVE))
		return -EINVAL;
	return 0;
}

int cmd_attach_mcast(struct ureq *req)
{
	struct ib_uverbs_attach_mcast cmd;
	union ib_gid gid;
	struct uqp *qp;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret == 0)
		ret = decode(req, cmd.gid, cmd.qp_handle, cmd.mlid, &qp, &gid);
	if (ret < 0)
		return ret;
	ret = qp_attach_mcast(qp->qp, &gid, cmd.mlid);
	/* to attach once more is no error, and does not count */
	if (ret > 0)
		qp->groups++;
	return ret < 0 ? ret : 0;
}

int cmd_detach_mcast(struct ureq *req)
{
	struct ib_uverbs_detach_mcast cmd;
	union ib_gid gid;
	struct uqp *qp;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret == 0)
		ret = decode(req, cmd.gid, cmd.qp_handle, cmd.mlid, &qp, &gid);
	if (ret == 0)
		ret = qp_detach_mcast(qp->qp, &gid, cmd.mlid);
	if (ret == 0)
		qp->groups--;
	return ret;
}
