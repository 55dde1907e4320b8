// SPDX-License-Identifier: BSD-2-Clause
/* Protection domains and XRC domains made by DEVX: numbers without properties. */
#include <errno.h>
#include <stdlib.h>

#include "driver/devx/refuse.h"
#include "driver/uverbs/objects/pd.h"

static int devx_domain_create(struct devx_call *c, const struct devx_class *class,
			      uint32_t (*take)(struct adapter *a), struct devx_obj **out)
{
	struct devx_obj *obj = calloc(1, sizeof(*obj));

	if (!obj)
		return -ENOMEM;
	devx_obj_init(obj, class, take(c->file->hca->adapter));
	prm_set(c->out, CMD_OUT_NUMBER, obj->number);
	*out = obj;
	return 0;
}

static void devx_pd_free(struct devx_obj *obj)
{
	pd_free(obj->uobj.file->hca->adapter, obj->number);
}

static bool devx_pd_is(struct uobj *obj, uint32_t number)
{
	return obj->type == UOBJ_PD && container_of(obj, struct upd, uobj)->pdn == number;
}

const struct devx_class devx_pd_class = {.is = devx_pd_is, .free = devx_pd_free};

static int devx_create_pd(struct devx_call *c, struct devx_obj **out)
{
	return devx_domain_create(c, &devx_pd_class, pd_alloc, out);
}

static void devx_xrcd_free(struct devx_obj *obj)
{
	xrcd_free(obj->uobj.file->hca->adapter, obj->number);
}

static const struct devx_class devx_xrcd_class = {.free = devx_xrcd_free};

static int devx_create_xrcd(struct devx_call *c, struct devx_obj **out)
{
	return devx_domain_create(c, &devx_xrcd_class, xrcd_alloc, out);
}

int devx_pd(struct ufile *f, uint32_t pdn, struct uobj **obj)
{
	*obj = devx_find(f, &devx_pd_class, pdn);
	return *obj ? 0
		    : devx_refuse(-EINVAL, "pd", pdn, "no domain of this context has that number");
}

static const struct devx_op ops[] = {
	DEVX_CREATE(ALLOC_PD, CMD_IN_BYTES, CMD_OUT_BYTES, devx_create_pd),
	DEVX_CREATE(ALLOC_XRCD, CMD_IN_BYTES, CMD_OUT_BYTES, devx_create_xrcd),
};

const struct devx_family devx_pd_family = DEVX_FAMILY(ops);
