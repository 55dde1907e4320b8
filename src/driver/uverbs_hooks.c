// SPDX-License-Identifier: BSD-2-Clause
/* See uverbs_hooks.h. */
#include "driver/uverbs_hooks.h"

#include "base/rcu.h"
#include "driver/uverbs_clock.h"
#include "driver/uverbs_objects.h"

/* Inside rcu_enter: the object stays until rcu_leave, for destroy waits in between. */
static struct uobj *peek(int cmd_fd, enum uobj_type type, uint32_t handle)
{
	struct cdev_file *f = cdev_peek(cmd_fd);

	if (!f || f->ops != &uverbs_file_ops)
		return NULL;
	return uobj_peek(&container_of(f, struct ufile, cdev)->objects, type, handle);
}

void uverbs_qp_doorbell(int cmd_fd, uint32_t handle)
{
	struct uobj *obj;

	rcu_enter();
	obj = peek(cmd_fd, UOBJ_QP, handle);
	if (obj)
		qp_doorbell(container_of(obj, struct uqp, uobj)->qp);
	rcu_leave();
}

void uverbs_qp_recv_posted(int cmd_fd, uint32_t handle)
{
	struct uobj *obj;

	rcu_enter();
	obj = peek(cmd_fd, UOBJ_QP, handle);
	if (obj)
		qp_recv_posted(container_of(obj, struct uqp, uobj)->qp);
	rcu_leave();
}

void uverbs_cq_doorbell(int cmd_fd, uint32_t handle)
{
	struct uobj *obj;
	struct ucq *cq;

	rcu_enter();
	obj = peek(cmd_fd, UOBJ_CQ, handle);
	if (obj) {
		cq = container_of(obj, struct ucq, uobj);
		/* Who arms has just read an event: there is room for one that waited. */
		if (unlikely(uchannel_overflowed()) && cq->comp)
			uchannel_flush(cq->comp);
		cq_doorbell(cq->cq);
	}
	rcu_leave();
}

void uverbs_clock_wanted(int cmd_fd)
{
	struct cdev_file *f;

	rcu_enter();
	f = cdev_peek(cmd_fd);
	if (f && f->ops == &uverbs_file_ops)
		uclock_refresh(container_of(f, struct ufile, cdev));
	rcu_leave();
}
