// SPDX-License-Identifier: BSD-2-Clause
/*
 * Hooks in the entry points of a library: each original is called with what the program passed, once,
 * whatever other originals there are; nothing is wrapped twice; and what there is no wrapper left
 * for stays as it was.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "check.h"
#include "driver/file/cdev_file.h"
#include "driver/hooks/hooks.h"

/* As many as hooks.c has. */
#define START_POLLS   24u
#define WR_COMPLETES  4u
#define WQ_POST_RECVS 4u
#define CONTEXT_SETS  4u

#define CONTEXT_FD 9 /* of a file of ours */
#define OTHER_FD   10

/* What the last original was called with, and how often any was. */
static struct {
	unsigned which, calls;
	const void *object, *first, *second;
	int number;
} seen;

static void note_cqes(unsigned which, const void *object, const void *first, const void *second)
{
	seen.which = which;
	seen.object = object;
	seen.first = first;
	seen.second = second;
	seen.calls++;
}

static void expect_call(unsigned which, const void *object, const void *first, const void *second)
{
	CHECK(seen.calls == 1 && seen.which == which && seen.object == object);
	CHECK(seen.first == first && seen.second == second);
	memset(&seen, 0, sizeof(seen));
}

/* ---- originals: more than there are wrappers ---- */

#define FIRST_10(X)  X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9)
#define SECOND_10(X) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19)
#define THIRD_6(X)   X(20) X(21) X(22) X(23) X(24) X(25)
#define ALL_26(X)    FIRST_10(X) SECOND_10(X) THIRD_6(X)
#define SOME_6(X)    X(0) X(1) X(2) X(3) X(4) X(5)

/* Codes that the program gets to see as they are. */
#define RESULT(i) (100 + (i))

#define START_POLL(i)                                                               \
	static int start_poll_##i(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *a) \
	{                                                                           \
		note_cqes(i, cq, a, NULL);                                          \
		return RESULT(i);                                                   \
	}
ALL_26(START_POLL)
#define START_POLL_NAME(i) start_poll_##i,
typedef int start_poll_fn(struct ibv_cq_ex *, struct ibv_poll_cq_attr *);
static start_poll_fn *const start_polls[] = {ALL_26(START_POLL_NAME)};

#define WR_COMPLETE(i)                                   \
	static int wr_complete_##i(struct ibv_qp_ex *qp) \
	{                                                \
		note_cqes(i, qp, NULL, NULL);            \
		return RESULT(i);                        \
	}
SOME_6(WR_COMPLETE)
#define WR_COMPLETE_NAME(i) wr_complete_##i,
typedef int wr_complete_fn(struct ibv_qp_ex *);
static wr_complete_fn *const wr_completes[] = {SOME_6(WR_COMPLETE_NAME)};

#define WQ_POST_RECV(i)                                                        \
	static int wq_post_recv_##i(struct ibv_wq *wq, struct ibv_recv_wr *wr, \
				    struct ibv_recv_wr **bad)                  \
	{                                                                      \
		note_cqes(i, wq, wr, bad);                                     \
		return RESULT(i);                                              \
	}
SOME_6(WQ_POST_RECV)
#define WQ_POST_RECV_NAME(i) wq_post_recv_##i,
typedef int wq_post_recv_fn(struct ibv_wq *, struct ibv_recv_wr *, struct ibv_recv_wr **);
static wq_post_recv_fn *const wq_post_recvs[] = {SOME_6(WQ_POST_RECV_NAME)};

#define POST_SEND(i)                                                        \
	static int post_send_##i(struct ibv_qp *qp, struct ibv_send_wr *wr, \
				 struct ibv_send_wr **bad)                  \
	{                                                                   \
		note_cqes(i, qp, wr, bad);                                  \
		return RESULT(i);                                           \
	}
SOME_6(POST_SEND)
#define POST_SEND_NAME(i) post_send_##i,
typedef int post_send_fn(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
static post_send_fn *const post_sends[] = {SOME_6(POST_SEND_NAME)};

static int poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	note_cqes(0, cq, wc, NULL);
	seen.number = entries;
	return -7;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	note_cqes(1, qp, wr, bad);
	return 5;
}

/* ---- pointers that the library sets on objects ---- */

