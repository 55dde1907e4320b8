/* SPDX-License-Identifier: BSD-2-Clause */
/* Steering rules, and the counters that they count into. */
#pragma once

#include "driver/uverbs/objects/qp.h"

struct mlx5_ib_flow_counters_data;

struct uflow {
	struct uobj uobj;
	struct uobj *to; /* what the rule leads to; each of these may be NULL */
	struct uobj *counters;
	struct uobj *matcher;
	struct uobj *devx_counter;
	struct uobj *action;
	struct flow *flow;
};

/* Makes a rule with a handle; to: the object that it leads to, or NULL. */
int uflow_create(struct ufile *f, const struct flow_attr *attr, struct uobj *to,
		 struct uflow **out) must_check;

/*
 * Lets a rule count into this counters object.  data says which counts go where; NULL if an earlier
 * rule has said it.
 */
int ucounters_attach(struct uobj *obj, const struct mlx5_ib_flow_counters_data *data) must_check;
void ucounters_detach(struct uobj *obj);
struct flow_counter *ucounters_counter(struct uobj *obj);
