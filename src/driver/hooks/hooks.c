// SPDX-License-Identifier: BSD-2-Clause
/*
 * The wrappers, and how they take the place of the originals.
 *
 * A hook must find the original of the pointer that it replaced, on the data path, for any number
 * of contexts.  There are few different originals (libmlx5 has one post_send, and a start_poll per
 * flavour of CQ), so each distinct one gets a wrapper function of its own out of a fixed set, made
 * below by macros: no look-up, no lock, nothing to free.  When a set is used up, pointers stay as
 * they are and the engine does the work.
 */
#include "driver/hooks/hooks.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/compiler.h"
#include "base/explain.h"
#include "base/trace.h"
#include "driver/file/cdev_file.h"
#include "driver/runtime/drive.h"
#include "driver/runtime/process.h"

/* ---- what a hook adds ---- */

static bool hook_drive_device(void)
{
	struct process *p = process_current();

	return p && drive_poll(p);
}

static void hook_going_to_wait(bool by_read)
{
	struct process *p = process_current();

	if (p)
		drive_before_wait(p, by_read);
}

/* ---- entry points of a context ---- */

struct entry_points {
	int (*post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
	int (*post_recv)(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **);
	int (*post_srq_recv)(struct ibv_srq *, struct ibv_recv_wr *, struct ibv_recv_wr **);
	int (*poll_cq)(struct ibv_cq *, int, struct ibv_wc *);
	int (*req_notify_cq)(struct ibv_cq *, int);
	int (*bind_mw)(struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *);
	/* NULL where the library is too old to have it. */
	struct ibv_cq_ex *(*create_cq_ex)(struct ibv_context *, struct ibv_cq_init_attr_ex *);
	struct ibv_wq *(*create_wq)(struct ibv_context *, struct ibv_wq_init_attr *);
	int (*query_rt_values)(struct ibv_context *, struct ibv_values_ex *);
};

/* Memory that the library has not read may not be there. */
#define PIECES_READ 64

/* Explains why the library has refused the request. */
static void explain_post(struct ibv_qp *qp, const struct ibv_send_wr *wr, int err)
{
	struct refused_post post = {.err = err, .pieces = (uint32_t)wr->num_sge};

	post.is_inline = wr->send_flags & IBV_SEND_INLINE;
	for (int i = 0; post.is_inline && i < wr->num_sge && i < PIECES_READ; i++)
		post.bytes += wr->sg_list[i].length;
	uverbs_qp_explain_post(qp->context->cmd_fd, qp->handle, &post);
}

/* ---- trace points; out of line, so that the data path has only a test and a call ---- */

#define COLD __attribute__((noinline, cold))

static COLD void tell_send_wrs(const struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	for (; wr; wr = wr->next)
		trace(post, send, qp->qp_num, wr->wr_id);
}

static COLD void tell_recv_wrs(const struct ibv_qp *qp, const struct ibv_recv_wr *wr)
{
	for (; wr; wr = wr->next)
		trace(post, recv, qp->qp_num, wr->wr_id);
}

static COLD void tell_send_refused(const struct ibv_qp *qp, const struct ibv_send_wr *bad)
{
	uint64_t n = 0;

	for (; bad; bad = bad->next)
		n++;
	trace(post, refused, qp->qp_num, "SQ", n);
}

static COLD void tell_recv_refused(const struct ibv_qp *qp, const struct ibv_recv_wr *bad)
{
	uint64_t n = 0;

	for (; bad; bad = bad->next)
		n++;
	trace(post, refused, qp->qp_num, "RQ", n);
}

static COLD void tell_polled(const struct ibv_wc *wc, int n)
{
	/* Of a failed request the opcode is not set. */
	for (int i = 0; i < n; i++)
		trace(cq, polled, wc[i].qp_num, wc[i].wr_id,
		      wc[i].status		   ? "unknown"
		      : wc[i].opcode & IBV_WC_RECV ? "RQ"
						   : "SQ",
		      (uint64_t)wc[i].status);
}

/* A failed post may have posted the head of its list, so this looks at the doorbell in any case. */
static inline int hooked_post_send(const struct entry_points *real, struct ibv_qp *qp,
				   struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	int ret;

	if (trace_is_on(post, send))
		tell_send_wrs(qp, wr);
	ret = real->post_send(qp, wr, bad_wr);
	if (unlikely(ret) && explaining())
		explain_post(qp, *bad_wr, ret);
	if (unlikely(ret) && trace_is_on(post, refused))
		tell_send_refused(qp, *bad_wr);
	uverbs_qp_doorbell(qp->context->cmd_fd, qp->handle);
	return ret;
}

static inline int hooked_post_recv(const struct entry_points *real, struct ibv_qp *qp,
				   struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int ret;

	if (trace_is_on(post, recv))
		tell_recv_wrs(qp, wr);
	ret = real->post_recv(qp, wr, bad_wr);
	if (unlikely(ret) && trace_is_on(post, refused))
		tell_recv_refused(qp, *bad_wr);
	if (unlikely(ret) && explaining())
		uverbs_qp_explain_recv(
			qp->context->cmd_fd, qp->handle,
			&(struct refused_post){.err = ret, .pieces = (uint32_t)(*bad_wr)->num_sge});
	uverbs_qp_recv_posted(qp->context->cmd_fd, qp->handle);
	return ret;
}

/* The thread that delivers looks for receives anyway, so the hook only tells and explains. */
static inline int hooked_post_srq_recv(const struct entry_points *real, struct ibv_srq *srq,
				       struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int ret;

	if (trace_is_on(srq, posted))
		uverbs_srq_tell_recv(srq->context->cmd_fd, srq->handle, wr);
	ret = real->post_srq_recv(srq, wr, bad_wr);
	if (unlikely(ret) && explaining())
		uverbs_srq_explain_recv(
			srq->context->cmd_fd, srq->handle,
			&(struct refused_post){.err = ret, .pieces = (uint32_t)(*bad_wr)->num_sge});
	return ret;
}

static inline int hooked_poll_cq(const struct entry_points *real, struct ibv_cq *cq, int entries,
				 struct ibv_wc *wc)
{
	int n = real->poll_cq(cq, entries, wc);

