// SPDX-License-Identifier: BSD-2-Clause
/* Datagram QPs join and leave multicast groups. */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

#include "driver/uverbs/core/port.h"
#include "driver/uverbs/objects/families.h"
#include "driver/uverbs/objects/qp.h"

/* IBTA 4.1.3: multicast LIDs, and the permissive one that is none of them. */
#define MLID_FIRST     0xc000u
#define LID_PERMISSIVE 0xffffu

/* The QP, or NULL and *ret says why not. */
static struct uqp *decode(struct ureq *req, const uint8_t raw[16], uint32_t handle, uint16_t mlid,
			  union ib_gid *gid, int *ret)
{
	struct uobj *obj = uobj_find(req->file, UOBJ_QP, handle, ret);
	struct uqp *qp;

	if (!obj)
		return NULL;
	*ret = -EINVAL;
	qp = container_of(obj, struct uqp, uobj);
	memcpy(gid->raw, raw, sizeof(gid->raw));
	if (qp->type != IB_QPT_UD || !ib_gid_is_multicast(gid))
		return NULL;
	/* RoCE has no LIDs (annex A16). */
	if (!ufile_port(req->file)->ethernet && (mlid < MLID_FIRST || mlid == LID_PERMISSIVE))
		return NULL;
	return qp;
}

static int cmd_attach_mcast(struct ureq *req)
{
	struct ib_uverbs_attach_mcast cmd;
	union ib_gid gid;
	struct uqp *qp;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret)
		return ret;
	qp = decode(req, cmd.gid, cmd.qp_handle, cmd.mlid, &gid, &ret);
	if (!qp)
		return ret;
	ret = qp_attach_mcast(qp->qp, &gid, cmd.mlid);
	/* to attach once more is no error, and does not count */
	if (ret > 0)
		qp->groups++;
	return ret < 0 ? ret : 0;
}

static int cmd_detach_mcast(struct ureq *req)
{
	struct ib_uverbs_detach_mcast cmd;
	union ib_gid gid;
	struct uqp *qp;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret)
		return ret;
	qp = decode(req, cmd.gid, cmd.qp_handle, cmd.mlid, &gid, &ret);
	if (!qp)
		return ret;
	ret = qp_detach_mcast(qp->qp, &gid, cmd.mlid);
	if (ret == 0)
		qp->groups--;
	return ret;
}

/* ---- what requests reach this family ---- */

static const struct command_spec commands[] = {
	CMD(ATTACH_MCAST, cmd_attach_mcast, ib_uverbs_attach_mcast),
	CMD(DETACH_MCAST, cmd_detach_mcast, ib_uverbs_detach_mcast),
};

const struct uverbs_family umcast_family = {COMMANDS(commands)};
