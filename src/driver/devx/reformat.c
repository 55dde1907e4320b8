// SPDX-License-Identifier: BSD-2-Clause
/* Headers of tunnels, which entries of steering name by their number. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "driver/devx/devx.h"
#include "prm/cmd_flow.h"

struct devx_reformat {
	struct devx_obj obj;
	struct flow_headers *headers;
};

static void devx_reformat_free(struct devx_obj *obj)
{
	flow_headers_destroy(obj->uobj.file->hca->adapter,
			     container_of(obj, struct devx_reformat, obj)->headers, obj->number);
}

static const struct devx_class devx_reformat_class = {.free = devx_reformat_free};

/* An entry says itself what it does with the headers, so the types differ in nothing here. */
static bool reformat_inserts(uint32_t type)
{
	return type == REFORMAT_L2_TO_VXLAN || type == REFORMAT_L2_TO_NVGRE ||
	       type == REFORMAT_L2_TO_L2_TUNNEL || type == REFORMAT_L2_TO_L3_TUNNEL;
}

static int devx_create_reformat(struct devx_call *c, struct devx_obj **out)
{
	uint32_t type = prm_get32(c->in, REFORMAT_TYPE), n = prm_get32(c->in, REFORMAT_SIZE);
	struct devx_reformat *r;
	uint32_t number;
	int ret;

	if (!ufile_port(c->file)->ethernet || !reformat_inserts(type)) {
		log_info("devx: reformat contexts of type %u are not supported", type);
		return -EOPNOTSUPP;
	}
	if (!range_inside(REFORMAT_DATA, n, c->in_len))
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	ret = flow_headers_create(c->file->hca->adapter, c->in + REFORMAT_DATA, n, &r->headers,
				  &number);
	if (ret < 0) {
		free(r);
		return ret;
	}
	devx_obj_init(&r->obj, &devx_reformat_class, number);
	prm_set(c->out, REFORMAT_OUT_NUMBER, number);
	*out = &r->obj;
	return 0;
}

static const struct devx_op ops[] = {
	DEVX_CREATE(ALLOC_PACKET_REFORMAT_CONTEXT, REFORMAT_IN_BYTES, CMD_OUT_BYTES,
		    devx_create_reformat),
};

const struct devx_family devx_reformat_family = DEVX_FAMILY(ops);
