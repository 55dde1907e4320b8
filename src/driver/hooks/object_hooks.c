// SPDX-License-Identifier: BSD-2-Clause
/* See hooks/object_hooks.h. */
#include "driver/hooks/object_hooks.h"

#include <errno.h>
#include <stdio.h>

#include "adapter/qp/qp_state.h"
#include "base/explain.h"
#include "base/rcu.h"
#include "base/trace.h"
#include "driver/uverbs/core/clock.h"
#include "driver/uverbs/objects/qp.h"
#include "driver/uverbs/objects/wq.h"
#include "driver/uverbs/uverbs.h"

/* Inside rcu_enter: the object stays until rcu_leave, for destroy waits in between. */
static inline struct uobj *object_peek(int cmd_fd, enum uobj_type type, uint32_t handle)
{
	struct cdev_file *f = cdev_peek(cmd_fd);

	if (!f || f->ops != &uverbs_file_ops)
		return NULL;
	return uobj_peek(&container_of(f, struct ufile, cdev)->objects, type, handle);
}

static void explain_post_to(struct uqp *qp, const struct refused_post *p)
{
	char why[200];
	struct qp_attr attr;

	qp_query(qp->qp, &attr);
	if (attr.state < IB_QPS_RTS)
		(void)snprintf(why, sizeof(why),
			       "the QP is in state %s, and sends can be posted from RTS on "
			       "(ibv_modify_qp)",
			       qp_state_name(attr.state));
	else if (p->pieces > qp->max_send_sge)
		(void)snprintf(why, sizeof(why),
			       "the request has %u pieces (num_sge), and the QP was made with "
			       "max_send_sge %u",
			       p->pieces, qp->max_send_sge);
	else if (p->is_inline && p->bytes > qp->max_inline)
		(void)snprintf(why, sizeof(why),
			       "the request has %llu bytes inline, and the QP was made with "
			       "max_inline_data %u",
			       (unsigned long long)p->bytes, qp->max_inline);
	else if (p->err == ENOMEM)
		(void)snprintf(why, sizeof(why),
			       "the send queue is full (max_send_wr %u): entries become free when "
			       "the completion of this or a later request with IBV_SEND_SIGNALED "
			       "is polled",
			       qp->max_send_wr);
	else
		(void)snprintf(why, sizeof(why), "'softhca explain' with both says what it may be");
	explain_line(qp_number(qp->qp), "QP 0x%x ibv_post_send: %s: %s", qp_number(qp->qp),
		     trace_errno(p->err), why);
}

void uverbs_qp_explain_post(int cmd_fd, uint32_t handle, const struct refused_post *post)
{
	struct uobj *obj;

	rcu_enter();
	obj = object_peek(cmd_fd, UOBJ_QP, handle);
	if (obj)
		explain_post_to(container_of(obj, struct uqp, uobj), post);
	rcu_leave();
}

void uverbs_qp_doorbell(int cmd_fd, uint32_t handle)
{
	struct uobj *obj;
	struct uqp *qp;

	rcu_enter();
	obj = object_peek(cmd_fd, UOBJ_QP, handle);
	if (obj) {
		qp = container_of(obj, struct uqp, uobj);
		doorbell_hooked(&qp->bell);
		trace(doorbell, noticed, "hook", "SQ", qp_number(qp->qp));
		qp_doorbell(qp->qp);
	}
	rcu_leave();
}

void uverbs_qp_recv_posted(int cmd_fd, uint32_t handle)
{
	struct uobj *obj;

	rcu_enter();
	obj = object_peek(cmd_fd, UOBJ_QP, handle);
	if (obj)
		qp_recv_posted(container_of(obj, struct uqp, uobj)->qp);
	rcu_leave();
}

void uverbs_wq_recv_posted(int cmd_fd, uint32_t handle)
{
	struct uobj *obj;

	rcu_enter();
	obj = object_peek(cmd_fd, UOBJ_WQ, handle);
	if (obj)
		wq_recv_posted(container_of(obj, struct uwq, uobj)->wq);
	rcu_leave();
}

void uverbs_cq_doorbell(int cmd_fd, uint32_t handle)
{
	struct uobj *obj;

	rcu_enter();
	obj = object_peek(cmd_fd, UOBJ_CQ, handle);
	if (obj) {
		trace(doorbell, noticed, "hook", "CQ", handle);
		ucq_ring(container_of(obj, struct ucq, uobj));
	}
	rcu_leave();
}

void uverbs_hooked(int cmd_fd)
{
	struct cdev_file *f;

	rcu_enter();
	f = cdev_peek(cmd_fd);
	if (f && f->ops == &uverbs_file_ops)
		atomic_store(&container_of(f, struct ufile, cdev)->hooked, true);
	rcu_leave();
}

void uverbs_qp_taken_over(int cmd_fd, uint32_t handle)
{
	struct uobj *obj;

	rcu_enter();
	obj = object_peek(cmd_fd, UOBJ_QP, handle);
	if (obj)
		doorbell_taken_over(&container_of(obj, struct uqp, uobj)->bell);
	rcu_leave();
}

void uverbs_cq_taken_over(int cmd_fd, uint32_t handle)
{
	struct uobj *obj;

	rcu_enter();
	obj = object_peek(cmd_fd, UOBJ_CQ, handle);
	if (obj)
		doorbell_taken_over(&container_of(obj, struct ucq, uobj)->bell);
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
