// SPDX-License-Identifier: BSD-2-Clause
/* See flow_sampler.h.  A sampler names its tables by number, and they may go before the sampler
 * does: it then drops the frames. */
#include "driver/devx/flow_sampler.h"

#include <errno.h>

#include "prm/cmd_flow.h"

static void devx_flow_sampler_free(struct devx_obj *obj)
{
	flow_sampler_destroy(obj->uobj.file->hca->adapter,
			     container_of(obj, struct devx_flow_sampler, obj)->sampler);
}

const struct devx_class devx_flow_sampler_class = {.free = devx_flow_sampler_free};

int devx_create_flow_sampler(struct devx_call *c, struct devx_obj *obj)
{
	struct devx_flow_sampler *s = container_of(obj, struct devx_flow_sampler, obj);
	const uint8_t *context = c->in + FLOW_SAMPLER_CONTEXT;
	const struct flow_sampler_attr attr = {
		.ratio = prm_get32(context, FLOW_SAMPLER_RATIO),
		.sample_table = prm_get32(context, FLOW_SAMPLER_SAMPLE),
		.default_table = prm_get32(context, FLOW_SAMPLER_DEFAULT),
	};
	int ret;

	if (!ufile_port(c->file)->ethernet)
		return -EOPNOTSUPP;
	if (!attr.ratio)
		return -EINVAL;
	ret = flow_sampler_create(c->file->hca->adapter, &attr, &s->sampler);
	if (ret == 0)
		devx_obj_init(obj, &devx_flow_sampler_class, flow_sampler_number(s->sampler));
	return ret;
}

int devx_query_flow_sampler(struct devx_call *c)
{
	const struct devx_flow_sampler *s =
		container_of(c->target, struct devx_flow_sampler, obj.uobj);
	uint64_t address = flow_sampler_address(s->sampler);

	prm_set(c->out + FLOW_SAMPLER_CONTEXT, FLOW_SAMPLER_ICM_RX, address);
	prm_set(c->out + FLOW_SAMPLER_CONTEXT, FLOW_SAMPLER_ICM_TX, address);
	return 0;
}
