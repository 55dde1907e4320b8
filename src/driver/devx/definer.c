// SPDX-License-Identifier: BSD-2-Clause
/* See definer.h. */
#include "driver/devx/definer.h"

#include <errno.h>

#include "base/log.h"
#include "prm/cmd_flow.h"

static void devx_definer_free(struct devx_obj *obj)
{
	flow_definer_destroy(obj->uobj.file->hca->adapter, obj->number);
}

static const struct devx_class devx_definer_class = {.free = devx_definer_free};

int devx_create_definer(struct devx_call *c, struct devx_obj *obj)
{
	const uint8_t *context = c->in + MATCH_DEFINER_CONTEXT;
	uint32_t format = prm_get32(context, MATCH_DEFINER_FORMAT), number;
	int ret = ufile_port(c->file)->ethernet
			  ? flow_definer_create(c->file->hca->adapter, format,
						context + MATCH_DEFINER_MASK, &number)
			  : -EOPNOTSUPP;

	if (ret == -EOPNOTSUPP)
		log_info("devx: definers of format %u are not supported", format);
	if (ret == 0)
		devx_obj_init(obj, &devx_definer_class, number);
	return ret;
}
