// SPDX-License-Identifier: BSD-2-Clause
/* Counters of steering that have a number. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "driver/devx/devx.h"
#include "prm/cmd_flow.h"

struct devx_flow_counter {
	struct devx_obj obj;
	struct flow_counter *counter;
	uint64_t packets, octets; /* what they were when the program cleared them last */
};

static void devx_flow_counter_free(struct devx_obj *obj)
{
	flow_counter_destroy_numbered(obj->uobj.file->hca->adapter,
				      container_of(obj, struct devx_flow_counter, obj)->counter,
				      obj->number);
}

static struct flow_counter *devx_flow_counter_of(struct devx_obj *obj)
{
	return container_of(obj, struct devx_flow_counter, obj)->counter;
}

static const struct devx_class devx_flow_counter_class = {
	.free = devx_flow_counter_free,
	.counter = devx_flow_counter_of,
};

static int devx_create_flow_counter(struct devx_call *c, struct devx_obj **out)
{
	struct devx_flow_counter *f;
	uint32_t number;
	int ret;

	if (prm_get32(c->in, FLOW_COUNTER_BULK)) {
		log_info("devx: flow counters are made one at a time");
		return -EOPNOTSUPP;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	ret = flow_counter_create_numbered(c->file->hca->adapter, &f->counter, &number);
	if (ret < 0) {
		free(f);
		return ret;
	}
	devx_obj_init(&f->obj, &devx_flow_counter_class, number);
	prm_set(c->out, FLOW_COUNTER_OUT_NUMBER, number);
	*out = &f->obj;
	return 0;
}

static int devx_query_flow_counter(struct devx_call *c)
{
	struct devx_flow_counter *f = container_of(c->target, struct devx_flow_counter, obj.uobj);
	uint64_t packets, octets;

	if (prm_get32(c->in, FLOW_COUNTER_TO_MEMORY)) {
		log_info("devx: flow counters are not written to memory");
		return -EOPNOTSUPP;
	}
	flow_counter_read(f->counter, &packets, &octets);
	prm_set(c->out, FLOW_COUNTER_PACKETS, packets - f->packets);
	prm_set(c->out, FLOW_COUNTER_OCTETS, octets - f->octets);
	if (prm_get32(c->in, FLOW_COUNTER_CLEAR)) {
		f->packets = packets;
		f->octets = octets;
	}
	return 0;
}

static const struct devx_op ops[] = {
	DEVX_CREATE(ALLOC_FLOW_COUNTER, CMD_IN_BYTES, CMD_OUT_BYTES, devx_create_flow_counter),
	{
		DEVX_ROW(QUERY_FLOW_COUNTER, DEVX_OBJ_QUERY, FLOW_COUNTER_QUERY_BYTES,
			 FLOW_COUNTER_OUT_BYTES),
		.class = &devx_flow_counter_class,
		.number = FLOW_COUNTER_IN_NUMBER,
		.run = devx_query_flow_counter,
	},
};

const struct devx_family devx_flow_counter_family = DEVX_FAMILY(ops);
