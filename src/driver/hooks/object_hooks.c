// SPDX-License-Identifier: BSD-2-Clause
/* See hooks/hooks.h. */
#include "driver/hooks/hooks.h"

#include <errno.h>
#include <stdio.h>

#include "adapter/qp/qp_state.h"
#include "base/explain.h"
#include "base/hazard.h"
#include "base/trace.h"
#include "driver/uverbs/core/file.h"
#include "driver/uverbs/objects/objects.h"
#include "driver/uverbs/uverbs.h"

/* Call inside hazard_enter: the object stays until hazard_leave, because destroy waits in between. */
static inline struct uobj *object_peek(int cmd_fd, enum uobj_type type, uint32_t handle)
{
	struct cdev_file *f = cdev_peek(cmd_fd);

	if (!f || f->ops != &uverbs_file_ops)
		return NULL;
	return uobj_peek(&container_of(f, struct ufile, cdev)->objects, type, handle);
}

#define WHY_BYTES 240

static const char no_reason[] = "'softhca explain' with both says what it may be";

static void too_many_pieces(const struct refused_post *p, const char *limit, uint32_t max,
			    char why[WHY_BYTES])
{
	(void)snprintf(why, WHY_BYTES,
		       "the request has %u pieces (num_sge), and the queue was made with %s %u",
		       p->pieces, limit, max);
}

/* Says that the send queue is full, as far as we can tell. */
static void no_room_to_send(const struct uqp *qp, const struct refused_post *p, char why[WHY_BYTES])
{
	int n = snprintf(why, WHY_BYTES,
			 "the send queue is full (max_send_wr %u): entries become free when the "
			 "completion of this or a later request with IBV_SEND_SIGNALED is polled",
			 qp->max_send_wr);

	if (p->is_built)
		(void)snprintf(why + n, WHY_BYTES - (size_t)n,
			       "; or one has more than max_send_sge %u or max_inline_data %u",
			       qp->max_send_sge, qp->max_inline);
}

static void send_refusal(const struct uqp *qp, const struct refused_post *p, char why[WHY_BYTES])
{
	struct qp_attr attr;

	qp_query(qp->qp, &attr);
	if (attr.state < IB_QPS_RTS && (!p->is_built || p->err == ENOMEM))
		(void)snprintf(why, WHY_BYTES,
			       "the QP is in state %s, and sends can be posted from RTS on "
			       "(ibv_modify_qp)",
			       qp_state_name(attr.state));
	else if (p->pieces > qp->max_send_sge)
		too_many_pieces(p, "max_send_sge", qp->max_send_sge, why);
	else if (p->is_inline && p->bytes > qp->max_inline)
		(void)snprintf(why, WHY_BYTES,
			       "the request has %llu bytes inline, and the QP was made with "
			       "max_inline_data %u",
			       (unsigned long long)p->bytes, qp->max_inline);
	else if (p->err == ENOMEM)
		no_room_to_send(qp, p, why);
	else if (p->is_built)
		(void)snprintf(why, WHY_BYTES,
			       "a request was built wrongly: its operation is not one of this type "
			       "of QP, or it has more than max_send_sge %u or max_inline_data %u",
			       qp->max_send_sge, qp->max_inline);
	else
		(void)snprintf(why, WHY_BYTES, "%s", no_reason);
}

static void recv_refusal(const struct uqp *qp, const struct refused_post *p, char why[WHY_BYTES])
{
	struct qp_attr attr;

	qp_query(qp->qp, &attr);
	if (qp->srq || !qp->max_recv_wr)
		(void)snprintf(why, WHY_BYTES, "the QP has no receive queue of its own%s",
			       qp->srq ? ": its receives are those of its SRQ (ibv_post_srq_recv)"
				       : ": its max_recv_wr is 0");
	else if (attr.state == IB_QPS_RESET)
		(void)snprintf(why, WHY_BYTES,
			       "the QP is in state RESET, and receives can be posted from INIT on "
			       "(ibv_modify_qp)");
	else if (p->pieces > qp->max_recv_sge)
		too_many_pieces(p, "max_recv_sge", qp->max_recv_sge, why);
	else if (p->err == ENOMEM)
		(void)snprintf(why, WHY_BYTES,
			       "the receive queue is full (max_recv_wr %u): an entry becomes free "
			       "when its completion is polled",
			       qp->max_recv_wr);
	else
		(void)snprintf(why, WHY_BYTES, "%s", no_reason);
}

static void srq_refusal(const struct usrq *srq, const struct refused_post *p, char why[WHY_BYTES])
{
	if (p->pieces > srq->max_sge)
		too_many_pieces(p, "max_sge", srq->max_sge, why);
	else if (p->err == ENOMEM)
		(void)snprintf(
			why, WHY_BYTES,
			"the shared receive queue is full (max_wr %u): an entry becomes free "
			"when its completion is polled",
			srq->max_wr);
	else
		(void)snprintf(why, WHY_BYTES, "%s", no_reason);
}

