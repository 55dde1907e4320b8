// SPDX-License-Identifier: BSD-2-Clause
/* Protection domains and XRC domains made by DEVX: numbers without properties. */
#include <errno.h>
#include <stdlib.h>

#include "driver/devx/devx.h"

static int create(struct devx_call *c, enum devx_kind kind, uint32_t (*take)(struct adapter *a),
		  struct devx_obj **out)
{
	struct devx_obj *obj = calloc(1, sizeof(*obj));

	if (!obj)
		return -ENOMEM;
	devx_obj_init(obj, kind, take(c->file->hca->adapter));
	prm_set(c->out, CMD_OUT_NUMBER, obj->number);
	*out = obj;
	return 0;
}

int devx_create_pd(struct devx_call *c, struct devx_obj **out)
{
	return create(c, DEVX_PD, pd_alloc, out);
}

void devx_pd_free(struct devx_obj *obj)
{
	pd_free(obj->uobj.file->hca->adapter, obj->number);
}

int devx_create_xrcd(struct devx_call *c, struct devx_obj **out)
{
	return create(c, DEVX_XRCD, xrcd_alloc, out);
}

void devx_xrcd_free(struct devx_obj *obj)
{
	xrcd_free(obj->uobj.file->hca->adapter, obj->number);
}

int devx_pd(struct ufile *f, uint32_t pdn, struct uobj **obj)
{
	*obj = devx_find(f, DEVX_PD, pdn);
	return *obj ? 0 : -EINVAL;
}