	if (n == 0 && hook_drive_device())
		n = real->poll_cq(cq, entries, wc);
	if (trace_is_on(cq, polled))
		tell_polled(wc, n);
	return n;
}

static inline int hooked_req_notify_cq(const struct entry_points *real, struct ibv_cq *cq,
				       int solicited_only)
{
	int ret = real->req_notify_cq(cq, solicited_only);

	hook_going_to_wait(uverbs_cq_doorbell(cq->context->cmd_fd, cq->handle));
	return ret;
}

/* Binds type 1 windows: the library posts the bind itself. */
static inline int hooked_bind_mw(const struct entry_points *real, struct ibv_qp *qp,
				 struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	int ret;

	trace(post, send, qp->qp_num, bind->wr_id);
	ret = real->bind_mw(qp, mw, bind);
	if (unlikely(ret))
		trace(post, refused, qp->qp_num, "SQ", 1);
	uverbs_qp_doorbell(qp->context->cmd_fd, qp->handle);
	return ret;
}

static inline struct ibv_cq_ex *hooked_create_cq_ex(const struct entry_points *real,
						    struct ibv_context *context,
						    struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_ex *cq = real->create_cq_ex(context, attr);

	if (cq)
		hooks_cq_ex(cq);
	return cq;
}

static inline struct ibv_wq *hooked_create_wq(const struct entry_points *real,
					      struct ibv_context *context,
					      struct ibv_wq_init_attr *attr)
{
	struct ibv_wq *wq = real->create_wq(context, attr);

