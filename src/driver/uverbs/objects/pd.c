// SPDX-License-Identifier: BSD-2-Clause
/* Protection domains. */
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <stdlib.h>

#include "driver/uverbs/core/file.h"
#include "driver/uverbs/objects/objects.h"
#include "exposure/object.h"
#include "wire/wire.h"

static void upd_free(struct uobj *obj)
{
	struct upd *pd = container_of(obj, struct upd, uobj);

	expose_object_end(wire_expose(obj->file->hca->wire), pd->row);
	pd_free(obj->file->hca->adapter, pd->pdn);
}

static uint32_t upd_number(struct uobj *obj)
{
	return container_of(obj, struct upd, uobj)->pdn;
}

static const struct uobj_class upd_class = {
	.type = UOBJ_PD,
	.free = upd_free,
	.number = upd_number,
};

/* Lists the domain for people (exposure/object.h). */
static void upd_list(struct upd *pd)
{
	const struct ufile *f = pd->uobj.file;

	pd->row = expose_object(wire_expose(f->hca->wire), &(struct object_about){
								   .kind = OBJECT_PD,
								   .number = pd->pdn,
								   .port = f->hca->port_row,
								   .pdn = pd->pdn,
								   .context = f->context_number,
							   });
}

static int cmd_alloc_pd(struct ureq *req)
{
	struct adapter *a = req->file->hca->adapter;
	struct ib_uverbs_alloc_pd_resp resp = {0};
	struct mlx5_ib_alloc_pd_resp mlx5 = {0};
	struct upd *pd = calloc(1, sizeof(*pd));
	int ret;

	if (!pd)
		return -ENOMEM;
	pd->pdn = pd_alloc(a);
	ret = uobj_publish(req->file, &pd->uobj, &upd_class);
	if (ret < 0) {
		pd_free(a, pd->pdn);
		free(pd);
		return ret;
	}
	upd_list(pd);
	mlx5.pdn = pd->pdn;
	resp.pd_handle = pd->uobj.handle;
	ret = ubuf_write(&req->uhw_out, &mlx5, sizeof(mlx5));
	if (ret == 0)
		ret = ubuf_write(&req->core_out, &resp, sizeof(resp));
	if (ret < 0)
		(void)uobj_destroy(&pd->uobj, NULL);
	return ret;
}

static int cmd_dealloc_pd(struct ureq *req)
{
	struct ib_uverbs_dealloc_pd cmd;
	int ret = ubuf_read(&req->core_in, &cmd, sizeof(cmd));

	return ret < 0 ? ret : ureq_destroy(req, UOBJ_PD, cmd.pd_handle, NULL);
}

static int method_pd_query(struct ureq *req)
{
	struct upd *pd =
		container_of(ureq_obj(req, MLX5_IB_ATTR_QUERY_PD_HANDLE), struct upd, uobj);

	return ureq_put_u32(req, MLX5_IB_ATTR_QUERY_PD_RESP_PDN, pd->pdn);
}

/* ---- what requests reach this family ---- */

static const struct attr_spec pd_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_PD_HANDLE, IDR(UOBJ_PD)},
};

static const struct attr_spec pd_query_attrs[] = {
	{MLX5_IB_ATTR_QUERY_PD_HANDLE, IDR(UOBJ_PD)},
	{MLX5_IB_ATTR_QUERY_PD_RESP_PDN, OUT(4)},
};

static const struct method_spec methods[] = {
	METHOD(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, method_destroy, pd_destroy_attrs),
	METHOD(UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, method_pd_query, pd_query_attrs),
};

static const struct command_spec commands[] = {
	CMD_RESP_UHW(ALLOC_PD, cmd_alloc_pd, ib_uverbs_alloc_pd, ib_uverbs_alloc_pd_resp),
	CMD(DEALLOC_PD, cmd_dealloc_pd, ib_uverbs_dealloc_pd),
};

const struct uverbs_family upd_family = {METHODS(methods), COMMANDS(commands)};
