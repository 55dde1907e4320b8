// SPDX-License-Identifier: BSD-2-Clause
/* What the object families share: destruction, asynchronous events, and small facts of the port. */
#include "driver/uverbs/objects.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <unistd.h>

#define COMP_VECTORS_MAX 8u
#define IB_GIDS		 8u

static void (*const free_object[UOBJ_TYPES])(struct uobj *obj) = {
	[UOBJ_PD] = upd_free,
	[UOBJ_MR] = umr_free,
	[UOBJ_MW] = umw_free,
	[UOBJ_XRCD] = uxrcd_free,
	[UOBJ_CQ] = ucq_free,
	[UOBJ_SRQ] = usrq_free,
	[UOBJ_QP] = uqp_free,
	[UOBJ_AH] = uah_free,
	[UOBJ_UAR] = uuar_free,
	[UOBJ_WQ] = uwq_free,
	[UOBJ_IND_TABLE] = uind_table_free,
	[UOBJ_FLOW] = uflow_free,
	[UOBJ_DEVX] = udevx_free,
	[UOBJ_UMEM] = uumem_free,
	[UOBJ_COUNTERS] = ucounters_free,
	[UOBJ_MATCHER] = umatcher_free,
};

static void collect_async(struct uobj *obj, struct uevents *events)
{
	uint32_t taken;

	if (!obj->async)
		return;
	taken = uchannel_purge(obj->async, obj->user_handle);
	events->async = obj->async_events - min_u32(taken, obj->async_events);
	cdev_put(uchannel_cdev(obj->async));
	obj->async = NULL;
}

static void collect_comp(struct ucq *cq, struct uevents *events)
{
	uint32_t taken;

	if (!cq->comp)
		return;
	taken = uchannel_purge(cq->comp, cq->uobj.user_handle);
	events->comp = cq->comp_events - min_u32(taken, cq->comp_events);
	cdev_put(uchannel_cdev(cq->comp));
	cq->comp = NULL;
}

int uobj_destroy(struct uobj *obj, struct uevents *events)
{
	struct uevents mine = {0};
	enum uobj_type type = obj->type;

	if (obj->users || (type == UOBJ_MR && umr_retire(obj) < 0))
		return -EBUSY;
	uobj_unpublish(obj);
	/* The device's part first: after it no upcall can count another event. */
	free_object[type](obj);
	collect_async(obj, &mine);
	if (type == UOBJ_CQ)
		collect_comp(container_of(obj, struct ucq, uobj), &mine);
	free(obj);
	if (events)
		*events = mine;
	return 0;
}

int method_refuse(struct ureq *req)
{
	(void)req;
	return -EOPNOTSUPP;
}

int method_destroy(struct ureq *req)
{
	return uobj_destroy(req->attrs[0].obj, NULL);
}

void uobj_bind_async(struct uobj *obj, struct ufile *file, struct uchannel *channel)
{
	obj->async = channel ? channel : file->async;
	if (obj->async)
		cdev_hold(uchannel_cdev(obj->async));
}

void uobj_unbind_async(struct uobj *obj)
{
	if (obj->async)
		cdev_put(uchannel_cdev(obj->async));
	obj->async = NULL;
}

void uobj_async(void *user, enum ib_event event)
{
	struct uobj *obj = user;

	if (obj->async)
		uchannel_post_async(obj->async, obj->user_handle, event, &obj->async_events);
}

const struct registry_port *ufile_port(const struct ufile *f)
{
	return f->hca->port;
}

uint32_t uport_gids(const struct registry_port *port)
{
	return port->ethernet ? REGISTRY_GIDS : IB_GIDS;
}

uint32_t uport_pkeys(const struct registry_port *port)
{
	/* RoCE has the default P_Key only. */
	return port->ethernet ? 1 : REGISTRY_PKEYS;
}

uint32_t uverbs_comp_vectors(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return cpus < 1 ? 1 : min_u32((uint32_t)cpus, COMP_VECTORS_MAX);
}
