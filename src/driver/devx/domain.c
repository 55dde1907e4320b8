// SPDX-License-Identifier: BSD-2-Clause
/*
 * Domains made by DEVX, numbers without properties: protection, XRC and transport domains; and
 * TISs, which belong to the last.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "driver/devx/devx.h"
#include "driver/devx/raw.h"
#include "driver/uverbs/objects/objects.h"

/* ---- protection domains and XRC domains ---- */

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

/* ---- transport domains: numbers without properties ---- */

static const struct devx_class devx_td_class; /* nothing in the device */

static int devx_create_td(struct devx_call *c, struct devx_obj **out)
{
	struct devx_obj *obj = calloc(1, sizeof(*obj));

	if (!obj)
		return -ENOMEM;
	devx_obj_init(obj, &devx_td_class, devx_free_number(c->file, &devx_td_class));
	prm_set(c->out, CMD_OUT_NUMBER, obj->number);
	*out = obj;
	return 0;
}

int devx_td(struct ufile *f, uint32_t number, struct uobj **out)
{
	*out = number ? devx_find(f, &devx_td_class, number) : NULL;
	return !*out == !number ? 0 : -EINVAL;
}

/* ---- TISs ---- */

struct devx_tis {
	struct devx_obj obj;
	struct uobj *domain;
	uint8_t context[TISC_BYTES];
};

const struct devx_class devx_tis_class; /* nothing in the device */

const void *devx_tis_domain(struct uobj *tis)
{
	return container_of(tis, struct devx_tis, obj.uobj)->domain;
}

static int devx_tis_make(struct devx_call *c, struct devx_tis *tis)
{
	int ret;

	if (prm_get(tis->context, TISC_TLS) || prm_get(tis->context, TISC_UNDERLAY)) {
		log_info("devx: TISs with TLS or of an underlying queue pair are not supported");
		return -EOPNOTSUPP;
	}
	ret = devx_td(c->file, prm_get32(tis->context, TISC_DOMAIN), &tis->domain);
	if (ret < 0)
		return ret;
	if (tis->domain)
		devx_obj_uses(&tis->obj, tis->domain);
	devx_obj_init(&tis->obj, &devx_tis_class, devx_free_number(c->file, &devx_tis_class));
	return 0;
}

static int devx_create_tis(struct devx_call *c, struct devx_obj **out)
{
	struct devx_tis *tis = calloc(1, sizeof(*tis));
	int ret;

	if (!tis)
		return -ENOMEM;
	memcpy(tis->context, c->in + RAW_CONTEXT, sizeof(tis->context));
	ret = devx_tis_make(c, tis);
	if (ret < 0) {
		free(tis);
		return ret;
	}
	prm_set(c->out, CMD_OUT_NUMBER, tis->obj.number);
	*out = &tis->obj;
	return 0;
}

/* Takes a priority, which makes no difference on a port without several queues. */
static int devx_modify_tis(struct devx_call *c)
{
	struct devx_tis *tis = container_of(c->target, struct devx_tis, obj.uobj);
	uint64_t what = prm_get(c->in, RAW_MODIFY_BITMASK);

	if (what & ~(uint64_t)MODIFY_TIS_PRIO) {
		log_info("devx: MODIFY_TIS changes the priority only");
		return -EOPNOTSUPP;
	}
	if (what)
		prm_set(tis->context, TISC_PRIO, prm_get(c->in + RAW_CONTEXT, TISC_PRIO));
	return 0;
}

static int devx_query_tis(struct devx_call *c)
{
	memcpy(c->out + QUERY_TIS_CONTEXT,
	       container_of(c->target, struct devx_tis, obj.uobj)->context, TISC_BYTES);
	return 0;
}

static const struct devx_op ops[] = {
	DEVX_CREATE(ALLOC_PD, CMD_IN_BYTES, CMD_OUT_BYTES, devx_create_pd),
	DEVX_CREATE(ALLOC_XRCD, CMD_IN_BYTES, CMD_OUT_BYTES, devx_create_xrcd),
	DEVX_CREATE(ALLOC_TRANSPORT_DOMAIN, CMD_IN_BYTES, CMD_OUT_BYTES, devx_create_td),
	DEVX_CREATE(CREATE_TIS, TIS_BYTES, CMD_OUT_BYTES, devx_create_tis),
	DEVX_MODIFY(MODIFY_TIS, &devx_tis_class, TIS_BYTES, CMD_OUT_BYTES, devx_modify_tis),
	DEVX_QUERY(QUERY_TIS, &devx_tis_class, CMD_IN_BYTES, QUERY_TIS_OUT_BYTES, devx_query_tis),
};

const struct devx_family devx_domain_family = DEVX_FAMILY(ops);