void uverbs_qp_explain_post(int cmd_fd, uint32_t handle, const struct refused_post *post)
{
	const char *call = post->is_built ? "ibv_wr_complete" : "ibv_post_send";
	char why[WHY_BYTES];
	struct uobj *obj;
	struct uqp *qp;

	hazard_enter();
	obj = object_peek(cmd_fd, UOBJ_QP, handle);
	if (obj) {
		qp = container_of(obj, struct uqp, uobj);
		send_refusal(qp, post, why);
		explain_line(qp_number(qp->qp), "QP 0x%x %s: %s: %s", qp_number(qp->qp), call,
			     trace_errno(post->err), why);
	}
	hazard_leave();
}

void uverbs_qp_explain_recv(int cmd_fd, uint32_t handle, const struct refused_post *post)
{
	char why[WHY_BYTES];
	struct uobj *obj;
	struct uqp *qp;

	hazard_enter();
	obj = object_peek(cmd_fd, UOBJ_QP, handle);
	if (obj) {
		qp = container_of(obj, struct uqp, uobj);
		recv_refusal(qp, post, why);
		explain_line(qp_number(qp->qp), "QP 0x%x ibv_post_recv: %s: %s", qp_number(qp->qp),
			     trace_errno(post->err), why);
	}
	hazard_leave();
}

void uverbs_srq_tell_recv(int cmd_fd, uint32_t handle, const struct ibv_recv_wr *wr)
{
	const struct srq *srq;
	struct uobj *obj;
	uint16_t count;

	hazard_enter();
	obj = object_peek(cmd_fd, UOBJ_SRQ, handle);
	if (obj) {
		srq = container_of(obj, struct usrq, uobj)->srq;
		for (count = srq_posted(srq); wr; wr = wr->next)
			trace(srq, posted, srq_number(srq), count++, wr->wr_id);
	}
	hazard_leave();
}

void uverbs_srq_explain_recv(int cmd_fd, uint32_t handle, const struct refused_post *post)
{
	char why[WHY_BYTES];
	struct uobj *obj;
	struct usrq *srq;

	hazard_enter();
	obj = object_peek(cmd_fd, UOBJ_SRQ, handle);
	if (obj) {
		srq = container_of(obj, struct usrq, uobj);
		srq_refusal(srq, post, why);
		explain_line(srq_number(srq->srq), "SRQ 0x%x ibv_post_srq_recv: %s: %s",
			     srq_number(srq->srq), trace_errno(post->err), why);
	}
	hazard_leave();
}

void uverbs_qp_doorbell(int cmd_fd, uint32_t handle)
{
	struct uobj *obj;
	struct uqp *qp;

	hazard_enter();
	obj = object_peek(cmd_fd, UOBJ_QP, handle);
	if (obj) {
		qp = container_of(obj, struct uqp, uobj);
		doorbell_hooked(&qp->bell);
		trace(doorbell, noticed, "hook", "SQ", qp_number(qp->qp));
		qp_doorbell(qp->qp);
	}
	hazard_leave();
}

void uverbs_qp_recv_posted(int cmd_fd, uint32_t handle)
{
	struct uobj *obj;

	hazard_enter();
	obj = object_peek(cmd_fd, UOBJ_QP, handle);
	if (obj)
		qp_recv_posted(container_of(obj, struct uqp, uobj)->qp);
	hazard_leave();
}

void uverbs_wq_recv_posted(int cmd_fd, uint32_t handle)
{
	struct uobj *obj;

	hazard_enter();
	obj = object_peek(cmd_fd, UOBJ_WQ, handle);
	if (obj)
		wq_recv_posted(container_of(obj, struct uwq, uobj)->wq);
	hazard_leave();
}

bool uverbs_cq_doorbell(int cmd_fd, uint32_t handle)
{
	bool stood_for = false;
	struct uobj *obj;

	hazard_enter();
	obj = object_peek(cmd_fd, UOBJ_CQ, handle);
	if (obj) {
		struct ucq *cq = container_of(obj, struct ucq, uobj);

		trace(doorbell, noticed, "hook", "CQ", handle);
		ucq_ring(cq);
		stood_for = cq->comp && uchannel_is_stood_for(cq->comp);
	}
	hazard_leave();
	return stood_for;
}

void uverbs_hooked(int cmd_fd)
{
	struct cdev_file *f;

	hazard_enter();
	f = cdev_peek(cmd_fd);
	if (f && f->ops == &uverbs_file_ops)
		atomic_store(&container_of(f, struct ufile, cdev)->hooked, true);
	hazard_leave();
}

void uverbs_qp_taken_over(int cmd_fd, uint32_t handle)
{
	struct uobj *obj;

	hazard_enter();
	obj = object_peek(cmd_fd, UOBJ_QP, handle);
	if (obj)
		doorbell_taken_over(&container_of(obj, struct uqp, uobj)->bell);
	hazard_leave();
}

void uverbs_cq_taken_over(int cmd_fd, uint32_t handle)
{
	struct uobj *obj;

	hazard_enter();
	obj = object_peek(cmd_fd, UOBJ_CQ, handle);
	if (obj)
		doorbell_taken_over(&container_of(obj, struct ucq, uobj)->bell);
	hazard_leave();
}

void uverbs_clock_wanted(int cmd_fd)
{
	struct cdev_file *f;

	hazard_enter();
	f = cdev_peek(cmd_fd);
	if (f && f->ops == &uverbs_file_ops)
		uclock_refresh(container_of(f, struct ufile, cdev));
	hazard_leave();
}