	if (wq)
		hooks_wq(wq);
	return wq;
}

static inline int hooked_query_rt_values(const struct entry_points *real,
					 struct ibv_context *context, struct ibv_values_ex *values)
{
	uverbs_clock_wanted(context->cmd_fd);
	return real->query_rt_values(context, values);
}

/* A program can meet at most one set per provider library and CQE version. */
#define CONTEXT_SETS 4
static struct entry_points context_reals[CONTEXT_SETS];

#define CONTEXT_WRAPPERS(i)                                                                       \
	static int post_send_##i(struct ibv_qp *qp, struct ibv_send_wr *wr,                       \
				 struct ibv_send_wr **bad_wr)                                     \
	{                                                                                         \
		return hooked_post_send(&context_reals[i], qp, wr, bad_wr);                       \
	}                                                                                         \
	static int post_recv_##i(struct ibv_qp *qp, struct ibv_recv_wr *wr,                       \
				 struct ibv_recv_wr **bad_wr)                                     \
	{                                                                                         \
		return hooked_post_recv(&context_reals[i], qp, wr, bad_wr);                       \
	}                                                                                         \
	static int post_srq_recv_##i(struct ibv_srq *srq, struct ibv_recv_wr *wr,                 \
				     struct ibv_recv_wr **bad_wr)                                 \
	{                                                                                         \
		return hooked_post_srq_recv(&context_reals[i], srq, wr, bad_wr);                  \
	}                                                                                         \
	static int poll_cq_##i(struct ibv_cq *cq, int entries, struct ibv_wc *wc)                 \
	{                                                                                         \
		return hooked_poll_cq(&context_reals[i], cq, entries, wc);                        \
	}                                                                                         \
	static int req_notify_cq_##i(struct ibv_cq *cq, int solicited_only)                       \
	{                                                                                         \
		return hooked_req_notify_cq(&context_reals[i], cq, solicited_only);               \
	}                                                                                         \
	static int bind_mw_##i(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *b)       \
	{                                                                                         \
		return hooked_bind_mw(&context_reals[i], qp, mw, b);                              \
	}                                                                                         \
	static struct ibv_cq_ex *create_cq_ex_##i(struct ibv_context *context,                    \
						  struct ibv_cq_init_attr_ex *attr)               \
	{                                                                                         \
		return hooked_create_cq_ex(&context_reals[i], context, attr);                     \
	}                                                                                         \
	static struct ibv_wq *create_wq_##i(struct ibv_context *context,                          \
					    struct ibv_wq_init_attr *attr)                        \
	{                                                                                         \
		return hooked_create_wq(&context_reals[i], context, attr);                        \
	}                                                                                         \
	static int query_rt_values_##i(struct ibv_context *context, struct ibv_values_ex *values) \
	{                                                                                         \
		return hooked_query_rt_values(&context_reals[i], context, values);                \
	}

CONTEXT_WRAPPERS(0)
CONTEXT_WRAPPERS(1)
CONTEXT_WRAPPERS(2)
CONTEXT_WRAPPERS(3)

#define CONTEXT_SET(i)                                                        \
	{                                                                     \
		.post_send = post_send_##i, .post_recv = post_recv_##i,       \
		.post_srq_recv = post_srq_recv_##i, .poll_cq = poll_cq_##i,   \
		.req_notify_cq = req_notify_cq_##i, .bind_mw = bind_mw_##i,   \
		.create_cq_ex = create_cq_ex_##i, .create_wq = create_wq_##i, \
		.query_rt_values = query_rt_values_##i,                       \
	}

static const struct entry_points context_wrappers[CONTEXT_SETS] = {
	CONTEXT_SET(0),
	CONTEXT_SET(1),
	CONTEXT_SET(2),
	CONTEXT_SET(3),
};

/* ---- start_poll of an extended CQ ---- */

/* Tells of the completion that start_poll or next_poll has found, if the program has asked for queue
 * pairs' numbers: the others nobody can read. */
static COLD void tell_polled_ex(struct ibv_cq_ex *cq)
{
	/* Of a failed request the opcode is not set. */
	if (cq->read_qp_num)
		trace(cq, polled, ibv_wc_read_qp_num(cq), cq->wr_id,
		      cq->status			     ? "unknown"
		      : ibv_wc_read_opcode(cq) & IBV_WC_RECV ? "RQ"
							     : "SQ",
		      (uint64_t)cq->status);
}

typedef int start_poll_fn(struct ibv_cq_ex *, struct ibv_poll_cq_attr *);

static inline int hooked_start_poll(start_poll_fn *real, struct ibv_cq_ex *cq,
				    struct ibv_poll_cq_attr *attr)
{
	int ret = real(cq, attr);

	/* The library has released the CQ's lock when it says that the CQ is empty. */
	if (ret == ENOENT && hook_drive_device())
		ret = real(cq, attr);
	if (!ret && trace_is_on(cq, polled))
		tell_polled_ex(cq);
	return ret;
}

/* Flavours of CQ: locked or not, three ways to stall, clock conversion, two CQE versions. */
#define FIRST_8(X)	       X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define SECOND_8(X)	       X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define THIRD_8(X)	       X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23)
#define FOR_EACH_START_POLL(X) FIRST_8(X) SECOND_8(X) THIRD_8(X)
#define START_POLLS	       24
static start_poll_fn *start_poll_reals[START_POLLS];

#define START_POLL_WRAPPER(i)                                                       \
	static int start_poll_##i(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *a) \
	{                                                                           \
		return hooked_start_poll(start_poll_reals[i], cq, a);               \
	}
FOR_EACH_START_POLL(START_POLL_WRAPPER)

