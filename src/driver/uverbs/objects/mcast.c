// SPDX-License-Identifier: BSD-2-Clause
/* Datagram QPs join and leave multicast groups. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

#include "driver/uverbs/core/port.h"
#include "driver/uverbs/objects/families.h"
#include "driver/uverbs/objects/qp.h"

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
	CMD(ATTACH_MCAST, cmd_attach_mcast, ib_uverbs_attach_mcast),
	CMD(DETACH_MCAST, cmd_detach_mcast, ib_uverbs_detach_mcast),
};

const struct uverbs_family umcast_family = {COMMANDS(commands)};
