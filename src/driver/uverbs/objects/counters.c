// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counters objects (ibv_create_counters(3)) as mlx5_ib implements them: a set of flow counters,
 * which count packets and bytes of the steering rules that it is attached to.  The first rule says
 * which value goes to which place of the program's array; later rules share that.
 */
#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>

#include "driver/uverbs/objects/families.h"
#include "driver/uverbs/objects/flow.h"
#include "usermem/usermem.h"

/* enum mlx5_ib_flow_counters of the kernel; in no UAPI header. */
enum { COUNT_PACKETS, COUNT_BYTES, COUNTS };

#define POINTS_MAX (UINT16_MAX / 8u) /* limited by an attribute's length */

struct ucounters {
	struct uobj uobj;
	struct flow_counter *counter;
	uint32_t places; /* places of the array; 0: no rule is attached yet */
	uint32_t npoints;
	struct mlx5_ib_flow_counters_desc *points;
};

static void ucounters_free(struct uobj *obj)
{
	struct ucounters *c = container_of(obj, struct ucounters, uobj);

	flow_counter_destroy(c->counter);
	free(c->points);
}

static const struct uobj_class ucounters_class = {
	.type = UOBJ_COUNTERS,
	.free = ucounters_free,
};

static int method_counters_create(struct ureq *req)
{
	struct ucounters *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	ret = flow_counter_create(&c->counter);
	if (ret == 0)
		ret = uobj_publish(req->file, &c->uobj, &ucounters_class);
	if (ret < 0) {
		if (c->counter)
			flow_counter_destroy(c->counter);
		free(c);
		return ret;
	}
	ret = ureq_put_handle(req, UVERBS_ATTR_CREATE_COUNTERS_HANDLE, c->uobj.handle);
	if (ret < 0)
		(void)uobj_destroy(&c->uobj, NULL);
	return ret;
}

struct flow_counter *ucounters_counter(struct uobj *obj)
{
	return container_of(obj, struct ucounters, uobj)->counter;
}

static int check_points(const struct mlx5_ib_flow_counters_desc *points, uint32_t n,
			uint32_t *places)
{
	*places = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (points[i].description >= COUNTS || points[i].index >= POINTS_MAX)
			return -EINVAL;
		if (points[i].index >= *places)
			*places = points[i].index + 1;
	}
	return 0;
}

static int take_points(struct ucounters *c, const struct mlx5_ib_flow_counters_data *data)
{
	struct mlx5_ib_flow_counters_desc *points;
	uint32_t places;
	int ret = -EFAULT;

	if (c->places || !data->ncounters || data->ncounters > POINTS_MAX)
		return -EINVAL;
	points = calloc(data->ncounters, sizeof(*points));
	if (!points)
		return -ENOMEM;
	if (usermem_copy(points, (const void *)(uintptr_t)data->counters_data,
			 data->ncounters * sizeof(*points)))
		ret = check_points(points, data->ncounters, &places);
	if (ret < 0) {
		free(points);
		return ret;
	}
	c->points = points;
	c->npoints = data->ncounters;
	c->places = places;
	return 0;
}

int ucounters_attach(struct uobj *obj, const struct mlx5_ib_flow_counters_data *data)
{
	struct ucounters *c = container_of(obj, struct ucounters, uobj);
	int ret = data ? take_points(c, data) : 0;

	if (ret == 0 && !c->places)
		ret = -EINVAL;
	if (ret == 0)
		obj->users++;
	return ret;
}

void ucounters_detach(struct uobj *obj)
{
	struct ucounters *c = container_of(obj, struct ucounters, uobj);

	if (--obj->users)
		return;
	/* The counts stay, and the next first rule says anew where they go. */
	free(c->points);
	c->points = NULL;
	c->npoints = 0;
	c->places = 0;
}

static int method_counters_read(struct ureq *req)
{
	struct ucounters *c = container_of(ureq_obj(req, UVERBS_ATTR_READ_COUNTERS_HANDLE),
					   struct ucounters, uobj);
	struct ubuf out = ureq_buf(req, UVERBS_ATTR_READ_COUNTERS_BUFF);
	uint64_t counts[COUNTS], *values;
	uint32_t flags;
	int ret = ureq_flags(req, UVERBS_ATTR_READ_COUNTERS_FLAGS,
			     IB_UVERBS_READ_COUNTERS_PREFER_CACHED, &flags);

	if (ret < 0)
		return ret;
	if (!c->uobj.users || out.len % sizeof(*values) || c->places > out.len / sizeof(*values))
		return -EINVAL;
	values = calloc(1, out.len);
	if (!values)
		return -ENOMEM;
	flow_counter_read(c->counter, &counts[COUNT_PACKETS], &counts[COUNT_BYTES]);
	for (uint32_t i = 0; i < c->npoints; i++)
		values[c->points[i].index] += counts[c->points[i].description];
	ret = ureq_put(req, UVERBS_ATTR_READ_COUNTERS_BUFF, values, out.len);
	free(values);
	return ret;
}

/* ---- what requests reach this family ---- */

static const struct attr_spec counters_create_attrs[] = {
	{UVERBS_ATTR_CREATE_COUNTERS_HANDLE, ATTR_IDR_NEW},
};

static const struct attr_spec counters_destroy_attrs[] = {
	{UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, IDR(UOBJ_COUNTERS)},
};

static const struct attr_spec counters_read_attrs[] = {
	{UVERBS_ATTR_READ_COUNTERS_HANDLE, IDR(UOBJ_COUNTERS)},
	{UVERBS_ATTR_READ_COUNTERS_BUFF, OUT_MIN(0)},
	{UVERBS_ATTR_READ_COUNTERS_FLAGS, FLAGS_IN, OPT},
};

static const struct method_spec methods[] = {
	METHOD(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE, method_counters_create,
	       counters_create_attrs),
	METHOD(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY, method_destroy,
	       counters_destroy_attrs),
	METHOD(UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ, method_counters_read,
	       counters_read_attrs),
};

const struct uverbs_family ucounters_family = {METHODS(methods)};