#define START_POLL_NAME(i) start_poll_##i,
static start_poll_fn *const start_poll_wrappers[] = {FOR_EACH_START_POLL(START_POLL_NAME)};
static_assert(array_size(start_poll_wrappers) == START_POLLS, "one wrapper per original");

typedef int next_poll_fn(struct ibv_cq_ex *);

static inline int hooked_next_poll(next_poll_fn *real, struct ibv_cq_ex *cq)
{
	int ret = real(cq);

	if (!ret && trace_is_on(cq, polled))
		tell_polled_ex(cq);
	return ret;
}

/* Two ways to stall, two CQE versions. */
#define FOR_EACH_NEXT_POLL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define NEXT_POLLS	      8
static next_poll_fn *next_poll_reals[NEXT_POLLS];

#define NEXT_POLL_WRAPPER(i)                                     \
	static int next_poll_##i(struct ibv_cq_ex *cq)           \
	{                                                        \
		return hooked_next_poll(next_poll_reals[i], cq); \
	}
FOR_EACH_NEXT_POLL(NEXT_POLL_WRAPPER)

#define NEXT_POLL_NAME(i) next_poll_##i,
static next_poll_fn *const next_poll_wrappers[] = {FOR_EACH_NEXT_POLL(NEXT_POLL_NAME)};
static_assert(array_size(next_poll_wrappers) == NEXT_POLLS, "one wrapper per original");

/* ---- wr_complete of an extended QP ---- */

typedef int wr_complete_fn(struct ibv_qp_ex *);

static inline int hooked_wr_complete(wr_complete_fn *real, struct ibv_qp_ex *qp)
{
	int ret;

	trace(post, built, qp->qp_base.qp_num);
	ret = real(qp);
	if (unlikely(ret) && explaining())
		uverbs_qp_explain_post(qp->qp_base.context->cmd_fd, qp->qp_base.handle,
				       &(struct refused_post){.err = ret, .is_built = true});
	uverbs_qp_doorbell(qp->qp_base.context->cmd_fd, qp->qp_base.handle);
	return ret;
}

#define FOR_EACH_WR_COMPLETE(X) X(0) X(1) X(2) X(3)
#define WR_COMPLETES		4
static wr_complete_fn *wr_complete_reals[WR_COMPLETES];

#define WR_COMPLETE_WRAPPER(i)                                       \
	static int wr_complete_##i(struct ibv_qp_ex *qp)             \
	{                                                            \
		return hooked_wr_complete(wr_complete_reals[i], qp); \
	}
FOR_EACH_WR_COMPLETE(WR_COMPLETE_WRAPPER)

#define WR_COMPLETE_NAME(i) wr_complete_##i,
static wr_complete_fn *const wr_complete_wrappers[] = {FOR_EACH_WR_COMPLETE(WR_COMPLETE_NAME)};
static_assert(array_size(wr_complete_wrappers) == WR_COMPLETES, "one wrapper per original");

/* ---- post_recv of a work queue ---- */

typedef int wq_post_recv_fn(struct ibv_wq *, struct ibv_recv_wr *, struct ibv_recv_wr **);

static inline int hooked_wq_post_recv(wq_post_recv_fn *real, struct ibv_wq *wq,
				      struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	int ret = real(wq, wr, bad_wr);

	uverbs_wq_recv_posted(wq->context->cmd_fd, wq->handle);
	return ret;
}

#define FOR_EACH_WQ_POST_RECV(X) X(0) X(1) X(2) X(3)
#define WQ_POST_RECVS		 4
static wq_post_recv_fn *wq_post_recv_reals[WQ_POST_RECVS];

#define WQ_POST_RECV_WRAPPER(i)                                                    \
	static int wq_post_recv_##i(struct ibv_wq *wq, struct ibv_recv_wr *wr,     \
				    struct ibv_recv_wr **bad_wr)                   \
	{                                                                          \
		return hooked_wq_post_recv(wq_post_recv_reals[i], wq, wr, bad_wr); \
	}
FOR_EACH_WQ_POST_RECV(WQ_POST_RECV_WRAPPER)

#define WQ_POST_RECV_NAME(i) wq_post_recv_##i,
static wq_post_recv_fn *const wq_post_recv_wrappers[] = {FOR_EACH_WQ_POST_RECV(WQ_POST_RECV_NAME)};
static_assert(array_size(wq_post_recv_wrappers) == WQ_POST_RECVS, "one wrapper per original");

/* ---- replacing ---- */

