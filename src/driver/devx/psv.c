// SPDX-License-Identifier: BSD-2-Clause
/* Protected signature values: CREATE_PSV.  mlx5_ib lets a program make one at a time. */
#include <errno.h>
#include <stdlib.h>

#include "driver/devx/devx.h"
#include "prm/cmd_mkey.h"

struct devx_psv {
	struct devx_obj obj;
	struct psv *psv;
};

static bool devx_admits_psv(const uint8_t *in)
{
	return prm_get(in, CREATE_PSV_COUNT) == 1;
}

static void devx_psv_free(struct devx_obj *obj)
{
	psv_destroy(obj->uobj.file->hca->adapter, container_of(obj, struct devx_psv, obj)->psv);
}

static const struct devx_class devx_psv_class = {.free = devx_psv_free};

static int devx_create_psv(struct devx_call *c, struct devx_obj **out)
{
	uint32_t pdn = prm_get32(c->in, CREATE_PSV_PD);
	struct devx_psv *psv;
	struct uobj *pd;
	int ret = devx_pd(c->file, pdn, &pd);

	if (ret < 0)
		return ret;
	psv = calloc(1, sizeof(*psv));
	if (!psv)
		return -ENOMEM;
	ret = psv_create(c->file->hca->adapter, pdn, &psv->psv);
	if (ret < 0) {
		free(psv);
		return ret;
	}
	devx_obj_init(&psv->obj, &devx_psv_class, psv_number(psv->psv));
	devx_obj_uses(&psv->obj, pd);
	prm_set(c->out, CREATE_PSV_INDEX, psv->obj.number);
	*out = &psv->obj;
	return 0;
}

static const struct devx_op ops[] = {
	{DEVX_ROW(CREATE_PSV, DEVX_OBJ_CREATE, CMD_IN_BYTES, CREATE_PSV_OUT_BYTES),
	 .create = devx_create_psv, .admits = devx_admits_psv},
};

const struct devx_family devx_psv_family = DEVX_FAMILY(ops);