static void test_start_poll(void)
{
	const unsigned n = array_size(start_polls);
	struct ibv_cq_ex cq[array_size(start_polls)] = {0}, again;
	struct ibv_poll_cq_attr attr;

	for (unsigned i = 0; i < n; i++) {
		cq[i].start_poll = start_polls[i];
		hooks_cq_ex(&cq[i]);
		CHECK((cq[i].start_poll != start_polls[i]) == (i < START_POLLS));
	}
	for (unsigned i = 0; i < n; i++) {
		CHECK(cq[i].start_poll(&cq[i], &attr) == RESULT((int)i));
		expect_call(i, &cq[i], &attr, NULL);
		/* a second CQ of the flavour, and one that has its hook */
		again.start_poll = start_polls[i];
		hooks_cq_ex(&again);
		CHECK(again.start_poll == cq[i].start_poll);
		hooks_cq_ex(&again);
		CHECK(again.start_poll == cq[i].start_poll);
	}
	again.start_poll = NULL;
	hooks_cq_ex(&again);
	CHECK(!again.start_poll);
}

static void test_wr_complete(void)
{
	static struct ibv_context context = {.cmd_fd = OTHER_FD};

	for (unsigned i = 0; i < array_size(wr_completes); i++) {
		struct ibv_qp_ex qp = {.wr_complete = wr_completes[i]};

		qp.qp_base.context = &context;
		hooks_qp_ex(&qp);
		CHECK((qp.wr_complete != wr_completes[i]) == (i < WR_COMPLETES));
		hooks_qp_ex(&qp);
		CHECK(qp.wr_complete(&qp) == RESULT((int)i));
		expect_call(i, &qp, NULL, NULL);
	}
}

static void test_wq_post_recv(void)
{
	static struct ibv_context context = {.cmd_fd = OTHER_FD};

	for (unsigned i = 0; i < array_size(wq_post_recvs); i++) {
		struct ibv_wq wq = {.context = &context, .post_recv = wq_post_recvs[i]};
		struct ibv_recv_wr wr, *bad;

		hooks_wq(&wq);
		CHECK((wq.post_recv != wq_post_recvs[i]) == (i < WQ_POST_RECVS));
		hooks_wq(&wq);
		CHECK(wq.post_recv(&wq, &wr, &bad) == RESULT((int)i));
		expect_call(i, &wq, &wr, &bad);
	}
}

/* ---- entry points of a context ---- */

static void context_up(struct verbs_context *v, unsigned i, int fd)
{
	*v = (struct verbs_context){.sz = sizeof(*v)};
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->context.cmd_fd = fd;
	v->context.ops.post_send = post_sends[i];
	v->context.ops.post_recv = post_recv;
	v->context.ops.poll_cq = poll_cq;
}

static void test_context(void)
{
	struct verbs_context v[array_size(post_sends)];
	struct ibv_send_wr wr, *bad;
	struct ibv_recv_wr recv, *bad_recv;
	struct ibv_wc wc;

	for (unsigned i = 0; i < array_size(post_sends); i++) {
		struct ibv_context *c = &v[i].context;
		struct ibv_qp qp = {.context = c};
		struct ibv_cq cq = {.context = c};
		struct ibv_context_ops hooked;

		context_up(&v[i], i, CONTEXT_FD);
		hooks_context(c);
		CHECK((c->ops.post_send != post_sends[i]) == (i < CONTEXT_SETS));
		CHECK((c->ops.poll_cq != poll_cq) == (i < CONTEXT_SETS));
		/* what the library has not, it has not now */
		hooked = c->ops;
		hooks_context(c);
		CHECK(!memcmp(&hooked, &c->ops, sizeof(hooked)));
		CHECK(c->ops.post_send(&qp, &wr, &bad) == RESULT((int)i));
		expect_call(i, &qp, &wr, &bad);
		CHECK(c->ops.post_recv(&qp, &recv, &bad_recv) == 5);
		expect_call(1, &qp, &recv, &bad_recv);
		CHECK(c->ops.poll_cq(&cq, 16, &wc) == -7 && seen.number == 16);
		expect_call(0, &cq, &wc, NULL);
	}
}

/* A context of another device keeps its functions. */
static void test_not_ours(void)
{
	struct verbs_context v;

	context_up(&v, 0, OTHER_FD);
	hooks_context(&v.context);
	CHECK(v.context.ops.post_send == post_sends[0] && v.context.ops.poll_cq == poll_cq);
}

int main(void)
{
	static const struct cdev_ops ops = {0};
	struct cdev_file file;

	cdev_file_init(&file, &ops);
	CHECK(!cdev_install(CONTEXT_FD, &file));
	test_start_poll();
	test_wr_complete();
	test_wq_post_recv();
	test_not_ours();
	test_context();
	return 0;
}
