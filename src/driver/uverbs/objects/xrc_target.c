// SPDX-License-Identifier: BSD-2-Clause
/* Target QPs of XRC domains. */
#include <errno.h>
#include <stdlib.h>

/* A target without memory for its number is not made. */
#define HASH_NONFATAL_OOM 1
#include <utlist.h>

#include "driver/uverbs/objects/xrc.h"

/* Upcall: passes an event of the QP to each of its handles. */
static void target_async(void *user, enum ib_event event)
{
	struct xrc_target *t = user;

	spin_lock(&t->lock);
	for (struct uqp *h = t->handles; h; h = h->next_handle)
		uobj_async(&h->uobj, event);
	spin_unlock(&t->lock);
}

static void add_handle(struct xrc_target *t, struct uqp *handle)
{
	handle->target = t;
	handle->qp = t->qp;
	spin_lock(&t->lock);
	DL_PREPEND2(t->handles, handle, prev_handle, next_handle);
	spin_unlock(&t->lock);
}

/* Returns true if it was the last one. */
static bool remove_handle(struct xrc_target *t, struct uqp *handle)
{
	bool last;

	spin_lock(&t->lock);
	DL_DELETE2(t->handles, handle, prev_handle, next_handle);
	last = !t->handles;
	spin_unlock(&t->lock);
	return last;
}

int xrc_target_create(struct uqp *handle, struct hca *hca, struct uxrcd *xrcd,
		      struct qp_create_attr *attr)
{
	struct xrc_target *t = calloc(1, sizeof(*t));
	bool listed;
	int ret;

	if (!t)
		return -ENOMEM;
	t->domain = xrcd->domain;
	attr->xrcdn = t->domain->xrcdn;
	attr->async = target_async;
	attr->user = t;
	ret = qp_create(hca->adapter, attr, &t->qp);
	if (ret < 0) {
		free(t);
		return ret;
	}
	t->qpn = qp_number(t->qp);
	pthread_mutex_lock(&hca->xrc_lock);
	HASH_ADD(hh, t->domain->targets, qpn, sizeof(t->qpn), t);
	listed = t->hh.tbl != NULL;
	if (listed)
		add_handle(t, handle);
	pthread_mutex_unlock(&hca->xrc_lock);
	if (listed)
		return 0;
	qp_destroy(t->qp);
	free(t);
	return -ENOMEM;
}

int xrc_target_open(struct uqp *handle, struct hca *hca, struct uxrcd *xrcd, uint32_t qpn)
{
	struct xrc_target *t;

	pthread_mutex_lock(&hca->xrc_lock);
	HASH_FIND(hh, xrcd->domain->targets, &qpn, sizeof(qpn), t);
	if (t)
		add_handle(t, handle);
	pthread_mutex_unlock(&hca->xrc_lock);
	return t ? 0 : -EINVAL;
}

void xrc_target_close(struct uqp *handle, struct hca *hca)
{
	struct xrc_target *t = handle->target;
	bool last;

	pthread_mutex_lock(&hca->xrc_lock);
	last = remove_handle(t, handle);
	if (last)
		HASH_DEL(t->domain->targets, t);
	pthread_mutex_unlock(&hca->xrc_lock);
	if (!last)
		return;
	qp_destroy(t->qp);
	free(t);
}
