/* SPDX-License-Identifier: BSD-2-Clause */
/* Samplers of frames: general objects. */
#pragma once

#include "driver/devx/devx.h"

struct devx_flow_sampler {
	struct devx_obj obj;
	struct flow_sampler *sampler;
};

extern const struct devx_class devx_flow_sampler_class;

/* Makes what is in a devx_flow_sampler, for devx/general.c. */
int devx_create_flow_sampler(struct devx_call *c, struct devx_obj *obj);
int devx_query_flow_sampler(struct devx_call *c);
