// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows: the device gives a key, and the send queue takes what binds it. */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>

#include "base/log.h"
#include "driver/uverbs/objects/families.h"
#include "driver/uverbs/objects/pd.h"

/* enum ib_mw_type; in no UAPI header. */
enum { MW_TYPE_1 = 1, MW_TYPE_2 = 2 };

struct umw {
	struct uobj uobj;
	struct upd *pd;
	struct window *window;
};

/* A window lies in one region, so it has one translation entry. */
static int mw_check_uhw(const struct mlx5_ib_alloc_mw *uhw)
{
	if (uhw->comp_mask || uhw->reserved1 || uhw->reserved2)
		return -EOPNOTSUPP;
	if (uhw->num_klms > 1) {
		log_info("uverbs: memory windows of several entries are not supported");
		return -EOPNOTSUPP;
	}
	return 0;
}

static void umw_free(struct uobj *obj)
{
	struct umw *mw = container_of(obj, struct umw, uobj);

	window_destroy(obj->file->hca->adapter, mw->window);
	mw->pd->uobj.users--;
}

static const struct uobj_class umw_class = {
	.type = UOBJ_MW,
	.free = umw_free,
};

static int cmd_alloc_mw(struct ureq *req)
{
	struct adapter *a = req->file->hca->adapter;
	struct ib_uverbs_alloc_mw cmd;
	struct ib_uverbs_alloc_mw_resp resp = {0};
	struct mlx5_ib_alloc_mw uhw;
	struct uobj *pd;
	struct umw *mw;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	if (ret == 0)
		ret = ubuf_read(&req->uhw_in, &uhw, sizeof(uhw));
	if (ret == 0)
		ret = mw_check_uhw(&uhw);
	if (ret < 0)
		return ret;
	if (cmd.mw_type != MW_TYPE_1 && cmd.mw_type != MW_TYPE_2)
		return -EINVAL;
	pd = uobj_find(req->file, UOBJ_PD, cmd.pd_handle, &ret);
	if (!pd)
		return ret;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return -ENOMEM;
	mw->pd = container_of(pd, struct upd, uobj);
	ret = window_create(a, mw->pd->pdn,
			    cmd.mw_type == MW_TYPE_1 ? WINDOW_TYPE_1 : WINDOW_TYPE_2, &mw->window);
	if (ret < 0)
		goto free_mw;
	ret = uobj_publish(req->file, &mw->uobj, &umw_class);
	if (ret < 0)
		goto destroy_window;
	pd->users++;
	resp.mw_handle = mw->uobj.handle;
	resp.rkey = window_key(mw->window);
	ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		(void)uobj_destroy(&mw->uobj, NULL);
	return ret;

destroy_window:
	window_destroy(a, mw->window);
free_mw:
	free(mw);
	return ret;
}

static int cmd_dealloc_mw(struct ureq *req)
{
	struct ib_uverbs_dealloc_mw cmd;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	return ret < 0 ? ret : ureq_destroy(req, UOBJ_MW, cmd.mw_handle, NULL);
}

/* ---- what requests reach this family ---- */

static const struct attr_spec mw_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_MW_HANDLE, IDR(UOBJ_MW)},
};

static const struct method_spec methods[] = {
	METHOD(UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, method_destroy, mw_destroy_attrs),
};

static const struct command_spec commands[] = {
	CMD_RESP_UHW(ALLOC_MW, cmd_alloc_mw, ib_uverbs_alloc_mw, ib_uverbs_alloc_mw_resp),
	CMD(DEALLOC_MW, cmd_dealloc_mw, ib_uverbs_dealloc_mw),
};

const struct uverbs_family umw_family = {METHODS(methods), COMMANDS(commands)};