/* Held by writers of the *_reals tables.  A wrapper reads its entry only after somebody installed
 * it, and entries never change after that. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool same_context_set(const struct entry_points *a, const struct entry_points *b)
{
	return a->post_send == b->post_send && a->post_recv == b->post_recv &&
	       a->post_srq_recv == b->post_srq_recv && a->poll_cq == b->poll_cq &&
	       a->req_notify_cq == b->req_notify_cq && a->bind_mw == b->bind_mw &&
	       a->create_cq_ex == b->create_cq_ex && a->create_wq == b->create_wq &&
	       a->query_rt_values == b->query_rt_values;
}

/*
 * Returns wrappers for these originals; NULL: they are wrappers already, or the sets are used up.
 */
static const struct entry_points *context_set_for(const struct entry_points *real)
{
	for (size_t i = 0; i < CONTEXT_SETS; i++)
		if (real->post_send == context_wrappers[i].post_send)
			return NULL;
	for (size_t i = 0; i < CONTEXT_SETS; i++) {
		if (!context_reals[i].post_send)
			context_reals[i] = *real;
		if (same_context_set(&context_reals[i], real))
			return &context_wrappers[i];
	}
	return NULL;
}

void hooks_context(struct ibv_context *context)
{
	struct ibv_context_ops *ops = &context->ops;
	struct verbs_context *with_cq_ex = verbs_get_ctx_op(context, create_cq_ex);
	struct verbs_context *with_wq = verbs_get_ctx_op(context, create_wq);
	struct verbs_context *with_rt_values = verbs_get_ctx_op(context, query_rt_values);
	const struct entry_points real = {
		.post_send = ops->post_send,
		.post_recv = ops->post_recv,
		.post_srq_recv = ops->post_srq_recv,
		.poll_cq = ops->poll_cq,
		.req_notify_cq = ops->req_notify_cq,
		.bind_mw = ops->bind_mw,
		.create_cq_ex = with_cq_ex ? with_cq_ex->create_cq_ex : NULL,
		.create_wq = with_wq ? with_wq->create_wq : NULL,
		.query_rt_values = with_rt_values ? with_rt_values->query_rt_values : NULL,
	};
	const struct entry_points *hook;

	if (!cdev_table_load(context->cmd_fd))
		return;
	pthread_mutex_lock(&lock);
	hook = context_set_for(&real);
	if (hook) {
		ops->post_send = hook->post_send;
		ops->post_recv = hook->post_recv;
		ops->post_srq_recv = hook->post_srq_recv;
		ops->poll_cq = hook->poll_cq;
		ops->req_notify_cq = hook->req_notify_cq;
		ops->bind_mw = hook->bind_mw;
		if (with_cq_ex)
			with_cq_ex->create_cq_ex = hook->create_cq_ex;
		if (with_wq)
			with_wq->create_wq = hook->create_wq;
		if (with_rt_values)
			with_rt_values->query_rt_values = hook->query_rt_values;
		uverbs_hooked(context->cmd_fd);
	}
	pthread_mutex_unlock(&lock);
}

/* Puts the wrapper of a pointer that the library set in its place.  This is a macro because each
 * pointer has its own type. */
#define HOOK_POINTER(pointer, reals, wrappers)                                \
	do {                                                                  \
		pthread_mutex_lock(&lock);                                    \
		for (size_t i = 0; i < array_size(reals) && (pointer); i++) { \
			if ((pointer) == (wrappers)[i])                       \
				break;                                        \
			if (!(reals)[i])                                      \
				(reals)[i] = (pointer);                       \
			if ((reals)[i] == (pointer)) {                        \
				(pointer) = (wrappers)[i];                    \
				break;                                        \
			}                                                     \
		}                                                             \
		pthread_mutex_unlock(&lock);                                  \
	} while (0)

void hooks_cq_ex(struct ibv_cq_ex *cq)
{
	HOOK_POINTER(cq->start_poll, start_poll_reals, start_poll_wrappers);
	HOOK_POINTER(cq->next_poll, next_poll_reals, next_poll_wrappers);
}

void hooks_qp_ex(struct ibv_qp_ex *qp)
{
	HOOK_POINTER(qp->wr_complete, wr_complete_reals, wr_complete_wrappers);
}

void hooks_wq(struct ibv_wq *wq)
{
	HOOK_POINTER(wq->post_recv, wq_post_recv_reals, wq_post_recv_wrappers);
}

/* ---- fork: a child must not inherit the lock held by a thread that it does not have ---- */

void hooks_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void hooks_fork_done(void)
{
	pthread_mutex_unlock(&lock);
}
